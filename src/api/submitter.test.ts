import pg from 'pg';
import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { TestClock } from '../../test/test-clock.js';
import { resolveConfig } from '../core/config.js';
import { PunctualError } from '../core/errors.js';
import { SILENT_LOG } from '../core/log.js';
import { parseSubmission } from '../core/submission.js';
import type { Pool } from '../store/database.js';
import type { Names } from '../store/names.js';
import type { Waiting } from '../store/read-backlog.js';
import { type NewJob, submitJobs } from '../store/submit-jobs.js';
import { type Owned, Submitter } from './submitter.js';

vi.mock('../store/submit-jobs.js', async (original) => ({
  ...(await original<object>()),
  submitJobs: vi.fn(),
}));
const store = vi.mocked(submitJobs);

const { config } = resolveConfig({}, {}, () => '');
const clock = new TestClock();
const hint = vi.fn(async (_jobs: readonly Waiting[], _startBefore: number | null) => undefined);

const submitKeyed = vi.fn(async (jobs: readonly NewJob[]) => storeAll({} as Pool, jobs));

function submitter(change: { hints?: boolean } = {}): Submitter {
  return new Submitter({
    hot: {} as Pool,
    pool: {} as Pool,
    names: {
      resolve: async (named: unknown[]) => named.map(() => ({ queue: 3, needs: 4 })),
    } as unknown as Names,
    clock,
    databaseNow: () => clock.now(),
    config: { ...config, ...change },
    log: SILENT_LOG,
    submitKeyed,
    directStart: async () => false,
    hint,
  });
}

function owned(change: Record<string, unknown> = {}, tenant = 'acme'): Owned {
  const submission = parseSubmission({ task: 'mail', ...change }, { ...config, now: clock.now() });
  return { owner: { tenant, createdBy: 'ann' }, submission };
}

const storeAll = async (_pool: Pool, jobs: readonly NewJob[]) => ({
  registered: jobs.map((job) => ({ id: job.row.id, repetition: null })),
  fresh: jobs,
});
const batches = () => store.mock.calls.map(([, jobs]) => jobs.map((job) => job.row.payload));

function databaseError(code: string): pg.DatabaseError {
  const error = new pg.DatabaseError('refused', 0, 'error');
  error.code = code;
  return error;
}

beforeEach(() => {
  store.mockReset().mockImplementation(storeAll);
  hint.mockReset().mockResolvedValue(undefined);
});

