import { inspect } from 'node:util';
import type { Clock, Timer } from '../core/clock.js';
import type { JobLog } from '../core/task.js';
import { LOG_LEVELS, type LogLevel, type LogLine, type ProgressReport } from '../core/wire.js';
import { pause } from '../transport/pause.js';
import { monotonic } from './worker-clock.js';

/** How long lines are collected before they are sent. */
const GATHER_MS = 200;
const MAX_LINES = 500;
/** The length of the messages in one request, well below what a server accepts. */
const MAX_BATCH_LENGTH = 128 * 1024;
const MAX_LINE_LENGTH = 16 * 1024;
const RETRY_MS = 500;

/** Whether the scheduler stored the lines, may store them later, or refuses them. */
export type LogDelivery = 'stored' | 'later' | 'refused';

/**
 * Sends the log of one attempt in batches, in order. Lines that could not be sent are kept and sent again; a limit on
 * their total size bounds the memory.
 */
export class LogSender {
  readonly #send: (lines: readonly LogLine[]) => Promise<LogDelivery>;
  readonly #clock: Pick<Clock, 'now'>;
  readonly #maxBytes: number;
  #lines: LogLine[] = [];
  #bytes = 0;
  #timer: Timer | null = null;
  #sending: Promise<LogDelivery> | null = null;

  /** `send` must not reject. Lines beyond `maxBytes` in all are left out. */
  constructor(
    send: (lines: readonly LogLine[]) => Promise<LogDelivery>,
    clock: Pick<Clock, 'now'>,
    maxBytes: number,
  ) {
    this.#send = send;
    this.#clock = clock;
    this.#maxBytes = maxBytes;
  }

  /** The function that handlers call. */
  readonly log: JobLog = Object.assign(
    (message: unknown) => this.#add('info', message),
    Object.fromEntries(
      LOG_LEVELS.map((level) => [level, (message: unknown) => this.#add(level, message)]),
    ) as {
      [Level in LogLevel]: (message: unknown) => void;
    },
  );

  /** Sends the remaining lines; gives up after `patienceMs` if the scheduler does not answer. */
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
 * Sends the progress of one attempt. While a request is in flight only the latest report is kept, so that a handler
 * that reports after every row neither causes nor waits for a request per row.
 */
export class ProgressSender {
  readonly #send: (latest: Latest) => Promise<void>;
  #next: Latest | null = null;
  #sending: Promise<void> | null = null;

  /** `send` must not reject. A report that fails is lost; the next one replaces it anyway. */
  constructor(send: (latest: Latest) => Promise<void>) {
    this.#send = send;
  }

  /** Resolves when this report, or a later one that replaced it, was sent or has failed. */
  report(fraction: number, message: string | undefined): Promise<void> {
    const progress = Number.isNaN(fraction) ? 0 : Math.min(Math.max(fraction, 0), 1);
    this.#next = { progress, ...(message !== undefined && { message: String(message) }) };
    this.#sending ??= this.#sendAll();
    return this.#sending;
  }

  /** Resolves when no request is in flight. */
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
