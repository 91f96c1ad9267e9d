// Submits a job, runs a worker for it in the same process and waits for the result.
// Start a node in this folder first: `bin/punctual up`.
import { connect } from 'punctual';
import { greet } from './tasks.mjs';

const punctual = connect();
const worker = punctual.worker([greet], { slots: 20 });
await worker.start();

const job = await punctual.submit(greet, { name: 'Ada' }, { delay: '1s', key: `greet-ada-${Date.now()}` });
console.log(`submitted ${job.id}`);
const { text } = await job.result({ signal: AbortSignal.timeout(30_000) });
console.log(text);

await worker.drain();
await punctual.close();
