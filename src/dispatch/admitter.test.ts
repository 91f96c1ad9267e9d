import fc from 'fast-check';
import { expect, it } from 'vitest';
import { inFairOrder } from './admitter.js';

const job = (tenant: string, bytes: number) => ({ tenant, bytes });

it('a small job does not wait for the many large ones of somebody else', () => {
  const large = Array.from({ length: 100 }, () => job('a', 1_000));
  const small = job('b', 10);
  expect(inFairOrder([...large, small]).indexOf(small)).toBe(1);
});

it('tenants take turns by bytes, and the jobs of each keep their order', () => {
  const jobs = fc.array(
    fc.record({ tenant: fc.constantFrom('a', 'b', 'c'), bytes: fc.integer({ min: 1, max: 100 }) }),
  );
  fc.assert(
    fc.property(jobs, (drawn) => {
      const ordered = inFairOrder(drawn);
      expect(ordered).toHaveLength(drawn.length);
      const had: Record<string, number> = {};
      let last = 0;
      for (const { tenant, bytes } of ordered) {
        const before = had[tenant] ?? 0;
        expect(before).toBeGreaterThanOrEqual(last);
        last = before;
        had[tenant] = before + bytes;
      }
      for (const tenant of ['a', 'b', 'c']) {
        const of = (list: typeof drawn) => list.filter((each) => each.tenant === tenant);
        expect(of(ordered)).toEqual(of(drawn));
      }
    }),
  );
});
