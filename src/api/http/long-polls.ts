import type { FastifyReply } from 'fastify';
import { PunctualError } from '../../core/errors.js';
import type { Caller } from '../caller.js';
import type { WaitKind } from '../route.js';
import { TenantRoom } from '../tenant-room.js';

/** How many calls of one kind may wait at a node at a time: each holds a connection and some memory. */
const MOST_WAITS = 20_000;

/** The same for those who listen to events, which are written to each of them. */
const MOST_LISTENERS = 1_000;

/** Calls back with an error when the key of a caller is not valid any more; answers with what ends the watch. */
export type WatchKey = (caller: Caller, onInvalid: (error: PunctualError) => void) => () => void;

/** The calls that are waiting; each ends when its client leaves, its key ends or the server closes. */
export class LongPolls {
  private readonly open = new Set<AbortController>();
  private readonly rooms: Readonly<Record<WaitKind, TenantRoom>>;
  private ended = false;

  constructor(
    mostWaits = MOST_WAITS,
    private readonly watch: WatchKey = () => () => undefined,
  ) {
    const room = () => new TenantRoom(mostWaits);
    const events = new TenantRoom(Math.min(mostWaits, MOST_LISTENERS));
    this.rooms = { results: room(), work: room(), nodes: room(), bytes: room(), events };
  }

  /** Runs a call that may wait; its signal aborts when the client leaves or the server closes. */
  async run<T>(reply: FastifyReply, kind: WaitKind, call: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const { caller } = reply.request;
    const tenant = caller?.tenant ?? '';
    const room = this.rooms[kind];
    if (!room.tryTake(tenant)) throw kind === 'events' ? tooManyListeners() : tooManyWaits();
    return this.untilGone(reply, async (controller) => {
      if (this.ended) controller.abort();
      this.open.add(controller);
      let refusal: PunctualError | undefined;
      const isOfKey = caller !== null && !('jobId' in caller);
      const unwatch = isOfKey
        ? this.watch(caller, (error) => {
            refusal = error;
            controller.abort();
          })
        : undefined;
      try {
        const answer = await call(controller.signal);
        // What was found meanwhile is not for this caller any more.
        if (refusal) throw refusal;
        return answer;
      } catch (error) {
        if (refusal) throw refusal;
        // An aborted call may end in any error; a client that is still there is told that the server closes.
        if (controller.signal.aborted) throw shuttingDown();
        throw error;
      } finally {
        unwatch?.();
        this.open.delete(controller);
        room.giveBack(tenant);
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

function tooManyListeners(): PunctualError {
  const detail =
    'As many listen to events at this node as it can serve, or as one tenant may; ask another one.';
  return new PunctualError('TOO_MANY_LISTENERS', detail, { retryAfter: 10 });
}

function tooManyWaits(): PunctualError {
  const detail = 'As many calls wait at this node as it can hold; ask another one, or this one again later.';
  return new PunctualError('TOO_MANY_WAITS', detail, { retryAfter: 1 });
}
