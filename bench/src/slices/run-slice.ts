import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { SliceMessage, SliceOrder, SliceResult } from './slice.js';

const alive = new Set<ChildProcess>();
process.on('exit', () => {
  for (const child of alive) child.kill('SIGKILL');
});

/** Runs one slice in a process of its own. Ends it when the signal aborts. */
export async function runSlice(
  order: SliceOrder,
  tell: (text: string) => void,
  signal: AbortSignal,
): Promise<SliceResult> {
  signal.throwIfAborted();
  const profiling =
    order.profileFolder === null ? [] : ['--cpu-prof', `--cpu-prof-dir=${order.profileFolder}`];
  const child = fork(join(import.meta.dirname, 'slice-process.js'), [], { execArgv: profiling });
  alive.add(child);
  const closed = once(child, 'close');
  const onAbort = () => child.kill('SIGKILL');
  signal.addEventListener('abort', onAbort, { once: true });
  let outcome: SliceMessage | undefined;
  child.on('message', (message: SliceMessage) => {
    if (message.type === 'progress') tell(message.text);
    else outcome = message;
  });
  child.send(order);
  const [code] = await closed;
  alive.delete(child);
  signal.removeEventListener('abort', onAbort);
  signal.throwIfAborted();
  if (outcome?.type === 'result') return outcome.result;
  const detail = outcome?.type === 'failed' ? outcome.message : `its process ended with code ${code}`;
  throw new Error(`${order.system}: ${detail}`);
}
