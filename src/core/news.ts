/** Something that happens now and then, and those who wait for the next time. */
export class News {
  private readonly waiting = new Set<() => void>();

  /** It has happened: everybody who waits goes on. */
  tell(): void {
    const waiting = [...this.waiting];
    this.waiting.clear();
    for (const goOn of waiting) goOn();
  }

  /** Resolves the next time it happens, or when `ms` have passed. */
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
