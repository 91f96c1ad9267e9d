/**
 * A worker in a process of its own with trivial handlers, for tests with many jobs. Prints lines of JSON: when it
 * is ready, how many attempts were started and reported so far, and the moment each job of `moment` started.
 */
import { fileURLToPath } from 'node:url';
import { runnerImport } from 'vite';

const source = fileURLToPath(new URL('../../src/index.ts', import.meta.url));
const { module } = await runnerImport(source, { logLevel: 'error' });
const { connect, task } = module;

const say = (message) => console.log(JSON.stringify(message));
const seen = new Set();
let doubled = 0;
let reported = 0;

const count = task('count', (_input, { jobId }) => {
  if (seen.has(jobId)) doubled += 1;
  seen.add(jobId);
});
const moment = task('moment', (due) => say({ due, at: Date.now() }));

const worker = connect().worker([count, moment], {
  slots: Number(process.env.SLOTS),
  events: {
    onRegistered: () => say({ ready: true }),
    onJobReported: () => {
      reported += 1;
    },
  },
});
const tell = () => {
  say({ reported, started: seen.size, doubled });
  setTimeout(tell, 100);
};
tell();
await worker.run();
process.exit();
