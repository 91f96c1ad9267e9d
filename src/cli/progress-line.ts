import { truncate } from './text-width.js';

/** A bar of the given width for a fraction between 0 and 1. */
export function progressBar(fraction: number, width: number): string {
  const share = Number.isFinite(fraction) ? Math.min(1, Math.max(0, fraction)) : 0;
  const filled = Math.floor(share * width);
  return '█'.repeat(filled) + '░'.repeat(width - filled);
}

interface Screen {
  readonly isTTY?: boolean | undefined;
  readonly columns?: number | undefined;
  write(text: string): unknown;
}

interface ProgressOptions {
  readonly screen: Screen;
  /** Milliseconds on any clock that only moves forward. */
  readonly now: () => number;
  /** The shortest time between two lines where there is no terminal. */
  readonly plainEveryMs?: number;
}

/**
 * Progress on stderr: on a terminal one line that is redrawn in place; elsewhere a plain line from time to time, so
 * that log files stay readable.
 */
export class Progress {
  readonly #screen: Screen;
  readonly #now: () => number;
  readonly #plainEveryMs: number;
  #lastPlainAt = Number.NEGATIVE_INFINITY;
  #drawn = false;

  constructor(options: ProgressOptions) {
    this.#screen = options.screen;
    this.#now = options.now;
    this.#plainEveryMs = options.plainEveryMs ?? 2_000;
  }

  /** Whether progress is drawn in place, so that callers may refresh it often. */
  get live(): boolean {
    return this.#screen.isTTY === true;
  }

  /** Shows the progress: `bar` on a terminal, `plain` elsewhere. The last line is written however soon it follows. */
  show(bar: string, plain: string, isLast = false): void {
    if (this.live) {
      this.#screen.write(`\r\u001b[2K${truncate(bar, (this.#screen.columns ?? 80) - 1)}`);
      this.#drawn = true;
      return;
    }
    const now = this.#now();
    if (!isLast && now - this.#lastPlainAt < this.#plainEveryMs) return;
    this.#lastPlainAt = now;
    this.#screen.write(`${plain}\n`);
  }

  /** Writes a permanent line above the one that is redrawn. */
  line(text: string): void {
    this.clear();
    this.#screen.write(`${text}\n`);
  }

  /** Removes the redrawn line; must be called before anything else is written to the terminal. */
  clear(): void {
    if (!this.#drawn) return;
    this.#screen.write('\r\u001b[2K');
    this.#drawn = false;
  }
}
