/**
 * Compiles src/ to dist/ and builds the dashboard into dist/dashboard/ when anything that goes into them has changed; `--force`
 * builds in any case.
 */

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
import { dirname, join, relative, sep } from 'node:path';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { install } from './install.mjs';
import { exitOnError, isCalled, root, run, say, secondsSince } from './step.mjs';

const COMPILER = join('node_modules', 'typescript', 'bin', 'tsc');
const BUNDLER = join('node_modules', 'vite', 'bin', 'vite.js');
const DASHBOARD = 'dashboard';
const DASHBOARD_CONFIG = join(DASHBOARD, 'vite.config.ts');
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

function fingerprint(inputs) {
  const hash = createHash('sha256');
  for (const path of inputs)
    hash
      .update(`${path}\0`)
      .update(readFileSync(join(root, path)))
      .update('\0');
  return hash.digest('hex');
}

/** What the dashboard is built from; nothing where there is no dashboard. */
function dashboardInputs() {
  if (!existsSync(join(root, DASHBOARD_CONFIG))) return [];
  const isInput = (path) => !/^(dist|node_modules)$/.test(path.split(sep)[0]) && !/\.test\.\w+$/.test(path);
  return filesBelow(join(root, DASHBOARD))
    .filter(isInput)
    .map((path) => join(DASHBOARD, path));
}

/** The forms in which a file is served, by what is added to its name; only those that are smaller. */
export function compressedForms(bytes) {
  const forms = { '.br': brotliCompressSync(bytes), '.gz': gzipSync(bytes, { level: 9 }) };
  return Object.entries(forms).filter(([, compressed]) => compressed.length < bytes.length);
}

/** Whether a file gains from compression; the shell is changed as it is served, and images and fonts are compressed. */
const isCompressed = (path) => /\.(js|css|svg|json|webmanifest)$/.test(path);

/** Copies the built dashboard, with the compressed forms of its files, so that nodes need not compress. */
function copyDashboard(target) {
  const from = join(root, DASHBOARD, 'dist');
  rmSync(target, { recursive: true, force: true });
  for (const path of filesBelow(from)) {
    const copy = join(target, path);
    mkdirSync(dirname(copy), { recursive: true });
    const bytes = readFileSync(join(from, path));
    writeFileSync(copy, bytes);
    if (!isCompressed(path)) continue;
    for (const [ending, compressed] of compressedForms(bytes)) writeFileSync(copy + ending, compressed);
  }
}

/** Runs a step when its inputs have changed since it last ended well, or when its output is not there. */
async function whenChanged({ stamp, inputs, complete, force, title }, step) {
  const print = fingerprint(inputs);
  const file = join(root, '.cache', stamp);
  if (!force && complete && existsSync(file) && readFileSync(file, 'utf8') === print) return;
  say(`${title} …`);
  const begin = performance.now();
  rmSync(file, { force: true });
  await step();
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, print);
  say(`Built in ${secondsSince(begin)}`);
}

async function mustRun(...command) {
  const code = await run(process.execPath, command);
  if (code !== 0) throw new Error('The build failed; the errors are above.');
}

async function buildDashboard(force) {
  const inputs = dashboardInputs();
  const target = join(root, 'dist', DASHBOARD);
  if (inputs.length === 0) return rmSync(target, { recursive: true, force: true });
  const complete = existsSync(join(target, 'index.html'));
  const all = ['package-lock.json', ...inputs];
  await whenChanged(
    { stamp: 'build-dashboard', inputs: all, complete, force, title: 'Building the dashboard' },
    async () => {
      await mustRun(BUNDLER, 'build', DASHBOARD, '--logLevel', 'warn');
      copyDashboard(target);
    },
  );
}

/** Compiles src/ to dist/, removes files of dist/ that have no source, and builds the dashboard. */
export async function build({ force = false } = {}) {
  const sources = filesBelow(join(root, 'src')).filter((source) => outputsOf(source).length > 0);
  const expected = new Set(sources.flatMap(outputsOf));
  const compiled = () => filesBelow(join(root, 'dist')).filter((path) => path.split(sep)[0] !== DASHBOARD);
  const present = compiled();
  const complete = present.length === expected.size && present.every((path) => expected.has(path));
  const inputs = [...INPUTS_BESIDE_SOURCES, ...sources.map((source) => join('src', source))];
  await whenChanged({ stamp: 'build', inputs, complete, force, title: 'Building' }, async () => {
    await mustRun(COMPILER, '-p', 'tsconfig.build.json');
    for (const source of sources.filter((path) => path.endsWith('.sql'))) {
      const target = join(root, 'dist', source);
      mkdirSync(dirname(target), { recursive: true });
      copyFileSync(join(root, 'src', source), target);
    }
    for (const path of compiled()) if (!expected.has(path)) rmSync(join(root, 'dist', path));
  });
  await buildDashboard(force);
}

if (isCalled(import.meta.url)) {
  await exitOnError(async () => {
    await install();
    await build({ force: process.argv.includes('--force') });
  });
}
