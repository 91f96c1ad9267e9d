import { closeSync, existsSync, mkdirSync, openSync, renameSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';

const DEFAULT_MAX_BYTES = 10 * 1024 * 1024;

/**
 * A log that cannot fill the disk: the one of the previous start, or the first half of a long one, is kept
 * beside it as `.1`, and nothing older.
 */
export class LogFile {
  readonly path: string;
  readonly #maxBytes: number;
  #descriptor: number;
  #bytes = 0;

  constructor(path: string, maxBytes = DEFAULT_MAX_BYTES) {
    this.path = path;
    this.#maxBytes = maxBytes;
    mkdirSync(dirname(path), { recursive: true });
    this.#descriptor = this.#begin();
  }

  /** Appends one line. */
  write(line: string): void {
    const bytes = Buffer.from(`${line}\n`);
    if (this.#bytes > 0 && this.#bytes + bytes.length > this.#maxBytes) {
      closeSync(this.#descriptor);
      this.#descriptor = this.#begin();
    }
    writeSync(this.#descriptor, bytes);
    this.#bytes += bytes.length;
  }

  close(): void {
    closeSync(this.#descriptor);
  }

  #begin(): number {
    if (existsSync(this.path)) renameSync(this.path, `${this.path}.1`);
    this.#bytes = 0;
    return openSync(this.path, 'w', 0o600);
  }
}
