/** What the scripts share: where the repository is, how they speak, how they run a program. */

import { spawn } from 'node:child_process';
import { realpathSync } from 'node:fs';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The root of the repository, from wherever the script is called. */
export const root = dirname(dirname(fileURLToPath(import.meta.url)));

const STILL_AT_IT_MS = 10_000;

/** Tells the person at the terminal; standard output is left to the program that is started. */
export function say(line) {
  process.stderr.write(`${line}\n`);
}

/** Seconds since a moment of `performance.now()`, for people. */
export function secondsSince(begin) {
  return `${((performance.now() - begin) / 1000).toFixed(1)} s`;
}

/** Whether a module is the script that Node was asked to run, also when it was called through a link. */
export function isCalled(moduleUrl) {
  const [, script] = process.argv;
  return script !== undefined && realpathSync(script) === fileURLToPath(moduleUrl);
}

/**
 * Runs a program in the root of the repository; gives its exit code, 1 when it was killed or is missing. What
 * it prints goes to the given stream, 1 for standard output or 2 for standard error.
 */
export async function run(command, args, stream = 2) {
  return (await runTo(['ignore', stream, 2], command, args)).code;
}

/** Runs a program like `run`, but keeps what it prints. */
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
    let timer = setTimeout(remind, STILL_AT_IT_MS);
    function remind() {
      say(`  still at it (${secondsSince(begin)})`);
      timer = setTimeout(remind, STILL_AT_IT_MS);
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

/** Does the work of a script; what goes wrong is said in one line, without a stack, and ends it with code 1. */
export async function endingWell(work) {
  try {
    return await work();
  } catch (error) {
    say(error.message);
    process.exit(1);
  }
}
