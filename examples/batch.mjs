// A batch: three jobs that start together or not at all.
// Start a node in this folder first: `bin/punctual up`.
import { connect, member, task } from 'punctual';

const ranks = new Set();
const train = task('train', async (input) => {
  ranks.add(input.rank);
  // Without the others this would wait for ever, so none of them may start alone.
  while (ranks.size < 3) await new Promise((resolve) => setTimeout(resolve, 10));
  return `rank ${input.rank} is done`;
});

const punctual = connect();
const worker = punctual.worker([train], { slots: 3 });
await worker.start();

const batch = await punctual.batch(
  [member(train, { rank: 0 }), member(train, { rank: 1 }), member(train, { rank: 2 })],
  { startTimeout: '1m', onFailure: 'cancel-rest' },
);
for (const result of await batch.results({ signal: AbortSignal.timeout(30_000) })) console.log(result);

await worker.drain();
await punctual.close();
