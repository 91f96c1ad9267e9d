/**
 * `npm run fault`: installs and builds what is missing, compiles the fault harness, and runs it. Arguments go to
 * the harness: `--scenario NAME --seconds N --seed N --json`.
 */

import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { build } from './build.mjs';
import { install } from './install.mjs';
import { endingWell, root, run } from './step.mjs';

/** Long runs keep every start, end and write in memory until they are judged. */
const HEAP_MB = 4_096;

await endingWell(async () => {
  await install();
  await build();
  const compiler = join('node_modules', 'typescript', 'bin', 'tsc');
  const code = await run(process.execPath, [compiler, '-p', join('test', 'fault', 'tsconfig.json')]);
  if (code !== 0) throw new Error('The fault harness does not compile; the errors are above.');
});

const harness = join(root, '.cache', 'fault', 'test', 'fault', 'main.js');
const child = spawn(
  process.execPath,
  [`--max-old-space-size=${HEAP_MB}`, harness, ...process.argv.slice(2)],
  { cwd: root, stdio: 'inherit' },
);
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
child.once('close', (code) => {
  process.exitCode = code ?? 1;
});
