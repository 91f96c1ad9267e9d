/**
 * `npm run bench`: installs and builds what is missing, installs the peers into bench/ on first use, compiles the
 * bench, and runs it. Arguments go to the bench; `--help` lists them.
 */

import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { build } from './build.mjs';
import { install, installByLock } from './install.mjs';
import { endingWell, root, run, say, secondsSince } from './step.mjs';

/** The ledgers of long runs are kept in memory. */
const HEAP_MB = 4_096;

/** The peers are needed by whoever measures, not by whoever uses or develops the product. */
async function installPeers() {
  const lock = readFileSync(join(root, 'bench', 'package-lock.json'), 'utf8');
  const stamp = createHash('sha256').update(lock).digest('hex');
  const stampFile = join(root, 'bench', 'node_modules', '.punctual-lock');
  if (existsSync(stampFile) && readFileSync(stampFile, 'utf8') === stamp) return;
  say('Installing the peers to measure beside …');
  const begin = performance.now();
  await installByLock('bench');
  writeFileSync(stampFile, stamp);
  say(`Installed in ${secondsSince(begin)}`);
}

const args = process.argv.slice(2);
const withoutPeers = args.some(
  (arg, i) => arg === '--peers=none' || (arg === '--peers' && args[i + 1] === 'none'),
);

await endingWell(async () => {
  await install();
  await build();
  const compiler = join('node_modules', 'typescript', 'bin', 'tsc');
  const code = await run(process.execPath, [compiler, '-p', join('bench', 'tsconfig.json')]);
  if (code !== 0) throw new Error('The bench does not compile; the errors are above.');
  if (!withoutPeers && !args.includes('--help')) await installPeers();
});

const program = join(root, '.cache', 'bench', 'bench', 'src', 'main.js');
const child = spawn(process.execPath, [`--max-old-space-size=${HEAP_MB}`, program, ...args], {
  cwd: root,
  stdio: 'inherit',
});
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
child.once('close', (code) => {
  process.exitCode = code ?? 1;
});
