import { closeSync, existsSync, mkdirSync, openSync, renameSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';
import { DroppedLines } from './log.js';

const DEFAULT_MAX_BYTES = 10 * 1024 * 1024;

/**
 * A log that cannot fill the disk: the one of the previous start, or the first half of a long one, is kept
 * beside it as `.1`, and nothing older. Nor can a disk that others have filled do any harm: what cannot be written is
 * dropped, and the log says how much that was when it can be written again.
 */
export class LogFile {
  readonly path: string;
  readonly #maxBytes: number;
  /** Null when the next file could not be begun. */
  #descriptor: number | null;
  #bytes = 0;
  /** Whether the last line is there in part only. */
  #torn = false;
  readonly #dropped = new DroppedLines();

  constructor(path: string, maxBytes = DEFAULT_MAX_BYTES) {
    this.path = path;
    this.#maxBytes = maxBytes;
    mkdirSync(dirname(path), { recursive: true });
    this.#descriptor = this.#begin();
  }

  /** Appends one line; never throws. */
  write(line: string): void {
    const { count, notice } = this.#dropped.take();
    try {
      this.#append(Buffer.from(`${this.#torn ? '\n' : ''}${notice}${line}\n`));
    } catch (error) {
      this.#dropped.add(count + 1, error);
    }
  }

  close(): void {
    if (this.#descriptor !== null) closeSync(this.#descriptor);
  }

  #append(bytes: Buffer): void {
    if (this.#descriptor === null || (this.#bytes > 0 && this.#bytes + bytes.length > this.#maxBytes)) {
      this.close();
      this.#descriptor = null;
      this.#descriptor = this.#begin();
    }
    // A disk may take a part of a line before it is full.
    for (let written = 0; written < bytes.length; ) {
      written += writeSync(this.#descriptor, bytes, written);
      this.#torn = written < bytes.length;
    }
    this.#bytes += bytes.length;
  }

  #begin(): number {
    if (existsSync(this.path)) renameSync(this.path, `${this.path}.1`);
    this.#bytes = 0;
    this.#torn = false;
    return openSync(this.path, 'w', 0o600);
  }
}
