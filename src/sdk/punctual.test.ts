import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { MemoryScheduler } from '../../test/memory-scheduler.js';
import { JobFailedError } from '../client/job-handle.js';
import { inChunks } from '../client/task-submission.js';
import { PunctualError } from '../core/errors.js';
import type { JobSubmission } from '../core/job.js';
import { task } from '../core/task.js';
import type { Method, RequestOptions, Transport } from '../transport/transport.js';
import { Punctual } from './punctual.js';

interface Asked {
  readonly method: Method;
  readonly path: string;
  readonly options: RequestOptions;
}

/** A client over a transport that answers as told and remembers what it was asked. */
function clientOf(answer: (asked: Asked, count: number) => unknown) {
  const asked: Asked[] = [];
  const transport: Transport = {
    async request<T>(method: Method, path: string, options: RequestOptions = {}) {
      asked.push({ method, path, options });
      return answer(asked.at(-1)!, asked.length) as T;
    },
  };
  const punctual = new Punctual({
    transport,
    openGateway: () => new MemoryScheduler(),
    tenant: 'acme',
    close: async () => undefined,
  });
  return { punctual, asked };
}

const bodyOf = (asked: Asked | undefined) => JSON.parse(asked!.options.bodyText!) as JobSubmission;
const jobsOf = (options: { bodyText?: string }) =>
  (JSON.parse(options.bodyText!) as { jobs: unknown[] }).jobs;
const greet = task(
  'greet',
  { retry: { maxAttempts: 2 }, timeout: '2m', priority: 3 },
  (input: { name: string }) => ({
    text: `Hello ${input.name}`,
  }),
);

describe('submitting', () => {
  it('sends the defaults of the task under the options of the submission', async () => {
    const { punctual, asked } = clientOf(() => ({ id: 'j1' }));
    const runAt = new Date(Date.UTC(2026, 11, 24));
    const job = await punctual.submit(greet, { name: 'Ada' }, { priority: 9, runAt, key: 'k' });
    expect(job.id).toBe('j1');
    expect(asked[0]).toMatchObject({ method: 'POST', path: '/v1/jobs', options: { retry: true } });
    expect(bodyOf(asked[0])).toEqual({
      task: 'greet',
      payload: { name: 'Ada' },
      retry: { maxAttempts: 2 },
      timeout: '2m',
      priority: 9,
      runAt: '2026-12-24T00:00:00.000Z',
      key: 'k',
    });
  });

  it('may be repeated by itself only with a key', async () => {
    const { punctual, asked } = clientOf(({ path }) =>
      path.endsWith('bulk') ? { ids: ['a', 'b'] } : { id: 'a' },
    );
    await punctual.submit('by-name', [1]);
    await punctual.submitMany('by-name', [1, 2], (_, index) => (index === 0 ? { key: 'k' } : {}));
    await punctual.submitMany('by-name', [1, 2], (_, index) => ({ key: `k${index}` }));
    expect(asked.map(({ options }) => options.retry)).toEqual([false, false, true]);
  });

  it('checks the input against the schema as the worker will see it, and sends nothing if it is wrong', async () => {
    const { punctual, asked } = clientOf(() => ({ id: 'j' }));
    const strict = task('strict', { input: z.object({ at: z.iso.datetime(), 'a/b': z.number() }) }, () => 1);
    await punctual.submit(strict, { at: '2026-01-01T00:00:00Z', 'a/b': 1 });
    await expect(punctual.submit(strict, { at: 'soon', 'a/b': 'x' as never })).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
      errors: [{ pointer: '/payload/at' }, { pointer: '/payload/a~1b' }],
    });
    expect(asked).toHaveLength(1);
  });

  it('refuses what JSON cannot hold', async () => {
    const { punctual, asked } = clientOf(() => ({ id: 'j' }));
    await expect(punctual.submit('a', { big: 1n })).rejects.toMatchObject({ code: 'INVALID_REQUEST' });
    await expect(punctual.submit('a', () => 1)).rejects.toMatchObject({ code: 'INVALID_REQUEST' });
    await expect(punctual.submit('a', 1, { runAt: new Date('never') })).rejects.toMatchObject({
      errors: [{ pointer: '/runAt' }],
    });
    expect(asked).toEqual([]);
  });

  it('inside a transaction asks the database, after checking what the server would have checked', async () => {
    const { punctual, asked } = clientOf(() => null);
    const queries: unknown[][] = [];
    const tx = {
      query: async (text: string, values: unknown[]) => {
        queries.push([text, ...values]);
        return { rows: [{ id: 'from-db' }] };
      },
    };
    const job = await punctual.submit(greet, { name: 'Ada' }, { tx, delay: '5s' });
    expect(job.id).toBe('from-db');
    expect(queries[0]!.slice(0, 2)).toEqual(['SELECT punctual.submit_job($1, $2) AS id', 'acme']);
    expect(JSON.parse(queries[0]![2] as string)).toMatchObject({ task: 'greet', delay: '5s' });
    await expect(punctual.submit(greet, { name: 'Ada' }, { tx, delay: 'soon' })).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
    });
    expect(queries).toHaveLength(1);
    expect(asked).toEqual([]);
  });
});

