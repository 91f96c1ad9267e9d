// Runs a task every second until it has run twice, then ends the schedule and looks at its ledger.
// Start a node in this folder first: `bin/punctual up`.
import { connect, task } from 'punctual';

let runs = 0;
const tick = task('tick', (input) => {
  runs += 1;
  console.log(`tick ${runs} for ${input.name}`);
});

const punctual = connect();
const worker = punctual.worker([tick]);
await worker.start();

const schedule = await punctual.schedule(tick, { every: '1s', overlap: 'skip', input: { name: 'Ada' } });
while (runs < 2) await new Promise((resolve) => setTimeout(resolve, 100));
const ledger = await schedule.occurrences();
await schedule.delete();
console.log(`on record: ${ledger.map((occurrence) => occurrence.state).join(', ')}`);

await worker.drain();
await punctual.close();
