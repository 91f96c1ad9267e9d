import { setMaxListeners } from 'node:events';

/**
 * Does work under a signal that aborts when any of the given ones does. `AbortSignal.any` would do, but what it makes stays
 * on the lists of signals that live long, as long as these do.
 */
export async function withAnyOf<T>(
  signals: readonly AbortSignal[],
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const controller = new AbortController();
  const aborted = signals.find((signal) => signal.aborted);
  if (aborted) controller.abort(aborted.reason);
  const ends = signals.map((signal) => {
    const abort = () => controller.abort(signal.reason);
    // Hundreds of requests may share one; each lets go of it in the end.
    setMaxListeners(0, signal);
    signal.addEventListener('abort', abort, { once: true });
    return () => signal.removeEventListener('abort', abort);
  });
  try {
    return await work(controller.signal);
  } finally {
    for (const end of ends) end();
  }
}
