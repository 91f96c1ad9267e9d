import { setMaxListeners } from 'node:events';

/**
 * Does work under a signal that aborts when any of the given ones does. Unlike `AbortSignal.any` it leaves no listener
 * behind: signals that live as long as the process would collect one for every request.
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
    // Hundreds of requests may listen to one signal at a time; Node would warn of a leak.
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
