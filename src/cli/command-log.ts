import { closeSync, existsSync, mkdirSync, openSync, renameSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';
import { DroppedLines } from '../host/line-log.js';

const DEFAULT_MAX_BYTES = 10 * 1024 * 1024;

/**
 * A log file of limited size. A file that is full, or that is left from the previous start, is renamed to `.1`, which
 * replaces the older one. On a full disk lines are dropped, and the log tells how many once it can be written again.
 */
export class LogFile {
  readonly path: string;
  readonly #maxBytes: number;
  /** Null when the next file could not be opened. */
  #descriptor: number | null;
  #bytes = 0;
  /** Whether the last line was written only in part. */
  #torn = false;
  readonly #dropped = new DroppedLines();

  constructor(path: string, maxBytes = DEFAULT_MAX_BYTES) {
    this.path = path;
    this.#maxBytes = maxBytes;
    mkdirSync(dirname(path), { recursive: true });
    this.#descriptor = this.#openNext();
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
      this.#descriptor = this.#openNext();
    }
    // Before a disk is full it may take part of a line.
    for (let written = 0; written < bytes.length; ) {
      written += writeSync(this.#descriptor, bytes, written);
      this.#torn = written < bytes.length;
    }
    this.#bytes += bytes.length;
  }

  #openNext(): number {
    if (existsSync(this.path)) renameSync(this.path, `${this.path}.1`);
    this.#bytes = 0;
    this.#torn = false;
    return openSync(this.path, 'w', 0o600);
  }
}
