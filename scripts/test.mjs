/**
 * `npm test`: installs and builds what is missing, then checks style, types and behaviour, and stops at the
 * first step that fails. Further arguments go to vitest.
 */

import { mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { build } from './build.mjs';
import { install } from './install.mjs';
import { root, run, say, secondsSince } from './step.mjs';

const REPORT = join('.cache', 'test-report.json');

/** A step that runs a program of an installed package with this Node. */
function node(...path) {
  const [script, ...args] = path;
  return () => run(process.execPath, [join('node_modules', script), ...args], 1);
}

const steps = [
  ['style', node('@biomejs/biome/bin/biome', 'check', '.')],
  ['types', node('typescript/bin/tsc', '-p', 'tsconfig.json', '--noEmit')],
  [
    'tests',
    node(
      'vitest/vitest.mjs',
      'run',
      '--reporter=default',
      '--reporter=json',
      `--outputFile.json=${REPORT}`,
      ...process.argv.slice(2),
    ),
  ],
];

/** How many tests passed and failed, from vitest's report; zero when there is none. */
function counts() {
  try {
    const { numPassedTests, numFailedTests } = JSON.parse(readFileSync(join(root, REPORT), 'utf8'));
    return { passed: numPassedTests, failed: numFailedTests };
  } catch {
    return { passed: 0, failed: 0 };
  }
}

async function test() {
  await install();
  await build();
  mkdirSync(join(root, '.cache'), { recursive: true });
  rmSync(join(root, REPORT), { force: true });
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
try {
  process.exitCode = await test();
} catch (error) {
  say(error.message);
  process.exitCode = 1;
}
const { passed, failed } = counts();
say(`\nAll in ${secondsSince(begin)}`);
console.log(`${passed} passed, ${failed} failed`);
