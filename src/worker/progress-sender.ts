import type { ProgressReport } from '../core/wire.js';

type Latest = Omit<ProgressReport, 'fence'>;

/**
 * Sends the progress of one attempt. While one message is on its way only the latest of those that follow is
 * kept: a handler that reports after every row must not wait for, or cause, a request per row.
 */
export class ProgressSender {
  readonly #send: (latest: Latest) => Promise<void>;
  #next: Latest | null = null;
  #sending: Promise<void> | null = null;

  /** `send` must not reject; what fails is lost, and the next message says it better anyway. */
  constructor(send: (latest: Latest) => Promise<void>) {
    this.#send = send;
  }

  /** Resolves when this message, or a later one in its place, was sent or could not be. */
  report(fraction: number, message: string | undefined): Promise<void> {
    const progress = Number.isNaN(fraction) ? 0 : Math.min(Math.max(fraction, 0), 1);
    this.#next = { progress, ...(message !== undefined && { message: String(message) }) };
    this.#sending ??= this.#sendAll();
    return this.#sending;
  }

  /** Resolves when nothing is on its way any more. */
  async flush(): Promise<void> {
    await this.#sending;
  }

  async #sendAll(): Promise<void> {
    while (this.#next) {
      const latest = this.#next;
      this.#next = null;
      await this.#send(latest);
    }
    this.#sending = null;
  }
}