describe('single submissions', () => {
  it('that arrive together are stored by one insert, each answered with its own job', async () => {
    const jobs = submitter();
    const stored = await Promise.all([1, 2, 3].map((payload) => jobs.submit(owned({ payload }))));
    expect(batches()).toEqual([['1', '2', '3']]);
    expect(new Set(stored.map((each) => each.id)).size).toBe(3);
    expect(stored.every((each) => each.repetition === null)).toBe(true);
  });

  it('that arrive while an insert is on its way gather for the next one', async () => {
    let finish = () => {};
    store.mockImplementationOnce(async (pool, rows) => {
      await new Promise<void>((resolve) => {
        finish = resolve;
      });
      return storeAll(pool, rows);
    });
    const jobs = submitter();
    const first = jobs.submit(owned({ payload: 1 }));
    await vi.waitFor(() => expect(store).toHaveBeenCalledTimes(1));
    const rest = [2, 3, 4].map((payload) => jobs.submit(owned({ payload })));
    finish();
    await Promise.all([first, ...rest]);
    expect(batches()).toEqual([['1'], ['2', '3', '4']]);
  });

  it('go out in batches of a bounded size', async () => {
    const jobs = submitter();
    await Promise.all(Array.from({ length: 1_201 }, () => jobs.submit(owned())));
    expect(batches().map((batch) => batch.length)).toEqual([500, 500, 201]);
  });

  it('go out in batches of bounded bytes, and one that is larger than that goes alone', async () => {
    const jobs = submitter();
    const mib = 1024 * 1024;
    const sizes = [1, 1, 1, 2, 5, 3, 0].map((n) => n * mib);
    const large = { ...config, maxPayload: 8 * mib };
    await Promise.all(
      sizes.map((size) =>
        jobs.submit({
          owner: { tenant: 'acme', createdBy: 'ann' },
          submission: parseSubmission({ task: 'mail', payload: 'ä'.repeat(size / 2) }, { ...large, now: 0 }),
        }),
      ),
    );
    expect(
      batches().map((batch) => batch.map((payload) => Math.floor(Buffer.byteLength(payload) / mib))),
    ).toEqual([[1, 1, 1], [2], [5], [3, 0]]);
  });

  it('count what they say besides the payload', async () => {
    const jobs = submitter();
    const target = { type: 'http', url: 'http://a', body: 'x'.repeat(200_000) } as const;
    const { submission, ...rest } = owned();
    const definition = { ...submission.definition, task: null, target };
    const job = { ...rest, submission: { ...submission, definition } };
    await Promise.all(Array.from({ length: 30 }, () => jobs.submit(job)));
    expect(Math.max(...batches().map((batch) => batch.length))).toBeLessThan(22);
  });

  it('that take too long together are stored in smaller parts', async () => {
    store.mockImplementation(async (pool, rows) => {
      if (rows.length > 2) throw databaseError('57014');
      return storeAll(pool, rows);
    });
    const jobs = submitter();
    const stored = await Promise.all(Array.from({ length: 8 }, () => jobs.submit(owned())));
    expect(new Set(stored.map((each) => each.id)).size).toBe(8);
  });

  it('are refused for now when even small parts take too long, and are not tried for ever', async () => {
    const time = vi.spyOn(performance, 'now');
    onTestFinished(() => time.mockRestore());
    let now = 0;
    time.mockImplementation(() => now);
    store.mockImplementation(async () => {
      now += 4_000;
      throw databaseError('57014');
    });
    const jobs = submitter();
    const outcomes = await Promise.allSettled(Array.from({ length: 64 }, () => jobs.submit(owned())));
    for (const outcome of outcomes) {
      expect(outcome).toMatchObject({ status: 'rejected', reason: { code: 'DATABASE_UNAVAILABLE' } });
    }
    expect(store.mock.calls.length).toBeLessThan(5);
  });

  it('with keys wait for nobody of another tenant, and those without keys for no key', async () => {
    const jobs = submitter();
    await Promise.all([
      jobs.submit(owned({ payload: 'a', key: 'k1' }, 'acme')),
      jobs.submit(owned({ payload: 'b', key: 'k2' }, 'rival')),
      jobs.submit(owned({ payload: 'c', key: 'k3' }, 'acme')),
      jobs.submit(owned({ payload: 'd' }, 'acme')),
      jobs.submit(owned({ payload: 'e' }, 'rival')),
    ]);
    expect(
      batches()
        .map((batch) => batch.join())
        .sort(),
    ).toEqual(['"a","c"', '"b"', '"d","e"']);
  });

  it('suffer nothing from a neighbour that cannot be stored', async () => {
    store.mockImplementation(async (pool, rows) => {
      if (rows.some((job) => job.row.payload === '"bad"')) throw databaseError('22P05');
      return storeAll(pool, rows);
    });
    const jobs = submitter();
    const outcomes = await Promise.allSettled(
      ['a', 'bad', 'b', 'c'].map((payload) => jobs.submit(owned({ payload }))),
    );
    expect(outcomes.map((outcome) => outcome.status)).toEqual([
      'fulfilled',
      'rejected',
      'fulfilled',
      'fulfilled',
    ]);
  });

  it('fail together when the database cannot be reached, and the next ones are tried again', async () => {
    const refused = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' });
    store.mockRejectedValueOnce(refused);
    const jobs = submitter();
    const outcomes = await Promise.allSettled([jobs.submit(owned()), jobs.submit(owned())]);
    for (const outcome of outcomes) {
      expect(outcome).toMatchObject({ status: 'rejected', reason: { code: 'DATABASE_UNAVAILABLE' } });
    }
    await expect(jobs.submit(owned())).resolves.toMatchObject({ repetition: null });
  });

  it('with a key that is taken are answered with the earlier job, of which nobody is told again', async () => {
    const repetition = { repeated: true, replaced: false, differs: ['payload'] };
    store.mockResolvedValueOnce({ registered: [{ id: 'earlier', repetition }], fresh: [] });
    expect(await submitter().submit(owned({ key: 'k' }))).toEqual({ id: 'earlier', repetition, row: null });
    expect(hint).not.toHaveBeenCalled();
  });

  it('that only the leader can store are stored apart from those that every node can', async () => {
    submitKeyed.mockRejectedValueOnce(new PunctualError('NO_LEADER', 'none'));
    const jobs = submitter();
    const outcomes = await Promise.allSettled([
      jobs.submit(owned({ key: 'a', payload: 'kept' })),
      jobs.submit(owned({ key: 'b', payload: 'replacing', keyMode: 'replace' })),
    ]);
    expect(outcomes).toMatchObject([{ status: 'fulfilled' }, { reason: { code: 'NO_LEADER' } }]);
    expect(batches()).toEqual([['"kept"']]);
  });
});

describe('the hint after a submission', () => {
  it('tells what the leader needs to know to start the job', async () => {
    const [stored] = await submitter().submitAll([owned({ priority: 9, delay: '5s' })]);
    const waiting: Waiting & { where: 'out' } = {
      row: stored!.row,
      id: stored!.id,
      tenant: 'acme',
      queue: 3,
      needs: 4,
      lane: 0,
      key: null,
      rank: 1,
      runAt: clock.now() + 5_000,
      fence: 1,
      startBefore: null,
      sizeKib: 0,
      where: 'out',
    };
    expect(hint).toHaveBeenCalledExactlyOnceWith([waiting], null, { workflows: undefined, awaits: false });
  });

  it('leaves out jobs on hold or far away, but not that one of them can expire', async () => {
    const soon = new Date(clock.now() + 3_600_000).toISOString();
    const late = new Date(clock.now() + 7_200_000).toISOString();
    await submitter().submitAll([
      owned({ delay: '30m', startBefore: late }),
      owned({ hold: true, startBefore: soon }),
      owned({ delay: '30m' }),
    ]);
    expect(hint).toHaveBeenCalledExactlyOnceWith([], Date.parse(soon), {
      workflows: undefined,
      awaits: false,
    });
    const rows = store.mock.calls[0]![1];
    expect(rows.map((job) => [job.held, job.admitAt !== null])).toEqual([
      [false, true],
      [true, true],
      [false, true],
    ]);
  });

  it('may be lost or switched off without harm', async () => {
    hint.mockRejectedValue(new Error('no leader'));
    await expect(submitter().submitAll([owned()])).resolves.toHaveLength(1);
    expect(hint).toHaveBeenCalledTimes(1);
    await submitter({ hints: false }).submitAll([owned()]);
    expect(hint).toHaveBeenCalledTimes(1);
  });
});
