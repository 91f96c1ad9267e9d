/**
 * Builds the clone when npm packs it, when its packages have been installed, and when another project installs it by
 * its path or from git. It is part of the packed product because npm also runs it where that has been unpacked by
 * hand: there is nothing to build, and the other scripts are missing.
 */

import { existsSync } from 'node:fs';
import { dirname, isAbsolute, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));

/**
 * Whether the packages of the clone have to be installed first. Somebody who is installing them at this moment has
 * chosen which ones; without those for development the clone is not built.
 */
export function needsPackages({ npm_command: command, INIT_CWD: folder = root }) {
  if (command === 'pack' || command === 'publish') return true;
  const path = relative(root, folder);
  return path.startsWith('..') || isAbsolute(path);
}

async function prepare() {
  const { build, hasCompiler } = await import('./build.mjs');
  const { install } = await import('./install.mjs');
  const { exitOnError, isCalled } = await import('./step.mjs');
  if (!isCalled(import.meta.url)) return;
  await exitOnError(async () => {
    if (needsPackages(process.env)) await install();
    if (hasCompiler()) await build();
  });
}

if (existsSync(join(root, 'src'))) await prepare();
