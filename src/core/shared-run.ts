/**
 * The same work for all who ask for it. A run that is under way may have seen a state from before the question, so whoever
 * asks gets the next run, together with all who ask before it begins: one run at most is under way, and one waits.
 */
export class SharedRun<T> {
  private current: Promise<unknown> = Promise.resolve();
  private next: Promise<T> | undefined;

  constructor(private readonly work: () => Promise<T>) {}

  /** The outcome of a run that begins after this call. */
  ask(): Promise<T> {
    this.next ??= this.queue();
    return this.next;
  }

  private queue(): Promise<T> {
    const run = this.current.then(() => {
      this.next = undefined;
      return this.work();
    });
    this.current = run.catch(() => undefined);
    return run;
  }
}
