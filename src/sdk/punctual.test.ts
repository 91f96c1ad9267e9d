import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { MemoryLog } from '../../test/memory-log.js';
import { MemoryScheduler } from '../../test/memory-scheduler.js';
import { JobFailedError } from '../client/job-handle.js';
import { schedule } from '../client/schedules-as-code.js';
import { inChunks } from '../client/task-submission.js';
import type { Duration } from '../core/duration.js';
import { PunctualError } from '../core/errors.js';
import type { JobSubmission } from '../core/job.js';
import { KEY_MODES } from '../core/keys.js';
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

  it('is repeated by itself with a key only in the modes in which no second job can come of it', async () => {
    const { punctual, asked } = clientOf(({ path }) =>
      path.endsWith('bulk') ? { ids: ['a'] } : { id: 'a' },
    );
    for (const keyMode of KEY_MODES) {
      await punctual.submit('by-name', [1], { key: 'k', keyMode });
      await punctual.submitMany('by-name', [1], { key: 'k', keyMode });
    }
    const repeated = KEY_MODES.filter((_, i) => asked[2 * i]!.options.retry);
    expect(repeated).toEqual(['keep', 'replace']);
    expect(KEY_MODES.filter((_, i) => asked[2 * i + 1]!.options.retry)).toEqual(repeated);
  });

  it('tells what was said about its key, one by one in a bulk', async () => {
    const told = { repeated: true, replaced: true, differs: ['payload'] };
    const { punctual } = clientOf(({ path }) =>
      path.endsWith('bulk')
        ? { ids: ['a', 'b'], repetitions: [{ index: 1, replaced: true, differs: ['payload'] }] }
        : { id: 'a', ...told },
    );
    expect((await punctual.submit('by-name', 1, { key: 'k' })).repetition).toEqual(told);
    const many = await punctual.submitMany('by-name', [1, 2], (n) => ({ key: `k${n}` }));
    expect(many.map(({ repetition }) => repetition)).toEqual([
      { repeated: false, replaced: false, differs: [] },
      told,
    ]);
  });

  it('of a transaction whose key another job has gives the result of that job', async () => {
    const jobs: Record<string, unknown> = {
      mine: { id: 'mine', state: 'skipped', error: { code: 'DUPLICATE_KEY', message: 'no', job: 'other' } },
      other: { id: 'other', state: 'succeeded', result: 42, error: null },
    };
    const { punctual } = clientOf(({ path }) => jobs[/jobs\/(\w+)/.exec(path)![1]!]);
    const tx = { query: async () => ({ rows: [{ id: 'mine' }] }) };
    const handle = await punctual.submit('by-name', 1, { key: 'k', tx });
    expect(await handle.result()).toBe(42);
    expect(handle.repetition).toBeUndefined();
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
    await expect(
      punctual.submit(greet, { name: 'Ada' }, { tx, delay: 'soon' as Duration }),
    ).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
    });
    expect(queries).toHaveLength(1);
    expect(asked).toEqual([]);
  });

  it('inside a transaction may be nested as deep as an operator can allow', async () => {
    const { punctual } = clientOf(() => null);
    const tx = { query: async () => ({ rows: [{ id: 'stored' }] }) };
    const nested = (levels: number): unknown => (levels === 0 ? 1 : [nested(levels - 1)]);
    expect(await punctual.submit('deep', nested(900), { tx })).toMatchObject({ id: 'stored' });
    await expect(punctual.submit('deep', nested(1_100), { tx })).rejects.toThrow(/nested deeper/);
  });

  it.each([
    ['a pool', { totalCount: 1 }, /is a pool/],
    ['a client outside of a transaction', { getTransactionStatus: () => 'I' }, /outside of a transaction/],
  ])('inside a transaction takes no %s', async (_, change, message) => {
    const { punctual } = clientOf(() => null);
    const query = async () => ({ rows: [{ id: 'stored' }] });
    const submitted = punctual.submit(greet, { name: 'Ada' }, { tx: { query, ...change } as never });
    await expect(submitted).rejects.toThrow(message);
    const tx = { query, getTransactionStatus: () => 'T' };
    expect(await punctual.submit(greet, { name: 'Ada' }, { tx })).toMatchObject({ id: 'stored' });
  });

  it('inside a transaction is refused by the database in the words of the API', async () => {
    const { punctual } = clientOf(() => null);
    const refused = (error: object) =>
      punctual.submit(greet, { name: 'Ada' }, { tx: { query: () => Promise.reject(error) } });
    const refusal = { code: '22023', detail: 'INVALID_REQUEST' };
    const error = Object.assign(new Error('punctual: /timeout: must be at most 5 ms'), refusal);
    await expect(refused(error)).rejects.toMatchObject({
      name: 'PunctualError',
      code: 'INVALID_REQUEST',
      message: '/timeout: must be at most 5 ms',
      errors: [{ pointer: '/timeout', detail: 'must be at most 5 ms' }],
    });
    const denied = Object.assign(new Error('permission denied for schema punctual'), { code: '42501' });
    await expect(refused(denied)).rejects.toMatchObject({ code: 'FORBIDDEN' });
    const lost = new Error('Connection terminated');
    await expect(refused(lost)).rejects.toBe(lost);
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

it('a worker logs where its connection says, unless its own options say otherwise', async () => {
  const log = new MemoryLog();
  const punctual = new Punctual({
    transport: { request: () => Promise.reject(new Error('nobody is asked')) },
    openGateway: () => new MemoryScheduler(),
    tenant: 'acme',
    log,
    close: async () => undefined,
  });
  const linesWith = async (options: object) => {
    const worker = punctual.worker([greet], options);
    await worker.start();
    await worker.stop();
    return log.lines.splice(0).length;
  };
  expect(await linesWith({})).toBeGreaterThan(0);
  expect(await linesWith({ log: undefined })).toBeGreaterThan(0);
  expect(await linesWith({ log: false })).toBe(0);
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

describe('cancelling inside a transaction', () => {
  function txOf(rows: readonly unknown[]) {
    const queries: unknown[][] = [];
    const query = async (text: string, values: unknown[]) => {
      queries.push([text, ...values]);
      return { rows };
    };
    return { queries, tx: { query } };
  }
  const id = '01890a5d-ac96-774b-bcce-b302099a8057';

  it('asks the database alone', async () => {
    const { punctual, asked } = clientOf(() => null);
    const { queries, tx } = txOf([{ id }]);
    await punctual.cancel(id, { tx });
    await punctual.cancel({ key: 'k' }, { tx });
    expect(queries).toEqual([
      ['SELECT punctual.cancel_job($1, $2)', 'acme', id],
      ['SELECT punctual.cancel_job_of_key($1, $2) AS id', 'acme', 'k'],
    ]);
    expect(asked).toEqual([]);
  });

  it('does not spoil the transaction with what cannot be a job', async () => {
    const { punctual } = clientOf(() => null);
    const { queries, tx } = txOf([]);
    await expect(punctual.cancel('order-42', { tx })).rejects.toMatchObject({ code: 'INVALID_REQUEST' });
    await expect(punctual.cancel({ key: '\0' }, { tx })).rejects.toMatchObject({ code: 'JOB_NOT_FOUND' });
    expect(queries).toEqual([]);
    await expect(punctual.cancel({ key: 'k' }, { tx })).rejects.toMatchObject({ code: 'JOB_NOT_FOUND' });
  });
});

describe('lists', () => {
  const page = (from: number) => ({
    data: [{ id: `j${from}` }, { id: `j${from + 1}` }],
    next: `j${from + 1}`,
  });

  it('are read as far as they are used', async () => {
    const { punctual, asked } = clientOf((_, count) => page(2 * count - 1));
    const seen: string[] = [];
    for await (const job of punctual.list({ state: 'failed', include: ['payload', 'stack'], pageSize: 2 })) {
      seen.push(job.id);
      if (seen.length === 3) break;
    }
    expect(seen).toEqual(['j1', 'j2', 'j3']);
    expect(asked.map(({ path }) => path)).toEqual([
      '/v1/jobs?state=failed&include=payload%2Cstack&limit=2',
      '/v1/jobs?state=failed&include=payload%2Cstack&limit=2&after=j2',
    ]);
  });

  it('end with the reason of the signal', async () => {
    const { punctual } = clientOf(() => page(1));
    const abort = new AbortController();
    const read = async () => {
      for await (const _ of punctual.list({ signal: abort.signal })) abort.abort(new Error('enough'));
    };
    await expect(read()).rejects.toThrow('enough');
  });
});

describe('schedules in code', () => {
  const done = { created: [], changed: [], unchanged: 1, more: false, dryRun: false };

  it('are sent as one set under the name of their owner', async () => {
    const { punctual, asked } = clientOf(() => ({ ...done, removed: [] }));
    const hourly = schedule(greet, { every: '1h', input: { name: 'Ada' }, queue: 'q' });
    expect(await punctual.schedules([hourly])).toEqual({ ...done, removed: [] });
    expect(asked).toMatchObject([{ method: 'PUT', path: '/v1/schedules', options: { retry: true } }]);
    expect(asked[0]!.options.body).toEqual({
      ...{ managedBy: 'default', prune: false, dryRun: false },
      schedules: [
        {
          ...{ name: 'greet', task: 'greet', payload: { name: 'Ada' }, every: '1h', queue: 'q' },
          ...{ retry: { maxAttempts: 2 }, timeout: '2m', priority: 3 },
        },
      ],
    });
  });

  it('are removed by as many requests as it takes', async () => {
    const { punctual, asked } = clientOf((_, count) => ({
      ...{ ...done, created: count === 1 ? ['new'] : [], removed: [`old-${count}`], more: count < 3 },
    }));
    expect(await punctual.schedules([], { prune: true })).toEqual({
      ...{ ...done, created: ['new'], removed: ['old-1', 'old-2', 'old-3'] },
    });
    expect(asked).toHaveLength(3);
  });

  it('that a dry run does not name are told of', async () => {
    const { punctual, asked } = clientOf(() => ({ ...done, removed: ['old'], more: true, dryRun: true }));
    const planned = await punctual.schedules([], { prune: true, dryRun: true });
    expect(planned).toMatchObject({ removed: ['old'], more: true, dryRun: true });
    expect(asked).toHaveLength(1);
  });

  it('are not sent when an input is wrong', async () => {
    const { punctual, asked } = clientOf(() => null);
    const strict = task('strict', { input: z.object({ n: z.number() }) }, () => 1);
    const wrong = schedule(strict, { every: '1h', input: { n: 'x' as never } });
    await expect(punctual.schedules([wrong])).rejects.toMatchObject({ code: 'INVALID_REQUEST' });
    expect(asked).toEqual([]);
  });
});

it('a task must have a good name, a handler and a real schema', () => {
  expect(() => task('no spaces', () => 1)).toThrow(/letters, digits/);
  expect(() => task('a', undefined as never)).toThrow();
  expect(() => task('a', { input: {} as never }, () => 1)).toThrow(/not a Standard Schema/);
});
