import type { Transport } from '../transport/transport.js';

/** How long one long poll waits for an end. */
const WAIT_MS = 20_000;
/** The same when very many ends are awaited at once, so that all of them get a connection in turn. */
const CROWDED_WAIT_MS = 1_000;
const CROWD = 256;
const WAIT_SLACK_MS = 10_000;

/** Waits for the ends of jobs, workflows or batches with long polls. */
export class EndWait {
  readonly #transport: Transport;
  #waiting = 0;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Reads what is at the path until it has ended, however long that takes. */
  async of<T>(path: string, hasEnded: (read: T) => boolean, signal: AbortSignal | undefined): Promise<T> {
    this.#waiting += 1;
    try {
      for (;;) {
        signal?.throwIfAborted();
        const waitMs = this.#waiting > CROWD ? CROWDED_WAIT_MS : WAIT_MS;
        const read = await this.#transport.request<T>('GET', `${path}?wait=${waitMs}ms`, {
          longPoll: true,
          timeoutMs: waitMs + WAIT_SLACK_MS,
          ...(signal && { signal }),
        });
        if (hasEnded(read)) return read;
      }
    } finally {
      this.#waiting -= 1;
    }
  }
}
