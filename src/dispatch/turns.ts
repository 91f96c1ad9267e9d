/**
 * At most one leader statement in flight per job. Claim, finish, cancel and change of one job are thereby
 * ordered in memory, and no two of them can interleave in the database.
 *
 * Those who write about thousands of jobs at once, claiming and finishing, do not take each turn here: they mark the
 * job itself, and call `wake` when the mark is gone. To everybody else a marked job's turn is taken.
 */
export class Turns {
  private readonly taken = new Set<string>();
  /** Who waits for a turn. Nearly always empty. */
  private readonly waiting = new Map<string, (() => void)[]>();

  constructor(private readonly isMarked: (jobId: string) => boolean) {}

  has(jobId: string): boolean {
    return this.isTaken(jobId) || this.isMarked(jobId);
  }

  /** Whether the turn was taken here, by somebody who writes about few jobs. */
  isTaken(jobId: string): boolean {
    return this.taken.size > 0 && this.taken.has(jobId);
  }

  /** Takes the turn of a job that nobody has; answers false when somebody has it. */
  tryTake(jobId: string): boolean {
    if (this.has(jobId)) return false;
    this.taken.add(jobId);
    return true;
  }

  /** Resolves when whoever has the turn gives it back. */
  free(jobId: string): Promise<void> {
    if (!this.has(jobId)) return Promise.resolve();
    return new Promise((resolve) => {
      const others = this.waiting.get(jobId);
      if (others) others.push(resolve);
      else this.waiting.set(jobId, [resolve]);
    });
  }

  give(jobId: string): void {
    this.taken.delete(jobId);
    this.wake(jobId);
  }

  /** The turn of a job is free again. */
  wake(jobId: string): void {
    if (this.waiting.size === 0) return;
    const waiting = this.waiting.get(jobId);
    this.waiting.delete(jobId);
    if (waiting) for (const resolve of waiting) resolve();
  }
}
