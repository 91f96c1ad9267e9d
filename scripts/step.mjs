/** What the scripts share: the root of the repository, messages, running programs. */

import { spawn } from 'node:child_process';
import { realpathSync } from 'node:fs';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The root of the repository. */
export const root = dirname(dirname(fileURLToPath(import.meta.url)));

const REMIND_EVERY_MS = 10_000;

/** Prints a line on stderr; stdout belongs to the program that is started. */
export function say(line) {
  process.stderr.write(`${line}\n`);
}

/** The seconds since a time of `performance.now()`, as text. */
export function secondsSince(begin) {
  return `${((performance.now() - begin) / 1000).toFixed(1)} s`;
}

/** Whether a module is the script that Node runs, also through a symbolic link. */
export function isCalled(moduleUrl) {
  const [, script] = process.argv;
  return script !== undefined && realpathSync(script) === fileURLToPath(moduleUrl);
}

/**
 * Runs a program in the root of the repository and returns its exit code; 1 when it was killed or is missing. Its
 * output goes to the given stream: 1 for stdout, 2 for stderr.
 */
export async function run(command, args, stream = 2) {
  return (await runTo(['ignore', stream, 2], command, args)).code;
}

/** Runs a program like `run`, but returns its output. */
export function runSilently(command, args) {
  return runTo(['ignore', 'pipe', 'pipe'], command, args);
}

function runTo(stdio, command, args) {
  return new Promise((resolve) => {
    const begin = performance.now();
    const child = spawn(command, args, { cwd: root, stdio });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding('utf8').on('data', (chunk) => {
        output += chunk;
      });
    }
    let timer = setTimeout(remind, REMIND_EVERY_MS);
    function remind() {
      say(`  still running (${secondsSince(begin)})`);
      timer = setTimeout(remind, REMIND_EVERY_MS);
    }
    const end = (code) => {
      clearTimeout(timer);
      resolve({ code, output });
    };
    child.once('error', (error) => {
      output += `${command}: ${error.message}`;
      say(output);
      end(1);
    });
    child.once('close', (code) => end(code ?? 1));
  });
}

/** Does the work of a script; an error is printed without its stack and ends the script with code 1. */
export async function exitOnError(work) {
  try {
    return await work();
  } catch (error) {
    say(error.message);
    process.exit(1);
  }
}
