/** An event that recurs, and those who wait for its next occurrence. */
export class News {
  private readonly waiting = new Set<() => void>();

  /** The event has happened: everybody who waits goes on. */
  tell(): void {
    const waiting = [...this.waiting];
    this.waiting.clear();
    for (const goOn of waiting) goOn();
  }

  /** Resolves at the next event, or after `ms`. */
  next(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const goOn = () => {
        clearTimeout(timer);
        this.waiting.delete(goOn);
        resolve();
      };
      const timer = setTimeout(goOn, ms);
      this.waiting.add(goOn);
    });
  }
}
