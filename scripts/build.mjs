/** Compiles src/ to dist/ when anything that goes into it has changed; `--force` compiles in any case. */

import { createHash } from 'node:crypto';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { install } from './install.mjs';
import { exitOnError, isCalled, root, run, say, secondsSince } from './step.mjs';

const STAMP = join(root, '.cache', 'build');
const COMPILER = join('node_modules', 'typescript', 'bin', 'tsc');
const INPUTS_BESIDE_SOURCES = ['package-lock.json', 'tsconfig.json', 'tsconfig.build.json'];

function filesBelow(folder) {
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)))
    .sort();
}

/** Whether the packages for development are installed. */
export function hasCompiler() {
  return existsSync(join(root, COMPILER));
}

/** The files of dist/ that are made from one file of src/. */
export function outputsOf(source) {
  if (/\.(test|test-d|fixture)\.ts$/.test(source)) return [];
  if (source.endsWith('.sql')) return [source];
  if (!source.endsWith('.ts')) return [];
  const stem = source.slice(0, -'.ts'.length);
  return [`${stem}.js`, `${stem}.js.map`, `${stem}.d.ts`];
}

function fingerprint(sources) {
  const hash = createHash('sha256');
  const inputs = [...INPUTS_BESIDE_SOURCES, ...sources.map((source) => join('src', source))];
  for (const path of inputs)
    hash
      .update(`${path}\0`)
      .update(readFileSync(join(root, path)))
      .update('\0');
  return hash.digest('hex');
}

/** Compiles src/ to dist/, and removes files of dist/ that have no source. */
export async function build({ force = false } = {}) {
  const sources = filesBelow(join(root, 'src')).filter((source) => outputsOf(source).length > 0);
  const expected = new Set(sources.flatMap(outputsOf));
  const print = fingerprint(sources);
  const present = filesBelow(join(root, 'dist'));
  const complete = present.length === expected.size && present.every((path) => expected.has(path));
  if (!force && complete && existsSync(STAMP) && readFileSync(STAMP, 'utf8') === print) return;

  say('Building …');
  const begin = performance.now();
  rmSync(STAMP, { force: true });
  const code = await run(process.execPath, [COMPILER, '-p', 'tsconfig.build.json']);
  if (code !== 0) throw new Error('The build failed; the errors are above.');
  for (const source of sources.filter((path) => path.endsWith('.sql'))) {
    const target = join(root, 'dist', source);
    mkdirSync(dirname(target), { recursive: true });
    copyFileSync(join(root, 'src', source), target);
  }
  for (const path of filesBelow(join(root, 'dist'))) {
    if (!expected.has(path)) rmSync(join(root, 'dist', path));
  }
  mkdirSync(dirname(STAMP), { recursive: true });
  writeFileSync(STAMP, print);
  say(`Built in ${secondsSince(begin)}`);
}

if (isCalled(import.meta.url)) {
  await exitOnError(async () => {
    await install();
    await build({ force: process.argv.includes('--force') });
  });
}
