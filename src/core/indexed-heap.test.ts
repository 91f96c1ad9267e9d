import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { IndexedHeap, type Placed } from './indexed-heap.js';

interface Item extends Placed {
  readonly id: number;
  order: number;
}

describe('an indexed heap', () => {
  it('always has the smallest first, whatever is put in, changed and taken out', () => {
    const steps = fc.array(fc.tuple(fc.nat(15), fc.option(fc.nat(20))), { maxLength: 200, size: 'max' });
    fc.assert(
      fc.property(steps, (changes) => {
        const items: Item[] = Array.from({ length: 16 }, (_, id) => ({ id, order: 0, place: -1 }));
        const heap = new IndexedHeap<Item>((a, b) => a.order < b.order);
        const inside = new Set<Item>();
        for (const [which, order] of changes) {
          const item = items[which]!;
          if (order === null) {
            heap.remove(item);
            inside.delete(item);
          } else {
            item.order = order;
            heap.update(item);
            inside.add(item);
          }
          expect(heap.size).toBe(inside.size);
          const smallest = Math.min(...[...inside].map((each) => each.order));
          expect(heap.peek()?.order ?? Number.POSITIVE_INFINITY).toBe(smallest);
        }
      }),
    );
  });
});
