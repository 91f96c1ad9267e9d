import fc from 'fast-check';
import { expect, it } from 'vitest';
import { buildSubmissions, inChunks } from './task-submission.js';

it('a bulk is divided so that every job is sent once, in order, within the limits of a request', () => {
  const maxJobs = 7;
  const maxBytes = 164;
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 1, max: 90 })), (sizes) => {
      const ranges = [...inChunks(sizes, maxJobs, maxBytes)];
      expect(ranges.flatMap(([from, to]) => sizes.slice(from, to))).toEqual(sizes);
      for (const [from, to] of ranges) {
        expect(to - from).toBeGreaterThan(0);
        expect(to - from).toBeLessThanOrEqual(maxJobs);
        const bytes = sizes.slice(from, to).reduce((sum, size) => sum + size, 0);
        if (to - from > 1) expect(bytes).toBeLessThan(maxBytes);
      }
    }),
  );
});

it('many jobs take neither one key together nor a transaction, and each may have a key of its own', async () => {
  const refused = (options: object) => buildSubmissions('greet', [1, 2], options);
  await expect(refused({ key: 'same' })).rejects.toMatchObject({
    code: 'INVALID_REQUEST',
    errors: [{ pointer: '/key' }],
  });
  await expect(refused({ tx: {} })).rejects.toMatchObject({ errors: [{ pointer: '/tx' }] });
  const keyed = await buildSubmissions('greet', [1, 2], (n: number) => ({ key: `k${n}` }));
  expect(keyed.map(({ key }) => key)).toEqual(['k1', 'k2']);
  expect(await buildSubmissions('greet', [1], { key: 'one' })).toHaveLength(1);
});
