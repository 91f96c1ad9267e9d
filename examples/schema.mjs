// A task whose input is checked by a schema: before it is submitted, and again before the handler runs.
// Start a node in this folder first: `bin/punctual up`. Any library with Standard Schema will do;
// this one is installed with `npm install zod`.
import { connect, PunctualError, task } from 'punctual';
import { z } from 'zod';

const Invoice = z.object({
  customer: z.string().min(1),
  due: z.iso.datetime().transform((text) => new Date(text)),
});

const remind = task('remind', { input: Invoice }, ({ customer, due }) => {
  return `${customer} pays by ${due.toDateString()}`;
});

const punctual = connect();
const worker = punctual.worker([remind]);
await worker.start();

const job = await punctual.submit(remind, { customer: 'Ada', due: '2026-12-24T00:00:00Z' });
console.log(await job.result());

try {
  await punctual.submit(remind, { customer: '', due: 'soon' });
} catch (error) {
  if (!(error instanceof PunctualError)) throw error;
  for (const { pointer, detail } of error.errors) console.log(`refused: ${pointer} ${detail}`);
}

await worker.drain();
await punctual.close();
