/** Somebody who waits for a turn. */
interface Waiter {
  readonly resolve: () => void;
  readonly reject: (reason: Error) => void;
}

/**
 * A mutex per job: at most one leader statement about it is in flight. Claim, finish, cancel and change of one job are
 * thereby ordered in memory, and no two of them can interleave in the database.
 *
 * Claimer and finisher, which write about thousands of jobs at once, do not take each turn here: they mark the job
 * itself, and call `wake` when the mark is gone. To everybody else the turn of a marked job is taken.
 */
export class Turns {
  private readonly taken = new Set<string>();
  /** Callbacks of those who wait, by job. Nearly always empty. */
  private readonly waiting = new Map<string, Waiter[]>();
  /** Why nobody waits any more; null during the term. */
  private over: Error | null = null;

  constructor(private readonly isMarked: (jobId: string) => boolean) {}

  /** Whether the turn is taken, here or by a mark. */
  has(jobId: string): boolean {
    return this.isTaken(jobId) || this.isMarked(jobId);
  }

  /** Whether the turn was taken here, not by a mark. */
  isTaken(jobId: string): boolean {
    return this.taken.size > 0 && this.taken.has(jobId);
  }

  /** Takes the turn if it is free; answers whether it did. */
  tryTake(jobId: string): boolean {
    if (this.has(jobId)) return false;
    this.taken.add(jobId);
    return true;
  }

  /** Resolves when the turn is released; others who wait may take it first. Fails when the term is over. */
  untilFree(jobId: string): Promise<void> {
    if (this.over) return Promise.reject(this.over);
    if (!this.has(jobId)) return Promise.resolve();
    return new Promise((resolve, reject) => {
      const others = this.waiting.get(jobId);
      if (others) others.push({ resolve, reject });
      else this.waiting.set(jobId, [{ resolve, reject }]);
    });
  }

  /** Ends every wait: after the term, the mark of a job whose end could not be stored is never removed. */
  stop(reason: Error): void {
    this.over = reason;
    for (const others of this.waiting.values()) for (const { reject } of others) reject(reason);
    this.waiting.clear();
  }

  release(jobId: string): void {
    this.taken.delete(jobId);
    this.wake(jobId);
  }

  /** Tells those who wait that the turn is free. */
  wake(jobId: string): void {
    if (this.waiting.size === 0) return;
    const waiting = this.waiting.get(jobId);
    this.waiting.delete(jobId);
    if (waiting) for (const { resolve } of waiting) resolve();
  }
}
