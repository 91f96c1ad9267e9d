const EVERY_MS = 3_000;

/** Tells people on standard error what runs and how it goes: on a terminal in place, else a line every few seconds. */
export class Progress {
  #toldAt = 0;
  #open = false;

  constructor(private readonly stream: NodeJS.WriteStream = process.stderr) {}

  /** Something new begins or has happened. */
  say(line: string): void {
    this.#closeLine();
    this.stream.write(`${line}\n`);
    this.#toldAt = performance.now();
  }

  /** How what runs is going; most of these are left out where lines cannot be overwritten. */
  tell(line: string): void {
    if (this.stream.isTTY) {
      this.stream.write(`\r\u001b[K  ${line}`);
      this.#open = true;
    } else if (performance.now() - this.#toldAt >= EVERY_MS) {
      this.stream.write(`  ${line}\n`);
      this.#toldAt = performance.now();
    }
  }

  #closeLine(): void {
    if (this.#open) this.stream.write('\r\u001b[K');
    this.#open = false;
  }
}
