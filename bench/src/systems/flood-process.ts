import { setTimeout as pause } from 'node:timers/promises';
import { loadSdk } from '../product.js';

/** A tenant with far more work than its worker can do: it keeps its backlog filled until it is told to stop. */

export type ToFlood =
  | { readonly type: 'flood'; readonly tenant: string; readonly jobs: number }
  | { readonly type: 'stop' };

/** The backlog is at its height; and how many jobs have run so far. */
export type FromFlood = { readonly type: 'full' } | { readonly type: 'stopped'; readonly ran: number };

const BULK = 5_000;
const SLOTS = 100;
const WORK_MS = 20;

const { connect, task } = await loadSdk();
const stopping = new AbortController();

function send(message: FromFlood): void {
  // Whoever would hear it may be gone by now; then this process ends, too.
  process.send!(message, () => undefined);
}

async function flood(tenant: string, jobs: number): Promise<void> {
  const punctual = connect({ tenant });
  let submitted = 0;
  let ran = 0;
  const wave = task('wave', async () => {
    await pause(WORK_MS);
    ran += 1;
  });
  const worker = punctual.worker([wave], { slots: SLOTS });
  await worker.start();
  let full = false;
  while (!stopping.signal.aborted) {
    if (submitted - ran + BULK <= jobs) {
      await punctual.submitMany(
        wave,
        Array.from({ length: BULK }, () => undefined),
      );
      submitted += BULK;
      continue;
    }
    if (!full) send({ type: 'full' });
    full = true;
    await pause(20);
  }
  await worker.stop();
  await punctual.close();
  send({ type: 'stopped', ran });
}

process.on('SIGINT', () => undefined);
process.once('disconnect', () => process.exit(0));
process.on('message', (message: ToFlood) => {
  if (message.type === 'stop') stopping.abort();
  else
    flood(message.tenant, message.jobs).catch((error: Error) => {
      process.stderr.write(`${error.stack}\n`);
      process.exit(1);
    });
});
