import { inspect } from 'node:util';
import type { Clock, Timer } from '../core/clock.js';
import type { JobLog } from '../core/task.js';
import { LOG_LEVELS, type LogLevel, type LogLine, type ProgressReport } from '../core/wire.js';
import { pause } from '../transport/pause.js';
import { monotonic } from './worker-clock.js';

/** How long lines are gathered before they are sent while the job runs. */
const GATHER_MS = 200;
const MAX_LINES = 500;
/** What one request carries, well below what a server takes. */
const MAX_BATCH_LENGTH = 128 * 1024;
const MAX_LINE_LENGTH = 16 * 1024;
const RETRY_MS = 500;

/** Whether lines were taken, may be sent again later, or will never be taken. */
export type LogDelivery = 'taken' | 'later' | 'refused';

/**
 * Gathers the log of one attempt and sends it in batches, in order. What could not be sent is kept and tried
 * again, up to a bound of memory: a log is worth less than the job it tells about.
 */
export class LogSender {
  readonly #send: (lines: readonly LogLine[]) => Promise<LogDelivery>;
  readonly #clock: Pick<Clock, 'now'>;
  readonly #maxBytes: number;
  #lines: LogLine[] = [];
  #bytes = 0;
  #timer: Timer | null = null;
  #sending: Promise<LogDelivery> | null = null;

  /** `send` must not reject. `maxBytes` bounds what one attempt may log; what is beyond it is left out. */
  constructor(
    send: (lines: readonly LogLine[]) => Promise<LogDelivery>,
    clock: Pick<Clock, 'now'>,
    maxBytes: number,
  ) {
    this.#send = send;
    this.#clock = clock;
    this.#maxBytes = maxBytes;
  }

  /** The function handlers call. */
  readonly log: JobLog = Object.assign(
    (message: unknown) => this.#add('info', message),
    Object.fromEntries(
      LOG_LEVELS.map((level) => [level, (message: unknown) => this.#add(level, message)]),
    ) as {
      [Level in LogLevel]: (message: unknown) => void;
    },
  );

  /** Sends what is left, trying for a while if the scheduler does not answer. */
  async flush(patienceMs: number): Promise<void> {
    this.#timer?.cancel();
    const until = monotonic.now() + patienceMs;
    while ((this.#sending || this.#lines.length > 0) && monotonic.now() < until) {
      const delivery = await (this.#sending ?? this.#sendBatch());
      if (delivery === 'later') await pause(Math.min(RETRY_MS, Math.max(0, until - monotonic.now())));
    }
  }

  #add(level: LogLevel, message: unknown): void {
    if (this.#bytes > this.#maxBytes) return;
    const text = (typeof message === 'string' ? message : inspect(message)).slice(0, MAX_LINE_LENGTH);
    this.#bytes += Buffer.byteLength(text) + 64;
    const full = this.#bytes > this.#maxBytes;
    this.#lines.push({
      at: new Date(this.#clock.now()).toISOString(),
      level: full ? 'warn' : level,
      message: full ? 'The log of this attempt is full; further lines are left out.' : text,
    });
    if (this.#sending !== null) return;
    if (this.#lines.length >= MAX_LINES) this.#sendInBackground();
    else this.#timer ??= monotonic.at(monotonic.now() + GATHER_MS, () => this.#sendInBackground());
  }

  #sendInBackground(): void {
    this.#timer?.cancel();
    this.#timer = null;
    if (this.#sending !== null) return;
    void this.#sendBatch().then((delivery) => {
      if (this.#lines.length > 0) {
        const restMs = delivery === 'later' ? RETRY_MS : 0;
        this.#timer ??= monotonic.at(monotonic.now() + restMs, () => this.#sendInBackground());
      }
    });
  }

  #sendBatch(): Promise<LogDelivery> {
    const batch = this.#nextBatch();
    this.#sending = this.#send(batch).then((delivery) => {
      this.#sending = null;
      if (delivery !== 'later') this.#lines.splice(0, batch.length);
      return delivery;
    });
    return this.#sending;
  }
  #nextBatch(): LogLine[] {
    let length = 0;
    const end = this.#lines.findIndex(({ message }, index) => {
      length += message.length;
      return index === MAX_LINES || (index > 0 && length > MAX_BATCH_LENGTH);
    });
    return end === -1 ? this.#lines.slice() : this.#lines.slice(0, end);
  }
}

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
