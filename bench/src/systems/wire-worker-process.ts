import { Ledger } from '../ledger.js';
import { ticking } from '../moments.js';
import { loadSdk } from '../product.js';
import { type FromLedger, TELL_EVERY_MS, type ToLedger } from './remote-starts.js';

/** A worker in a process of its own, over the network protocol, that keeps the ledger of what it has started. */

export type ToWorker =
  | { readonly type: 'work'; readonly slots: number }
  | { readonly type: 'drain' }
  | ToLedger;

export type FromWorker = { readonly type: 'ready' } | { readonly type: 'drained' } | FromLedger;

const { connect, task } = await loadSdk();
const ledger = new Ledger();
const punctual = connect();
const count = task('count', (input: { n: number }) => ledger.start(input.n));
let worker: ReturnType<typeof punctual.worker>;

function send(message: FromWorker): void {
  // Whoever would hear it may be gone by now; then this process ends, too.
  process.send!(message, () => undefined);
}

async function take(message: ToWorker): Promise<void> {
  switch (message.type) {
    case 'work':
      worker = punctual.worker([count], { slots: message.slots });
      await worker.start();
      ticking(TELL_EVERY_MS, () => send({ type: 'started', count: ledger.started }));
      return send({ type: 'ready' });
    case 'begin':
      return ledger.begin(message.moment);
    case 'drain':
      await worker.drain();
      await punctual.close();
      return send({ type: 'drained' });
    case 'account':
      return send({ type: 'account', account: await ledger.account(message.submitted) });
  }
}

process.on('SIGINT', () => undefined);
process.once('disconnect', () => process.exit(0));
process.on('message', (message: ToWorker) => {
  take(message).catch((error: Error) => {
    process.stderr.write(`${error.stack}\n`);
    process.exit(1);
  });
});
