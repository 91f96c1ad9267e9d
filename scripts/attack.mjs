/**
 * `npm run attack`: installs and builds what is missing, compiles the attack, and runs it. Arguments go to it:
 * `--seconds N --seed N --only KIND[,KIND] --help`.
 */

import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { build } from './build.mjs';
import { install } from './install.mjs';
import { endingWell, root, run } from './step.mjs';

await endingWell(async () => {
  await install();
  await build();
  const compiler = join('node_modules', 'typescript', 'bin', 'tsc');
  const code = await run(process.execPath, [compiler, '-p', join('test', 'attack', 'tsconfig.json')]);
  if (code !== 0) throw new Error('The attack does not compile; the errors are above.');
});

const attack = join(root, '.cache', 'attack', 'test', 'attack', 'main.js');
const child = spawn(process.execPath, [attack, ...process.argv.slice(2)], { cwd: root, stdio: 'inherit' });
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
child.once('close', (code) => {
  process.exitCode = code ?? 1;
});
