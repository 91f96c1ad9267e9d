/** An answer that is made at most once in a while. Those who ask meanwhile share it. */
export class Recent<T> {
  private answer: Promise<T> | undefined;
  private madeAt = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly maxAgeMs: number,
    private readonly make: () => Promise<T>,
    /** Monotonic, in milliseconds. */
    private readonly now: () => number = () => performance.now(),
  ) {}

  /** The last answer if it is recent or being made, else a new one. An answer that failed is never kept. */
  get(): Promise<T> {
    if (this.answer && this.now() - this.madeAt < this.maxAgeMs) return this.answer;
    this.madeAt = Number.POSITIVE_INFINITY;
    const answer = this.make();
    this.answer = answer;
    answer.then(
      () => {
        this.madeAt = this.now();
      },
      () => {
        this.answer = undefined;
      },
    );
    return answer;
  }
}
