import { closeSync, openSync, readdirSync, readSync } from 'node:fs';
import { join } from 'node:path';
import type { Effect } from '../history.js';

const CHUNK_BYTES = 1024 * 1024;

/** A file that is read as it grows. */
interface Followed {
  readonly file: number;
  /** The worker's slot, such as `w2` of `w2.3.effects`. */
  readonly slot: string;
  readonly incarnation: number;
  offset: number;
  /** What follows the last line break. */
  rest: string;
}

/**
 * Follows the files that handlers write their starts and ends to. A run looks a hundred times a second, and each restart
 * of a worker adds a file: so one buffer serves all of them, and a file is closed once its worker's successor has begun.
 */
export class EffectFiles {
  readonly all: Effect[] = [];
  /** How many of them are starts. */
  starts = 0;
  readonly #byOrder = new Map<number, Effect[]>();
  readonly #chunk = Buffer.allocUnsafeSlow(CHUNK_BYTES);
  readonly #followed = new Map<string, Followed>();
  readonly #finished = new Set<string>();

  constructor(private readonly folder: string) {}

  /** Takes in what was written since the last look. */
  look(): void {
    for (const name of readdirSync(this.folder)) {
      if (name.endsWith('.effects') && !this.#finished.has(name) && !this.#followed.has(name))
        this.#open(name);
    }
    for (const [name, followed] of this.#followed) {
      // Decided before reading: a slot starts a process only when the one before has ended.
      const isSucceeded = this.#isSucceeded(followed);
      this.#read(followed);
      if (isSucceeded) this.#finish(name, followed);
    }
  }

  /** The starts and ends of an order that were seen so far. */
  of(order: number): readonly Effect[] {
    return this.#byOrder.get(order) ?? [];
  }

  /** Closes all files; `all` stays. */
  close(): void {
    for (const [name, followed] of this.#followed) this.#finish(name, followed);
  }

  #open(name: string): void {
    const [slot, incarnation] = name.split('.') as [string, string];
    const file = openSync(join(this.folder, name), 'r');
    this.#followed.set(name, { file, slot, incarnation: Number(incarnation), offset: 0, rest: '' });
  }

  #isSucceeded({ slot, incarnation }: Followed): boolean {
    for (const other of this.#followed.values())
      if (other.slot === slot && other.incarnation > incarnation) return true;
    return false;
  }

  #finish(name: string, { file }: Followed): void {
    closeSync(file);
    this.#followed.delete(name);
    this.#finished.add(name);
  }

  #read(followed: Followed): void {
    for (;;) {
      const length = readSync(followed.file, this.#chunk, 0, CHUNK_BYTES, followed.offset);
      if (length === 0) return;
      followed.offset += length;
      const lines = (followed.rest + this.#chunk.toString('latin1', 0, length)).split('\n');
      followed.rest = lines.pop()!;
      for (const line of lines) this.#take(JSON.parse(line) as Effect);
    }
  }

  #take(effect: Effect): void {
    this.all.push(effect);
    if (effect.kind === 'start') this.starts += 1;
    const sameOrder = this.#byOrder.get(effect.n);
    if (sameOrder) sameOrder.push(effect);
    else this.#byOrder.set(effect.n, [effect]);
  }
}
