import { getHeapStatistics, setFlagsFromString } from 'node:v8';
import { Loop } from '../core/loop.js';

/** Often enough that a heap does not grow by much more than it should in between. */
const LOOK_EVERY_MS = 250;
/** From here on a heap is large. Ordinary load stays below this, so it is collected as V8 likes. */
export const LARGE_BYTES = 256 * 1024 * 1024;
/** After how much of the growth that V8 allows a large heap is collected, in percent. */
export const LARGE_PERCENT = 15;

/** The engine whose heap is watched; tests replace it. */
interface Engine {
  /** The bytes of all objects, with those that nobody needs any more. */
  usedBytes(): number;
  /** Begins a collection after so much of the allowed growth, in percent; 0 leaves it to the engine. */
  collectAfter(percent: number): void;
}

/**
 * Has a large heap collected earlier. V8 lets a heap grow to up to four times what was alive after the last collection,
 * which saves work. On top of what a loaded leader needs that would be half a gigabyte of garbage, and more with every
 * burst of large requests.
 *
 * The setting is one of the whole process, so this is for processes that are a node and nothing else.
 */
export class HeapPace {
  readonly #loop: Loop;
  #isLarge = false;

  constructor(private readonly engine: Engine = v8) {
    this.#loop = new Loop({
      name: 'heap pace',
      everyMs: LOOK_EVERY_MS,
      pass: async () => this.runOnce(),
      onError: () => undefined,
    });
  }

  start(): this {
    this.#loop.start();
    return this;
  }

  async stop(): Promise<void> {
    await this.#loop.stop();
    this.#change(false);
  }

  runOnce(): void {
    this.#change(this.engine.usedBytes() >= LARGE_BYTES);
  }

  #change(isLarge: boolean): void {
    if (isLarge === this.#isLarge) return;
    this.#isLarge = isLarge;
    this.engine.collectAfter(isLarge ? LARGE_PERCENT : 0);
  }
}

const v8: Engine = {
  usedBytes: () => getHeapStatistics().used_heap_size,
  // V8 reads it whenever it considers a collection, so it may be changed at any time; an engine without it ignores it.
  collectAfter: (percent) => setFlagsFromString(`--incremental-marking-soft-trigger=${percent}`),
};
