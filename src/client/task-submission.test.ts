import fc from 'fast-check';
import { expect, it } from 'vitest';
import { z } from 'zod';
import { task } from '../core/task.js';
import type { Transport } from '../transport/transport.js';
import { buildSubmissions, inChunks, submitBulk } from './task-submission.js';

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

it('an error about one of many jobs names it', async () => {
  const order = task('order', { input: z.object({ order: z.number() }) }, async () => null);
  const wrong = buildSubmissions(order, [{ order: 1 }, { order: 2 }, { order: 'three' }], {});
  await expect(wrong).rejects.toMatchObject({
    code: 'INVALID_REQUEST',
    errors: [{ pointer: '/jobs/2/payload/order' }],
  });
  await expect(buildSubmissions('greet', [1, () => 2], {})).rejects.toMatchObject({
    errors: [{ pointer: '/jobs/1/payload' }],
  });
  const atTimes = buildSubmissions('greet', [1, 2], (n: number) => ({ runAt: new Date(n === 2 ? 'no' : 0) }));
  await expect(atTimes).rejects.toMatchObject({ errors: [{ pointer: '/jobs/1/runAt' }] });
  const http = { inProcess: false } as Transport;
  await expect(submitBulk(http, await buildSubmissions('greet', [1, 1n], {}))).rejects.toMatchObject({
    errors: [{ pointer: '/jobs/1/payload' }],
  });
  const throwing = buildSubmissions('greet', [1], () => {
    throw new RangeError('mine');
  });
  await expect(throwing).rejects.toThrow(RangeError);
});
