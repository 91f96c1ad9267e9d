import { closeSync, openSync, readdirSync, readSync } from 'node:fs';
import { join } from 'node:path';
import type { Effect } from '../history.js';

const CHUNK_BYTES = 1024 * 1024;

/** Follows the files that handlers write their starts and ends to. */
export class EffectFiles {
  readonly all: Effect[] = [];
  /** How many of them are starts. */
  starts = 0;
  readonly #read = new Map<string, { offset: number; rest: string }>();

  constructor(private readonly folder: string) {}

  /** Takes in what was written since the last look; answers with it. */
  look(): readonly Effect[] {
    const before = this.all.length;
    for (const name of readdirSync(this.folder)) {
      if (name.endsWith('.effects')) this.#follow(join(this.folder, name));
    }
    return this.all.slice(before);
  }

  #follow(path: string): void {
    const state = this.#read.get(path) ?? { offset: 0, rest: '' };
    this.#read.set(path, state);
    const file = openSync(path, 'r');
    const chunk = Buffer.allocUnsafe(CHUNK_BYTES);
    try {
      for (;;) {
        const length = readSync(file, chunk, 0, CHUNK_BYTES, state.offset);
        if (length === 0) return;
        state.offset += length;
        // A line is in one piece or not there: only what follows the last line break is kept for later.
        const lines = (state.rest + chunk.toString('latin1', 0, length)).split('\n');
        state.rest = lines.pop()!;
        for (const line of lines) this.#take(JSON.parse(line) as Effect);
      }
    } finally {
      closeSync(file);
    }
  }

  #take(effect: Effect): void {
    this.all.push(effect);
    if (effect.kind === 'start') this.starts += 1;
  }
}
