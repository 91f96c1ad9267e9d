/**
 * Brings node_modules to what package-lock.json says, and does nothing when it is there already. Runs before
 * anything is installed, so it uses nothing but Node.
 */

import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { endingWell, isCalled, root, runSilently, say, secondsSince } from './step.mjs';

const OLDEST_NODE = [20, 19];

/** Ends with a clear message when this Node cannot run the product. */
export function checkNode(version = process.versions.node) {
  const [major, minor] = version.split('.').map(Number);
  const [oldestMajor, oldestMinor] = OLDEST_NODE;
  if (major > oldestMajor || (major === oldestMajor && minor >= oldestMinor)) return;
  throw new Error(
    `Punctual needs Node ${OLDEST_NODE.join('.')} or newer; this is ${version}. See https://nodejs.org/.`,
  );
}

/**
 * Whether npm's own record of what it installed agrees with the lock. Packages for other platforms are left
 * out by npm; so is a package for another C library, which the lock does not always tell.
 */
export function agrees(lock, installed, { platform, arch }) {
  return Object.entries(lock.packages).every(([path, wanted]) => {
    if (!path.startsWith('node_modules/') || wanted.link) return true;
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

const stampFile = join('node_modules', '.punctual-lock');

function isInstalled(lock, stamp) {
  const installed = readText('node_modules', '.package-lock.json');
  if (installed === null) return false;
  // The stamp covers what the comparison cannot know: npm has decided that a package does not fit here.
  return readText(stampFile) === stamp || agrees(JSON.parse(lock), JSON.parse(installed), process);
}

/**
 * Installs exactly what the lock of a folder says. A registry that lacks a package for some other platform makes `npm ci`
 * call the whole lock wrong; `npm install` keeps to the same versions and takes what fits this machine.
 */
export async function installByLock(folder = '.') {
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
  const script = process.env.npm_execpath;
  // Other package managers set the variable too, to themselves.
  if (!script?.endsWith('npm-cli.js')) return runSilently('npm', [...command, ...flags]);
  return runSilently(process.execPath, [script, ...command, ...flags]);
}

function installFailure({ code, output }) {
  return new Error(`${output.trim()}\nnpm failed with code ${code}. Is the npm registry within reach?`);
}

/** Installs the packages if need be. */
export async function install() {
  checkNode();
  const lock = readFileSync(join(root, 'package-lock.json'), 'utf8');
  const stamp = createHash('sha256').update(lock).digest('hex');
  if (isInstalled(lock, stamp)) return;
  say('Installing packages (this takes a minute the first time) …');
  const begin = performance.now();
  await installByLock();
  writeFileSync(join(root, stampFile), stamp);
  say(`Installed in ${secondsSince(begin)}`);
}

if (isCalled(import.meta.url)) await endingWell(install);
