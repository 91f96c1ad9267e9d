import type { Clock, Timer } from './clock.js';

/** How many lines are written in one window: of one subject, and of all. */
const LINES_PER_SUBJECT = 5;
const LINES_PER_WINDOW = 50;
const WINDOW_MS = 1_000;
/** Subjects beyond these share one count. */
const MAX_SUBJECTS = 50;
/** The subject of the lines whose own subject is not counted. */
export const OTHER_SUBJECTS = '';

/**
 * Keeps a log readable, and whoever writes it fast, when the same thing happens thousands of times a second: of each
 * subject a few lines a second are written, and at the end of the second the number of those that were not.
 */
export class LineSampler {
  readonly #clock: Pick<Clock, 'after'>;
  readonly #onLeftOut: (subject: string, count: number) => void;
  readonly #counts = new Map<string, { written: number; leftOut: number }>();
  #written = 0;
  #window: Timer | null = null;

  constructor(clock: Pick<Clock, 'after'>, onLeftOut: (subject: string, count: number) => void) {
    this.#clock = clock;
    this.#onLeftOut = onLeftOut;
  }

  /** Whether to write a line about the subject now; if not, it is counted. */
  allows(subject: string): boolean {
    this.#window ??= this.#clock.after(WINDOW_MS, () => this.close());
    const counts = this.#countsOf(subject);
    if (counts.written >= LINES_PER_SUBJECT || this.#written >= LINES_PER_WINDOW) {
      counts.leftOut += 1;
      return false;
    }
    counts.written += 1;
    this.#written += 1;
    return true;
  }

  /** Ends the window: tells how many lines were left out, and begins to count anew with the next line. */
  close(): void {
    this.#window?.cancel();
    this.#window = null;
    this.#written = 0;
    const ended = [...this.#counts];
    this.#counts.clear();
    for (const [subject, { leftOut }] of ended) if (leftOut > 0) this.#onLeftOut(subject, leftOut);
  }

  #countsOf(subject: string): { written: number; leftOut: number } {
    const own = this.#counts.get(subject);
    if (own) return own;
    if (this.#counts.size >= MAX_SUBJECTS && subject !== OTHER_SUBJECTS)
      return this.#countsOf(OTHER_SUBJECTS);
    const fresh = { written: 0, leftOut: 0 };
    this.#counts.set(subject, fresh);
    return fresh;
  }
}
