/**
 * `npm start`: installs and builds what is missing, then becomes `punctual up --demo`. It runs in this very
 * process, so that signals, the terminal and the exit code need no passing on.
 */

import { fileURLToPath } from 'node:url';
import { build } from './build.mjs';
import { install } from './install.mjs';
import { endingWell } from './step.mjs';

await endingWell(async () => {
  await install();
  await build();
});

// Whoever ends npm alone leaves this process behind without a word; then it stops as if it had been told to.
const parent = process.ppid;
const watch = setInterval(() => {
  if (process.ppid === parent) return;
  clearInterval(watch);
  process.kill(process.pid, 'SIGTERM');
}, 1_000).unref();

const program = new URL('../bin/punctual', import.meta.url);
process.argv = [process.execPath, fileURLToPath(program), 'up', '--demo', ...process.argv.slice(2)];
await import(program.href);
