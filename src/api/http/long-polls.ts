import type { FastifyReply } from 'fastify';
import { PunctualError } from '../../core/errors.js';

/** The calls that wait for something to happen, so that each ends when its client leaves or the server closes. */
export class LongPolls {
  private readonly open = new Set<AbortController>();
  private ended = false;

  /** Runs a call that may wait; its signal aborts when nobody is there to hear the answer any more. */
  async run<T>(reply: FastifyReply, call: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const controller = new AbortController();
    const abort = () => controller.abort();
    // The client may have left while its credential was checked, and its leaving is not told twice.
    if (this.ended || reply.raw.destroyed) abort();
    this.open.add(controller);
    reply.raw.once('close', abort);
    try {
      return await call(controller.signal);
    } catch (error) {
      // A call that was cut short may end in any error; to a client that is still there it means one thing.
      if (controller.signal.aborted) throw shuttingDown();
      throw error;
    } finally {
      reply.raw.off('close', abort);
      this.open.delete(controller);
    }
  }

  /** Ends all waiting calls, and from now on every call answers without waiting. */
  end(): void {
    this.ended = true;
    for (const controller of this.open) controller.abort();
  }
}

/** What a client hears that comes while the node stops. */
export function shuttingDown(): PunctualError {
  return new PunctualError(
    'SHUTTING_DOWN',
    'The node is stopping; ask another one, or this one again later.',
    {
      retryAfter: 1,
    },
  );
}
