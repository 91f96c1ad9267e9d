import fc from 'fast-check';
import { expect, it } from 'vitest';
import { Top } from './top.js';

it('the first few of many are those that a sort would give, and everything else is handed back once', () => {
  fc.assert(
    fc.property(fc.uniqueArray(fc.integer()), fc.nat({ max: 10 }), (values, limit) => {
      const top = new Top<number>(limit, (a, b) => a < b);
      const others = values.map((value) => top.add(value)).filter((value) => value !== undefined);
      const sorted = values.toSorted((a, b) => a - b);
      expect(top.take()).toEqual(sorted.slice(0, limit));
      expect(others.toSorted((a, b) => a - b)).toEqual(sorted.slice(limit));
    }),
  );
});
