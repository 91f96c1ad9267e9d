/**
 * Installs the packages that package-lock.json names, and does nothing when they are installed already. It runs
 * before anything is installed, so it uses nothing but Node.
 */

import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { exitOnError, isCalled, root, runSilently, say, secondsSince } from './step.mjs';

const OLDEST_NODE = [20, 19];
/** Holds the hash of the lock that was installed last. */
const STAMP_FILE = join('node_modules', '.punctual-lock');

/** Throws when this version of Node cannot run the product. */
export function checkNode(version = process.versions.node) {
  const [major, minor] = version.split('.').map(Number);
  const [oldestMajor, oldestMinor] = OLDEST_NODE;
  if (major > oldestMajor || (major === oldestMajor && minor >= oldestMinor)) return;
  throw new Error(
    `Punctual needs Node ${OLDEST_NODE.join('.')} or newer; this is ${version}. See https://nodejs.org/.`,
  );
}

/**
 * Whether npm's own record of what it installed agrees with the lock. npm leaves out optional packages for other
 * platforms. It also leaves out those for another C library; which library this machine has is not known here.
 */
export function agrees(lock, installed, { platform, arch }) {
  return Object.entries(lock.packages).every(([path, wanted]) => {
    if (!path.includes('node_modules/') || wanted.link) return true;
    const present = installed.packages[path];
    if (present) return present.version === wanted.version && present.integrity === wanted.integrity;
    const fits = (list, value) => !list || list.includes(value);
    return wanted.optional === true && !(fits(wanted.os, platform) && fits(wanted.cpu, arch) && !wanted.libc);
  });
}

function readText(...path) {
  try {
    return readFileSync(join(root, ...path), 'utf8');
  } catch {
    return null;
  }
}

function isInstalled(folder, lock, stamp) {
  const installed = readText(folder, 'node_modules', '.package-lock.json');
  if (installed === null) return false;
  // The stamp covers what the comparison cannot know: npm has decided that a package does not fit this machine.
  return readText(folder, STAMP_FILE) === stamp || agrees(JSON.parse(lock), JSON.parse(installed), process);
}

/**
 * Installs exactly the versions in a folder's lock. `npm ci` refuses a lock that lacks a package for any platform;
 * `npm install` keeps to the same versions and takes what fits this machine.
 */
export async function installByLock(folder) {
  const clean = await npm('ci', '--prefix', folder);
  if (clean.code === 0) return;
  if (!clean.output.includes('EUSAGE')) throw installFailure(clean);
  say('The lock does not fit what the registry offers for other platforms; installing for this one …');
  const lenient = await npm('install', '--no-save', '--prefix', folder);
  if (lenient.code !== 0) throw installFailure(lenient);
}

function npm(...command) {
  // Development packages are needed to build, whatever NODE_ENV or the user's npm settings say.
  const flags = ['--ignore-scripts', '--no-audit', '--no-fund', '--include=dev', '--include=optional'];
  // An npm that runs this script passes its own options on in the environment: `npm pack --dry-run`, `npm install -g`.
  flags.push('--no-dry-run', '--no-global', '--no-install-links', '--no-package-lock-only');
  // `npm -s start` passes its log level on in the environment, and a silent npm would not print its error code.
  flags.push('--loglevel=error');
  return runNpm(...command, ...flags);
}

/** Runs the npm that runs this script, or else the one of the search path, and returns its exit code and output. */
export function runNpm(...args) {
  const script = process.env.npm_execpath;
  // Other package managers set this variable, too, to their own scripts.
  if (!script?.endsWith('npm-cli.js')) return runSilently('npm', args);
  return runSilently(process.execPath, [script, ...args]);
}

function installFailure({ code, output }) {
  return new Error(`${output.trim()}\nnpm failed with code ${code}. Is the npm registry within reach?`);
}

/** Installs the packages of a folder of the repository, unless they are installed already. */
export async function install(
  folder = '.',
  message = 'Installing packages (this takes a minute the first time) …',
) {
  checkNode();
  const lock = readFileSync(join(root, folder, 'package-lock.json'), 'utf8');
  const stamp = createHash('sha256').update(lock).digest('hex');
  if (isInstalled(folder, lock, stamp)) return;
  say(message);
  const begin = performance.now();
  await installByLock(folder);
  writeFileSync(join(root, folder, STAMP_FILE), stamp);
  say(`Installed in ${secondsSince(begin)}`);
}

if (isCalled(import.meta.url)) await exitOnError(() => install());
