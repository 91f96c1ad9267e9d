/** Something that happens again and again, and can be waited for instead of guessed at. */
export class Happening<T = void> {
  readonly all: T[] = [];
  #waiting: { readonly count: number; readonly resolve: () => void }[] = [];

  readonly happen = (value: T): void => {
    this.all.push(value);
    const ready = this.#waiting.filter(({ count }) => this.all.length >= count);
    this.#waiting = this.#waiting.filter(({ count }) => this.all.length < count);
    for (const { resolve } of ready) resolve();
  };

  /** Resolves when it has happened that many times in all. */
  times(count: number): Promise<void> {
    if (this.all.length >= count) return Promise.resolve();
    return new Promise((resolve) => this.#waiting.push({ count, resolve }));
  }
}

/** A door that handlers wait at until the test opens it. */
export class Door {
  #open!: () => void;
  readonly opened = new Promise<void>((resolve) => {
    this.#open = resolve;
  });

  open(): void {
    this.#open();
  }
}
