/**
 * `npm test`: installs and builds what is missing, then checks style, types and behaviour, and stops at the
 * first step that fails. Further arguments go to vitest.
 *
 * On a machine that is busy with other work a test of real processes may miss its time. In a run of all tests, the few
 * files that failed are run once more, alone, and named if they pass then. What the fault and attack rounds find is never
 * put down to the machine.
 */

import { mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join, relative, sep } from 'node:path';
import { build } from './build.mjs';
import { install } from './install.mjs';
import { root, run, say, secondsSince } from './step.mjs';

const REPORT = join('.cache', 'test-report.json');
const SECOND_REPORT = join('.cache', 'test-report-second.json');
/** When more files than this fail, it is not the machine. */
const MOST_TRIED_AGAIN = 4;
const NEVER_AGAIN = [join('test', 'fault') + sep, join('test', 'attack') + sep];

/** Runs a program of an installed package with this Node. */
function node(script, ...args) {
  return run(process.execPath, [join('node_modules', script), ...args], 1);
}

/** Runs tests; their report goes to a file. */
function vitest(report, ...args) {
  mkdirSync(join(root, '.cache'), { recursive: true });
  rmSync(join(root, report), { force: true });
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${report}`];
  return node('vitest/vitest.mjs', 'run', ...reporters, ...args);
}

/** Vitest's report; null when there is none. */
function read(report) {
  try {
    return JSON.parse(readFileSync(join(root, report), 'utf8'));
  } catch {
    return null;
  }
}

/** The files to run once more after a run of all tests has failed. */
function toTryAgain() {
  const failed = (read(REPORT)?.testResults ?? [])
    .filter(({ status }) => status !== 'passed')
    .map(({ name }) => relative(root, name));
  const isFinal =
    failed.length > MOST_TRIED_AGAIN ||
    failed.some((name) => NEVER_AGAIN.some((folder) => name.startsWith(folder)));
  return isFinal ? [] : failed;
}

async function tests() {
  const filters = process.argv.slice(2);
  const code = await vitest(REPORT, ...filters);
  const again = code === 0 || filters.length > 0 ? [] : toTryAgain();
  if (again.length === 0) return code;
  say(`\nOnce more, one after another: ${again.join(', ')}`);
  const second = await vitest(SECOND_REPORT, '--no-file-parallelism', ...again);
  if (second === 0) say(`\nFailed beside the others and passed alone: ${again.join(', ')}`);
  return second;
}

/** What runs in Node, and the dashboard, which runs in browsers. */
const TYPED = ['tsconfig.json', 'dashboard/tsconfig.json'];

async function types() {
  for (const project of TYPED) {
    const code = await node('typescript/bin/tsc', '-p', project, '--noEmit');
    if (code !== 0) return code;
  }
  return 0;
}

const steps = [
  ['style', () => node('@biomejs/biome/bin/biome', 'check', '.')],
  ['types', types],
  ['tests', tests],
];

async function test() {
  await install();
  await build();
  for (const [name, step] of steps) {
    say(`\n── ${name}`);
    const begin = performance.now();
    const code = await step();
    say(`── ${name} ${code === 0 ? 'passed' : 'failed'} in ${secondsSince(begin)}`);
    if (code !== 0) return code;
  }
  return 0;
}

const begin = performance.now();
rmSync(join(root, REPORT), { force: true });
try {
  process.exitCode = await test();
} catch (error) {
  say(error.message);
  process.exitCode = 1;
}
const { numPassedTests: passed = 0, numFailedTests: failed = 0 } = read(REPORT) ?? {};
const isFine = process.exitCode === 0;
say(`\nAll in ${secondsSince(begin)}`);
console.log(`${isFine ? passed + failed : passed} passed, ${isFine ? 0 : failed} failed`);
