import type { FastifyReply } from 'fastify';
import { PunctualError } from '../../core/errors.js';
import type { WaitKind } from '../route.js';

/**
 * The most calls of one kind that may wait at a node: each holds a connection and some memory. One tenant may have half
 * of them, so that it cannot shut out the others.
 */
const MOST_WAITS = 20_000;

/** The calls that are waiting; each ends when its client leaves or the server closes. */
export class LongPolls {
  private readonly open = new Set<AbortController>();
  private readonly counts: Record<WaitKind, number> = { results: 0, work: 0, nodes: 0 };
  private readonly countsOf = new Map<string, number>();
  private ended = false;

  constructor(private readonly mostWaits = MOST_WAITS) {}

  /** Runs a call that may wait; its signal aborts when the client leaves or the server closes. */
  async run<T>(reply: FastifyReply, kind: WaitKind, call: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const tenant = `${kind} ${reply.request.caller?.tenant ?? ''}`;
    const ofTenant = this.countsOf.get(tenant) ?? 0;
    if (this.counts[kind] >= this.mostWaits) throw tooManyWaits(this.mostWaits);
    if (ofTenant >= this.mostWaits / 2) throw tooManyWaits(this.mostWaits / 2);
    return this.untilGone(reply, async (controller) => {
      if (this.ended) controller.abort();
      this.open.add(controller);
      this.counts[kind] += 1;
      this.countsOf.set(tenant, (this.countsOf.get(tenant) ?? 0) + 1);
      try {
        return await call(controller.signal);
      } catch (error) {
        // An aborted call may end in any error; a client that is still there is told that the server closes.
        if (controller.signal.aborted) throw shuttingDown();
        throw error;
      } finally {
        this.open.delete(controller);
        this.counts[kind] -= 1;
        const left = this.countsOf.get(tenant)! - 1;
        if (left > 0) this.countsOf.set(tenant, left);
        else this.countsOf.delete(tenant);
      }
    });
  }

  /** Runs a call that is forwarded; a closing server aborts it only if it had begun to wait. */
  async runOn<T>(
    reply: FastifyReply,
    kind: WaitKind | undefined,
    call: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    if (kind !== undefined) return this.run(reply, kind, call);
    return this.untilGone(reply, ({ signal }) => call(signal));
  }

  private async untilGone<T>(
    reply: FastifyReply,
    call: (controller: AbortController) => Promise<T>,
  ): Promise<T> {
    const controller = new AbortController();
    const abort = () => controller.abort();
    // The client may have left while its credential was checked; that event is not repeated.
    if (reply.raw.destroyed) abort();
    reply.raw.once('close', abort);
    try {
      return await call(controller);
    } finally {
      reply.raw.off('close', abort);
    }
  }

  /** Aborts all waiting calls, and lets no call wait from now on. */
  end(): void {
    this.ended = true;
    for (const controller of this.open) controller.abort();
  }
}

/** The error for requests while the node stops. */
export function shuttingDown(): PunctualError {
  return new PunctualError(
    'SHUTTING_DOWN',
    'The node is stopping; ask another one, or this one again later.',
    {
      retryAfter: 1,
    },
  );
}

function tooManyWaits(most: number): PunctualError {
  const detail = `At this node ${most} calls wait already; ask another one, or this one again later.`;
  return new PunctualError('TOO_MANY_WAITS', detail, { retryAfter: 1 });
}