describe('submitting many', () => {
  it('keeps the order over several requests', async () => {
    let next = 0;
    const { punctual, asked } = clientOf(({ options }) => ({
      ids: jobsOf(options).map(() => `job-${next++}`),
    }));
    const handles = await punctual.submitMany(
      greet,
      Array.from({ length: 20_001 }, (_, index) => ({ name: String(index) })),
    );
    expect(asked.map(({ options }) => jobsOf(options).length)).toEqual([10_000, 10_000, 1]);
    expect(handles).toHaveLength(20_001);
    expect(handles[12_345]!.id).toBe('job-12345');
  });

  it('tells which jobs are stored when a later request fails', async () => {
    const { punctual } = clientOf((_, count) => {
      if (count > 1) throw new PunctualError('NO_LEADER', 'gone');
      return { ids: Array.from({ length: 10_000 }, (_, index) => `job-${index}`) };
    });
    const inputs = new Array(10_001).fill({ name: 'x' });
    await expect(punctual.submitMany(greet, inputs)).rejects.toMatchObject({
      name: 'BulkError',
      code: 'NO_LEADER',
      message: '10000 of 10001 jobs were submitted, then: gone',
      submitted: expect.objectContaining({ length: 10_000 }),
    });
  });

  it('cuts by bytes as well as by number', () => {
    const sizes = (maxJobs: number, maxBytes: number) =>
      [...inChunks(new Array<number>(10).fill(128), maxJobs, maxBytes)].map(([from, to]) => to - from);
    expect(sizes(4, 1_000_000)).toEqual([4, 4, 2]);
    expect(sizes(100, 500).every((size) => size === 3 || size === 1)).toBe(true);
    expect(sizes(100, 10)).toEqual(new Array(10).fill(1));
    expect([...inChunks([], 4, 500)]).toEqual([]);
  });
});

describe('waiting for a result', () => {
  it('asks again until the job has ended', async () => {
    const { punctual, asked } = clientOf((_, count) =>
      count < 3 ? { state: 'running' } : { state: 'succeeded', result: { text: 'hi' } },
    );
    expect(await punctual.result('j1')).toEqual({ text: 'hi' });
    expect(asked.map(({ path }) => path)).toEqual(new Array(3).fill('/v1/jobs/j1?wait=20000ms'));
  });

  it.each(['failed', 'cancelled', 'skipped'])('rejects with the job when it is %s', async (state) => {
    const job = { id: 'j1', task: 'greet', state, error: { message: 'no luck' } };
    const { punctual } = clientOf(() => job);
    const rejection = await punctual.result('j1').catch((error: unknown) => error);
    expect(rejection).toBeInstanceOf(JobFailedError);
    expect(rejection).toMatchObject({
      code: 'JOB_UNSUCCESSFUL',
      job,
      message: expect.stringContaining('no luck'),
    });
  });

  it('ends with the reason of the signal', async () => {
    const { punctual } = clientOf(() => ({ state: 'running' }));
    await expect(punctual.result('j1', { signal: AbortSignal.abort(new Error('enough')) })).rejects.toThrow(
      'enough',
    );
  });
});

it('a job is found by its key, or not', async () => {
  const { punctual, asked } = clientOf((_, count) => ({
    data: count === 1 ? [{ id: 'j' }] : [],
    next: null,
  }));
  expect(await punctual.getByKey('a&b=c')).toEqual({ id: 'j' });
  expect(await punctual.getByKey('other')).toBeNull();
  expect(asked[0]!.path).toBe('/v1/jobs?key=a%26b%3Dc&limit=1');
});

it('a task must have a good name, a handler and a real schema', () => {
  expect(() => task('no spaces', () => 1)).toThrow(/letters, digits/);
  expect(() => task('a', undefined as never)).toThrow();
  expect(() => task('a', { input: {} as never }, () => 1)).toThrow(/not a Standard Schema/);
});
