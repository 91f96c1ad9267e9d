/**
 * `npm start`: installs and builds what is missing, then runs `punctual up --demo` in this process, so that signals,
 * the terminal and the exit code need not be passed on.
 */

import { fileURLToPath } from 'node:url';
import { build } from './build.mjs';
import { install } from './install.mjs';
import { exitOnError } from './step.mjs';

await exitOnError(async () => {
  await install();
  await build();
});

// A killed npm does not pass the signal on; this process then stops as after SIGTERM.
const parent = process.ppid;
const watch = setInterval(() => {
  if (process.ppid === parent) return;
  clearInterval(watch);
  process.kill(process.pid, 'SIGTERM');
}, 1_000).unref();

const program = new URL('../bin/punctual', import.meta.url);
process.argv = [process.execPath, fileURLToPath(program), 'up', '--demo', ...process.argv.slice(2)];
await import(program.href);
