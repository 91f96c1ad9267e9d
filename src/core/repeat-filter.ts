/** How many different messages are let through within one window. */
const MAX_MESSAGES = 1_000;

/** Suppresses messages that repeat within a time window, so that a log stays readable while something keeps failing. */
export class RepeatFilter {
  readonly #windowMs: number;
  readonly #now: () => number;
  readonly #seenAt = new Map<string, number>();

  constructor(windowMs: number, now: () => number) {
    this.#windowMs = windowMs;
    this.#now = now;
  }

  /** Whether the message did not occur within the window. */
  isNew(message: string): boolean {
    const now = this.#now();
    for (const [seen, at] of this.#seenAt) if (now - at >= this.#windowMs) this.#seenAt.delete(seen);
    if (this.#seenAt.has(message) || this.#seenAt.size >= MAX_MESSAGES) return false;
    this.#seenAt.set(message, now);
    return true;
  }
}
