/**
 * A worker in a process of its own, for tests that kill workers. Prints one line of JSON per start of a handler;
 * its handlers never end by themselves.
 */
import { fileURLToPath } from 'node:url';
import { runnerImport } from 'vite';

const source = fileURLToPath(new URL('../../src/index.ts', import.meta.url));
const { module } = await runnerImport(source, { logLevel: 'error' });
const { connect, task } = module;

const endless = task('endless', (_input, { jobId, fence }) => {
  console.log(JSON.stringify({ started: jobId, fence }));
  return new Promise(() => undefined);
});
const exits = task('exits', () => process.exit(9));

await connect().worker([endless, exits], { name: 'to-be-killed', guardProcess: false }).run();
