import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Heap, type HeapItem, IndexedHeap } from './heap.js';

interface Item extends HeapItem {
  readonly id: number;
  order: number;
}

const numbers = () => new Heap<number>((a, b) => a < b);

function popAll(heap: Heap<number>): number[] {
  const values: number[] = [];
  for (let value = heap.pop(); value !== undefined; value = heap.pop()) values.push(value);
  return values;
}

describe('a heap', () => {
  it('is empty in the beginning', () => {
    const heap = numbers();
    expect([heap.size, heap.peek(), heap.pop(), heap.drain()]).toEqual([0, undefined, undefined, []]);
  });

  it('gives back what it was given, in order', () => {
    fc.assert(
      fc.property(fc.array(fc.integer()), (values) => {
        const heap = numbers();
        for (const value of values) heap.push(value);
        expect(popAll(heap)).toEqual([...values].sort((a, b) => a - b));
        expect(heap.size).toBe(0);
      }),
    );
  });

  it('always has the smallest first, however pushes and pops alternate', () => {
    fc.assert(
      fc.property(fc.array(fc.option(fc.integer({ min: 0, max: 20 }))), (steps) => {
        const heap = numbers();
        let model: number[] = [];
        for (const step of steps) {
          if (step !== null) {
            heap.push(step);
            model = [...model, step].sort((a, b) => a - b);
          } else expect(heap.pop()).toBe(model.shift());
          expect(heap.peek()).toBe(model[0]);
          expect(heap.size).toBe(model.length);
        }
      }),
    );
  });

  it('can be emptied at once and used again', () => {
    const heap = numbers();
    for (const value of [3, 1, 2]) heap.push(value);
    expect(heap.drain().sort()).toEqual([1, 2, 3]);
    heap.push(5);
    heap.push(4);
    expect(popAll(heap)).toEqual([4, 5]);
  });
});

describe('an indexed heap', () => {
  it('always has the smallest first, whatever is put in, changed and taken out', () => {
    const steps = fc.array(fc.tuple(fc.nat(15), fc.option(fc.nat(20))), { maxLength: 200, size: 'max' });
    fc.assert(
      fc.property(steps, (changes) => {
        const items: Item[] = Array.from({ length: 16 }, (_, id) => ({ id, order: 0, heapIndex: -1 }));
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
