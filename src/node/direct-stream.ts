import type { AnswerStream } from '../api/route.js';
import { News } from '../core/news.js';

/** How long nobody looks at an empty stream at most; whoever writes to it wakes the reader at once. */
const LOOK_EVERY_MS = 60_000;

/** A streamed answer inside the process of its node: what is written on one side is read on the other. */
export class DirectStream implements AnswerStream {
  private written: string[] = [];
  private readonly news = new News();
  private readonly reader = new AbortController();
  private isOver = false;
  private error: unknown;

  constructor(private readonly signal: AbortSignal | undefined) {
    if (signal?.aborted) this.reader.abort(signal.reason);
    else signal?.addEventListener('abort', this.leave, { once: true });
  }

  get gone(): AbortSignal {
    return this.reader.signal;
  }

  get unsent(): number {
    return this.written.reduce((sum, { length }) => sum + length, 0);
  }

  open(): void {
    this.news.tell();
  }

  write(piece: string | Buffer): undefined {
    this.written.push(piece.toString());
    this.news.tell();
  }

  drop(): void {
    this.error = new Error('the stream was not read');
    this.reader.abort();
    this.news.tell();
  }

  /** Resolves with the first piece; rejects if there is none because of an error. */
  async begin(told: Promise<void>): Promise<void> {
    const onEnd = (error?: unknown) => {
      this.isOver = true;
      this.error ??= error;
      this.news.tell();
    };
    told.then(() => onEnd(), onEnd);
    await this.news.next(LOOK_EVERY_MS);
    if (this.written.length === 0 && this.error !== undefined) throw this.error;
  }

  async *pieces(): AsyncIterable<string> {
    try {
      for (;;) {
        const pieces = this.written;
        this.written = [];
        if (pieces.length > 0) yield pieces.join('');
        else if (this.signal?.aborted) throw this.signal.reason;
        else if (this.error !== undefined) throw this.error;
        else if (this.isOver) return;
        else await this.news.next(LOOK_EVERY_MS);
      }
    } finally {
      this.leave();
    }
  }

  private readonly leave = (): void => {
    this.signal?.removeEventListener('abort', this.leave);
    this.reader.abort();
    this.news.tell();
  };
}
