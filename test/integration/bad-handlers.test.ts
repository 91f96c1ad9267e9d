import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Job } from '../../src/core/job.js';
import { type AnyTask, task } from '../../src/core/task.js';
import { Happening } from '../happening.js';
import { TestNode } from '../node-for-tests.js';

let node: TestNode;

beforeAll(async () => {
  node = await TestNode.start({ settings: { maxPayload: 64 * 1024, maxError: 2_048 } });
});
afterAll(() => node.stop());

const once = { retry: { maxAttempts: 1 } };
const good = task('good', (n: number) => n * 2);

/**
 * Runs a bad job between good ones on one worker and gives the bad one's end. The good ones, submitted before
 * and after it, must all succeed.
 */
async function amongGoodOnes(tenant: string, bad: AnyTask): Promise<Job> {
  await node.work([good, bad], { tenant, slots: 3, maxResultBytes: 64 * 1024 });
  const punctual = node.connect(tenant);
  const before = await punctual.submitMany(good, [1, 2, 3]);
  const { id } = await punctual.submit(bad.name, null, once);
  const after = await punctual.submitMany(good, [4, 5, 6]);
  const results = await Promise.all([...before, ...after].map((job) => job.result()));
  expect(results).toEqual([2, 4, 6, 8, 10, 12]);
  return node.ended(id, tenant);
}

const cycle: Record<string, unknown> = {};
cycle.self = cycle;

const BAD: readonly (readonly [what: string, handler: () => unknown, error: object])[] = [
  ['throws a text', () => raise('just words'), { message: 'a string was thrown: just words' }],
  ['throws undefined', () => raise(undefined), { message: expect.stringContaining('undefined was thrown') }],
  ['throws an object', () => raise({ a: 1 }), { message: expect.stringContaining('{"a":1}') }],
  [
    'throws what throws when it is looked at',
    () =>
      raise(
        new Proxy(
          {},
          {
            get: () => raise(new Error('no')),
          },
        ),
      ),
    { message: expect.stringContaining('cannot be read') },
  ],
  ['returns a BigInt', () => 1n, { message: expect.stringContaining('BigInt') }],
  ['returns a cycle', () => cycle, { message: expect.stringContaining('circular') }],
  ['returns a function', () => () => 1, { message: expect.stringContaining('JSON') }],
  ['returns too much', () => 'x'.repeat(65 * 1024), { code: 'RESULT_TOO_LARGE' }],
];

function raise(value: unknown): never {
  throw value;
}

it.each(BAD)('a handler that %s fails its job and harms no other', async (what, handler, error) => {
  const tenant = what.replace(/\W/g, '-');
  const job = await amongGoodOnes(tenant, task('bad', handler));
  expect(job).toMatchObject({ state: 'failed', attempt: 1, error });
});

it('the error of a job is cut, never refused', async () => {
  const huge = new Error(`${'é'.repeat(100_000)}`);
  const job = await amongGoodOnes(
    'huge-error',
    task('bad', () => raise(huge)),
  );
  expect(job.state).toBe('failed');
  expect(Buffer.byteLength(JSON.stringify(job.error))).toBeLessThan(4_096);
  expect(job.error?.message).toMatch(/^é+…$/);
});

it('a result that JSON can hold only just comes back as it was', async () => {
  const odd = { nul: 'a\u0000b', lone: '\ud800', big: 1e308, deep: [[[[[]]]]], 'ké"\\': null };
  const tenant = 'odd-result';
  const echo = task('echo', () => odd);
  await node.work([echo], { tenant });
  expect(await (await node.connect(tenant).submit(echo)).result()).toEqual(odd);
});

it('a handler that never settles is given up at its timeout, and its slot is used again', async () => {
  const tenant = 'endless';
  const aborted = new Happening<unknown>();
  const endless = task('endless', { timeout: '100ms', ...once }, (_: null, { signal }) => {
    signal.addEventListener('abort', () => aborted.happen(signal.reason));
    return new Promise(() => undefined);
  });
  await node.work([good, endless], { tenant, slots: 1 });
  const punctual = node.connect(tenant);
  const { id } = await punctual.submit(endless, null);
  expect(await (await punctual.submit(good, 21)).result()).toBe(42);
  expect(await node.ended(id, tenant)).toMatchObject({
    state: 'failed',
    error: { code: 'TIMED_OUT', message: expect.stringContaining('100 ms') },
    attempts: [{ outcome: 'timed-out' }],
  });
  expect(aborted.all).toMatchObject([{ code: 'TIMED_OUT' }]);
});

it('a timed-out attempt is tried again like a failed one', async () => {
  const tenant = 'slow-once';
  const slowOnce = task(
    'slow-once',
    { timeout: '100ms', retry: { backoff: { base: '10ms' } } },
    async (_: null, { attempt, signal }) => {
      if (attempt > 1) return 'quick';
      await new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
      return 'never';
    },
  );
  await node.work([slowOnce], { tenant });
  const handle = await node.connect(tenant).submit(slowOnce, null);
  expect(await handle.result()).toBe('quick');
  expect((await handle.get()).attempts.map((attempt) => attempt.outcome)).toEqual(['timed-out', 'succeeded']);
});

it('a job of a task that the worker does not have waits instead of failing', async () => {
  const tenant = 'unknown-task';
  await node.work([good], { tenant });
  const { id } = await node.submit({ task: 'not-here' }, tenant);
  expect(await node.get('GET', `/v1/jobs/${id}/why`, { tenant })).toMatchObject({
    gate: 'no-fitting-worker',
  });
});
