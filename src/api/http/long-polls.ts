import type { FastifyReply, FastifyRequest } from 'fastify';
import { PunctualError } from '../../core/errors.js';

/** The calls that wait for something to happen, so that each ends when its client leaves or the server closes. */
export class LongPolls {
  private readonly open = new Set<AbortController>();
  private readonly waiting = new WeakSet<FastifyRequest>();
  private ended = false;

  /** Runs a call that may wait; its signal aborts when nobody is there to hear the answer any more. */
  async run<T>(reply: FastifyReply, call: (signal: AbortSignal) => Promise<T>): Promise<T> {
    this.waiting.add(reply.request);
    return this.untilGone(reply, async (controller) => {
      if (this.ended) controller.abort();
      this.open.add(controller);
      try {
        return await call(controller.signal);
      } catch (error) {
        // A call that was cut short may end in any error; to a client that is still there it means one thing.
        if (controller.signal.aborted) throw shuttingDown();
        throw error;
      } finally {
        this.open.delete(controller);
      }
    });
  }

  /** Carries a call on elsewhere; whether it may be cut short depends on how it began. */
  async runOn<T>(reply: FastifyReply, call: (signal: AbortSignal) => Promise<T>): Promise<T> {
    if (this.waiting.has(reply.request)) return this.run(reply, call);
    return this.untilGone(reply, ({ signal }) => call(signal));
  }

  private async untilGone<T>(
    reply: FastifyReply,
    call: (controller: AbortController) => Promise<T>,
  ): Promise<T> {
    const controller = new AbortController();
    const abort = () => controller.abort();
    // The client may have left while its credential was checked, and its leaving is not told twice.
    if (reply.raw.destroyed) abort();
    reply.raw.once('close', abort);
    try {
      return await call(controller);
    } finally {
      reply.raw.off('close', abort);
    }
  }

  /** Ends all waiting calls, and from now on no call waits. */
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
