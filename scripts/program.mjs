/** How the programs of the repository that are not shipped (bench, fault harness, attack) are compiled and run. */

import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { build } from './build.mjs';
import { install } from './install.mjs';
import { exitOnError, root, run } from './step.mjs';

/** Long runs keep everything that happened in memory until it is judged. */
const HEAP_MB = 4_096;

/**
 * Installs and builds what is missing, compiles the program in a folder with its own tsconfig.json, and runs it
 * with the arguments of the script. Signals are passed on; its exit code becomes that of the script.
 */
export async function runProgram({ name, folder, main, prepare = async () => {} }) {
  await exitOnError(async () => {
    await install();
    await build();
    const compiler = join('node_modules', 'typescript', 'bin', 'tsc');
    const code = await run(process.execPath, [compiler, '-p', join(folder, 'tsconfig.json')]);
    if (code !== 0) throw new Error(`The ${name} does not compile; the errors are above.`);
    await prepare();
  });
  const program = join(root, '.cache', main);
  const args = [`--max-old-space-size=${HEAP_MB}`, program, ...process.argv.slice(2)];
  const child = spawn(process.execPath, args, { cwd: root, stdio: 'inherit' });
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
  child.once('close', (code) => {
    process.exitCode = code ?? 1;
  });
}
