// Submits a thousand jobs in one request and waits for all of them; a job that fails says why.
// Start a node in this folder first: `bin/punctual up`.
import { connect, JobFailedError, task } from 'punctual';

const half = task('half', { retry: { maxAttempts: 1 } }, (input) => {
  if (input % 2 === 1) throw new Error(`${input} is odd`);
  return input / 2;
});

const punctual = connect();
const worker = punctual.worker([half], { slots: 100 });
await worker.start();

const numbers = Array.from({ length: 1_000 }, (_, index) => index);
const jobs = await punctual.submitMany(half, numbers);
const results = await Promise.allSettled(jobs.map((job) => job.result()));
const halves = results.filter(({ status }) => status === 'fulfilled');
const failures = results.flatMap(({ status, reason }) => {
  if (status === 'fulfilled') return [];
  return [reason instanceof JobFailedError ? reason.job.error.message : reason.message];
});
console.log(`${halves.length} halves, ${failures.length} failures, the first: ${failures[0]}`);

await worker.drain();
await punctual.close();
