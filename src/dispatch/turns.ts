/**
 * At most one leader statement in flight per job. Claim, finish, cancel and change of one job are thereby
 * ordered in memory, and no two of them can interleave in the database.
 */
export class Turns {
  /** Who waits for each turn that is taken; null while nobody does. */
  private readonly taken = new Map<string, (() => void)[] | null>();

  has(jobId: string): boolean {
    return this.taken.has(jobId);
  }

  /** Takes the turn of a job that nobody has; answers false when somebody has it. */
  tryTake(jobId: string): boolean {
    if (this.taken.has(jobId)) return false;
    this.taken.set(jobId, null);
    return true;
  }

  /** Waits for the turn of a job and takes it. */
  async take(jobId: string): Promise<void> {
    while (!this.tryTake(jobId)) await this.free(jobId);
  }

  /** Resolves when whoever has the turn gives it back. */
  free(jobId: string): Promise<void> {
    const waiting = this.taken.get(jobId);
    if (waiting === undefined) return Promise.resolve();
    return new Promise((resolve) => {
      if (waiting) waiting.push(resolve);
      else this.taken.set(jobId, [resolve]);
    });
  }

  give(jobId: string): void {
    const waiting = this.taken.get(jobId);
    this.taken.delete(jobId);
    if (waiting) for (const resolve of waiting) resolve();
  }
}
