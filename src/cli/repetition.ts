/** Keeps a log readable while something fails again and again: the same words count once in a while. */
export class Repetition {
  readonly #windowMs: number;
  readonly #now: () => number;
  readonly #saidAt = new Map<string, number>();

  constructor(windowMs: number, now: () => number) {
    this.#windowMs = windowMs;
    this.#now = now;
  }

  /** Whether these words are worth saying: they were not said within the window. */
  isNews(words: string): boolean {
    const now = this.#now();
    for (const [said, at] of this.#saidAt) if (now - at >= this.#windowMs) this.#saidAt.delete(said);
    if (this.#saidAt.has(words)) return false;
    this.#saidAt.set(words, now);
    return true;
  }
}
