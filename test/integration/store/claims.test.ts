import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { uuidv7 } from '../../../src/core/uuid.js';
import { claimKnownJobs } from '../../../src/store/claim-jobs.js';
import { readClaims, readWork, releaseClaims, saveProgress } from '../../../src/store/claims.js';
import { isDataError } from '../../../src/store/database.js';
import { endWaitingJobs, findExpired, nextExpiry } from '../../../src/store/end-waiting-jobs.js';
import { retryJobs } from '../../../src/store/finish-jobs.js';
import { addLogLines, readLogLines } from '../../../src/store/job-logs.js';
import type { TermKey } from '../../../src/store/leader-statement.js';
import {
  admitJobs,
  changeLive,
  postponeJobs,
  redriveJobs,
  unchanged,
} from '../../../src/store/place-jobs.js';
import {
  BEFORE_ALL_SEGMENTS,
  findSegments,
  lookBack,
  readPages,
  readWaiting,
  SEGMENT_START,
} from '../../../src/store/read-backlog.js';
import { readJob } from '../../../src/store/read-job.js';
import { nobody, TENANT, TestShard, until, WORKER } from './test-shard.js';

let shard: TestShard;
let term: TermKey;
let close: () => Promise<void>;

beforeAll(async () => {
  ({ shard, close } = await TestShard.open());
  term = await shard.lead();
});
afterAll(() => close());

const read = async (id: string) => (await readJob(shard.hot, TENANT, id))!;

describe('a claim', () => {
  it('makes the job run on the worker, and answers with what the worker needs', async () => {
    const id = await shard.submit({ payload: { a: 1 }, timeout: '30s' });
    const [row] = await shard.claim(term, [id]);
    expect(row).toMatchObject({ id, task: 'greet', payload: '{"a":1}', timeoutMs: 30_000, failures: 0 });
    expect(await read(id)).toMatchObject({ state: 'running', fence: 1, worker: WORKER, epoch: term.epoch });
  });

  it('cannot start a finished job again, however late its hint comes', async () => {
    const id = await shard.submit();
    await shard.claim(term, [id]);
    await shard.finish(term, [{ id }]);
    expect(await shard.claim(term, [id])).toEqual([]);
    expect(await shard.claim(term, [id], 2)).toEqual([]);
    expect((await read(id)).state).toBe('succeeded');
    const { rows } = await shard.pool.query('SELECT 1 FROM punctual.claims WHERE job = $1', [id]);
    expect(rows).toEqual([]);
  });

  it('is only to be had under the next fence', async () => {
    const id = await shard.submit();
    expect(await shard.claim(term, [id], 0)).toEqual([]);
    expect(await shard.claim(term, [id], 2)).toEqual([]);
    expect(await shard.claim(term, [nobody()])).toEqual([]);
    expect((await read(id)).state).toBe('pending');
  });

  it('is refused as a fault of the data when the job runs already', async () => {
    const id = await shard.submit();
    await shard.claim(term, [id]);
    const again = await shard.claim(term, [id]).catch((error: unknown) => error);
    expect(isDataError(again)).toBe(true);
  });

  it('takes what is to be had of a batch, and answers with exactly that', async () => {
    const [waiting, ended, held] = await shard.submitMany(3);
    await shard.claim(term, [ended!]);
    await shard.finish(term, [{ id: ended! }]);
    await postponeJobs(shard.hot, term, [{ ...unchanged(held!), admitAt: 0, held: true }]);
    const rows = await shard.claim(term, [waiting!, ended!, held!, nobody()]);
    expect(rows.map((row) => row.id)).toEqual([waiting]);
  });
});

describe('an end', () => {
  it('with an old fence moves nothing', async () => {
    const id = await shard.submit();
    await shard.claim(term, [id]);
    await shard.retry(term, id);
    await shard.claim(term, [id], 2);
    expect(await shard.finish(term, [{ id, fence: 1 }])).toEqual([]);
    expect(await shard.retry(term, id, 1)).toEqual([]);
    expect(await read(id)).toMatchObject({ state: 'running', fence: 2, attempts: 1 });
    expect(await shard.finish(term, [{ id, fence: 2 }])).toEqual([id]);
  });

  it('counts once, reported twice in a row, in one statement or at the same time', async () => {
    const [a, b, c] = await shard.submitMany(3);
    await shard.claim(term, [a!, b!, c!]);
    expect(await shard.finish(term, [{ id: a! }])).toEqual([a]);
    expect(await shard.finish(term, [{ id: a! }])).toEqual([]);
    expect(await shard.finish(term, [{ id: b! }, { id: b! }])).toEqual([b]);
    const both = await Promise.all([1, 2, 3, 4].map(() => shard.finish(term, [{ id: c! }])));
    expect(both.flat()).toEqual([c]);
    const { rows } = await shard.pool.query(
      'SELECT count(*) AS n FROM punctual.job_history WHERE id = ANY ($1)',
      [[a, b, c]],
    );
    expect(rows[0].n).toBe(3);
  });

  it('of a job that does not run changes nothing', async () => {
    const id = await shard.submit();
    expect(await shard.finish(term, [{ id }])).toEqual([]);
    expect((await read(id)).state).toBe('pending');
  });

  it('keeps the attempt on record with its worker, times and reason', async () => {
    const id = await shard.submit();
    await shard.claim(term, [id]);
    await shard.fail(term, id);
    const job = await read(id);
    expect(job).toMatchObject({ state: 'failed', outcome: 'failed', fence: 1, worker: WORKER, failures: 1 });
    expect(JSON.parse(job.error!)).toEqual({ message: 'it failed' });
    expect(job.late_by).toBeGreaterThanOrEqual(0);
  });

  it('of many jobs keeps for each what belongs to it, whatever the order', async () => {
    const ids = await shard.submitMany(300);
    await shard.claim(term, ids);
    const endings = ids.map((id, i) => {
      const isFailed = i % 7 === 0;
      return {
        id,
        state: isFailed ? ('failed' as const) : ('succeeded' as const),
        outcome: isFailed ? ('timed-out' as const) : ('succeeded' as const),
        result: isFailed ? null : JSON.stringify({ i, text: 'ü'.repeat(i) }),
        error: isFailed ? JSON.stringify({ message: `of ${i}` }) : null,
        progress: i % 5 === 0 ? `{"progress":${i / 300}}` : null,
        claimedAt: 1_000 + i,
        startedAt: i % 3 === 0 ? null : 2_000 + i,
        worker: i % 2 === 0 ? WORKER : uuidv7(i),
      };
    });
    const shuffled = endings.map((_, i) => endings[(i * 77) % endings.length]!);
    expect(new Set(await shard.finish(term, shuffled))).toEqual(new Set(ids));
    for (const { id, claimedAt, startedAt, ...rest } of endings) {
      const times = { claimed_at: claimedAt, started_at: startedAt };
      expect(await read(id)).toMatchObject({ ...rest, ...times, failures: rest.state === 'failed' ? 1 : 0 });
    }
  });

  it('and a claim tell which jobs were not to be had', async () => {
    const [a, b, c] = await shard.submitMany(3);
    const intents = (ids: string[]) => ids.map((id) => ({ id, fence: id === c ? 2 : 1, worker: WORKER }));
    const known = (ids: string[]) => claimKnownJobs(shard.hot, term, intents(ids), Date.now(), new Map(), []);
    expect(await known([a!])).toEqual(new Set());
    await shard.finish(term, [{ id: a! }]);
    expect(await known([c!, a!, b!])).toEqual(new Set([c, a]));
    expect(await shard.finish(term, [{ id: b! }, { id: c! }])).toEqual([b]);
  });
});

describe('a job that this process stored', () => {
  const claimFromMemory = async (id: string) => {
    const intents = [{ id, fence: 1, worker: WORKER }];
    return !(await claimKnownJobs(shard.hot, term, intents, Date.now(), new Map(), [])).has(id);
  };

  it('is claimed from memory while its row is as it was submitted', async () => {
    expect(await claimFromMemory(await shard.submit())).toBe(true);
  });

  it('is not as a step of a workflow that is on hold, or that memory does not name', async () => {
    const jobs = await shard.submitMany(5);
    const [going, held, gone] = [uuidv7(1), uuidv7(2), uuidv7(3)];
    const workflowOf = [going, held, going, gone, null];
    for (const [i, workflow] of workflowOf.entries())
      await shard.pool.query('UPDATE punctual.jobs SET workflow = $2 WHERE id = $1', [jobs[i], workflow]);
    for (const [id, isHeld] of [
      [going, false],
      [held, true],
    ])
      await shard.pool.query(
        `INSERT INTO punctual.workflows (id, tenant, name, steps, steps_left, on_failure, running, created_at, created_by, held)
         VALUES ($1, 'acme', 'w', 1, 1, 'continue', 'finish', 0, 'test', $2)`,
        [id, isHeld],
      );
    const intents = jobs.map((id) => ({ id, fence: 1, worker: WORKER }));
    const claim = (some: typeof intents, workflows: string[]) =>
      claimKnownJobs(shard.hot, term, some, Date.now(), new Map(), workflows);
    const withoutNames = await claim(intents.slice(0, 2), []);
    expect(withoutNames).toEqual(new Set(jobs.slice(0, 2)));
    // In no order, and with one that was removed, which holds nothing.
    expect(await claim(intents, [held, gone, going])).toEqual(new Set([jobs[1]]));
  });

  it('is not when it was changed', async () => {
    const id = await shard.submit();
    await changeLive(shard.hot, term, { ...unchanged(id), rank: 3 });
    expect(await claimFromMemory(id)).toBe(false);
  });

  it('is not when it was held and released', async () => {
    const id = await shard.submit();
    await postponeJobs(shard.hot, term, [{ ...unchanged(id), payload: '2', admitAt: 0, held: true }]);
    await admitJobs(shard.hot, term, [unchanged(id)]);
    expect(await claimFromMemory(id)).toBe(false);
  });

  it('is not when it was cancelled before it began, and sent round again', async () => {
    const id = await shard.submit();
    await endWaitingJobs(shard.hot, term, 'live', [{ id, state: 'cancelled', error: null }], Date.now());
    await redriveJobs(shard.hot, term, TENANT, [id], Date.now());
    expect(await claimFromMemory(id)).toBe(false);
  });
});

describe('a retry', () => {
  it('raises attempts and the count of its reason, and keeps the attempt', async () => {
    const id = await shard.submit();
    await shard.claim(term, [id]);
    expect(await shard.retry(term, id, 1, { runAt: 5_000, lateBy: 7 })).toEqual([id]);
    expect(await read(id)).toMatchObject({
      state: 'pending',
      attempts: 1,
      failures: 1,
      losses: 0,
      run_at: 5_000,
    });
    await shard.claim(term, [id], 2);
    await shard.retry(term, id, 2, { outcome: 'lost', lateBy: 900 });
    const job = await read(id);
    // Lateness is that of the first start.
    expect(job).toMatchObject({ attempts: 2, failures: 1, losses: 1, late_by: 7 });
    expect(job.earlier_attempts!.map((attempt) => attempt.fence)).toEqual([1, 2]);
    expect(await readWaiting(shard.hot, [id])).toMatchObject([{ id, fence: 3 }]);
  });

  it('is not to be had under a fence that is used up', async () => {
    const id = await shard.submit();
    await shard.claim(term, [id]);
    expect(await releaseClaims(shard.hot, term, [{ id, fence: 1, attempt: null }])).toEqual([id]);
    expect(await read(id)).toMatchObject({
      state: 'pending',
      failures: 0,
      losses: 0,
      earlier_attempts: null,
    });
    expect(await shard.claim(term, [id], 1)).toEqual([]);
    expect(await shard.finish(term, [{ id, fence: 1 }])).toEqual([]);
    expect(await shard.claim(term, [id], 2)).toHaveLength(1);
  });
});

describe('a redrive', () => {
  it('keeps the attempts, starts the budgets anew and lets the fence grow', async () => {
    const id = await shard.submit({ startBefore: new Date(Date.now() + 60_000).toISOString() });
    await shard.claim(term, [id]);
    await shard.retry(term, id);
    await shard.claim(term, [id], 2);
    await shard.fail(term, id, 2);
    const [waiting] = await redriveJobs(shard.hot, term, TENANT, [id], Date.now());
    expect(waiting).toMatchObject({ id, fence: 3, startBefore: null });
    const job = await read(id);
    expect(job).toMatchObject({ state: 'pending', attempts: 2, failures: 0, losses: 0 });
    expect(job.earlier_attempts!.map((attempt) => attempt.fence)).toEqual([1, 2]);
    expect(await shard.claim(term, [id], 2)).toEqual([]);
    expect(await shard.claim(term, [id], 3)).toHaveLength(1);
  });

  it('starts a job that was cancelled before it ever ran under its first fence', async () => {
    const id = await shard.submit();
    await endWaitingJobs(shard.hot, term, 'live', [{ id, state: 'cancelled', error: null }], Date.now());
    expect(await redriveJobs(shard.hot, term, TENANT, [id], Date.now())).toMatchObject([{ id, fence: 1 }]);
    expect((await read(id)).earlier_attempts ?? []).toEqual([]);
  });

  it('never takes an at-most-once job, a succeeded one or one of another tenant', async () => {
    const once = await shard.submit({ delivery: 'at-most-once' });
    const [succeeded, theirs] = await shard.submitMany(2);
    await shard.claim(term, [once, succeeded!, theirs!]);
    await shard.fail(term, once);
    await shard.fail(term, theirs!);
    await shard.finish(term, [{ id: succeeded! }]);
    expect(await redriveJobs(shard.hot, term, TENANT, [once, succeeded!], Date.now())).toEqual([]);
    expect(await redriveJobs(shard.hot, term, 'globex', [theirs!], Date.now())).toEqual([]);
    expect((await read(once)).state).toBe('failed');
  });

  it('happens once, asked for twice at the same time', async () => {
    const id = await shard.submit();
    await shard.claim(term, [id]);
    await shard.fail(term, id);
    const sent = await Promise.all(
      [1, 2, 3].map(() => redriveJobs(shard.hot, term, TENANT, [id], Date.now())),
    );
    expect(sent.flat()).toHaveLength(1);
  });
});

describe('a running job', () => {
  it('is not ended, moved or changed as if it waited', async () => {
    const id = await shard.submit();
    await shard.claim(term, [id]);
    const end = { id, state: 'cancelled', error: null } as const;
    expect(await endWaitingJobs(shard.hot, term, 'live', [end], Date.now())).toEqual([]);
    expect(await postponeJobs(shard.hot, term, [{ ...unchanged(id), admitAt: 0, held: true }])).toEqual([]);
    expect(await changeLive(shard.hot, term, { ...unchanged(id), runAt: 1 })).toBeNull();
    expect(await readWaiting(shard.hot, [id])).toEqual([]);
    expect((await read(id)).state).toBe('running');
  });

  it('is found by the next leader, in portions, with everything but what it works on', async () => {
    const ids = await shard.submitMany(5);
    await shard.claim(term, ids);
    const claims = await readClaims(shard.hot, { atOnce: 2 });
    expect(claims.map(({ id }) => id)).toEqual(expect.arrayContaining(ids));
    const { rows } = await shard.pool.query('SELECT count(*) AS count FROM punctual.claims');
    expect(new Set(claims.map(({ id }) => id)).size).toBe(Number(rows[0].count));
    for (const claim of claims) {
      expect(claim).not.toHaveProperty('payload');
      expect(claim).not.toHaveProperty('target');
    }
    const work = await readWork(shard.hot, [ids[0]!, nobody()]);
    expect([...work.keys()]).toEqual([ids[0]]);
  });

  it('takes log lines until its log is full, and none once its attempt is over', async () => {
    const id = await shard.submit();
    await shard.claim(term, [id]);
    const attempt = { tenant: TENANT, job: id, fence: 1 };
    await addLogLines(shard.hot, attempt, ['"first"'], 16, Date.now());
    await addLogLines(shard.hot, attempt, ['"second"'], 16, Date.now());
    await addLogLines(shard.hot, attempt, ['"third"'], 16, Date.now());
    await addLogLines(shard.hot, { ...attempt, fence: 2 }, ['"of another"'], 10, Date.now());
    await shard.finish(term, [{ id }]);
    await addLogLines(shard.hot, attempt, ['"late"'], 1_000, Date.now());
    const lines = await readLogLines(shard.pool, TENANT, id, 0, { rows: 10, bytes: 1_000 });
    expect(lines.rows.map((row) => row.line)).toEqual(['"first"', '"second"']);
  });
});

describe('statements about several claims', () => {
  it.each<[string, (ids: string[]) => Promise<unknown>]>([
    [
      'progress',
      (ids) =>
        saveProgress(
          shard.hot,
          term,
          ids.map((id) => ({ id, fence: 1, progress: '1' })),
        ),
    ],
    [
      'ends',
      (ids) =>
        shard.finish(
          term,
          ids.map((id) => ({ id })),
        ),
    ],
    ['retries', (ids) => retryJobs(shard.hot, term, ids.map(retrying), Date.now())],
    [
      'releases',
      (ids) =>
        releaseClaims(
          shard.hot,
          term,
          ids.map((id) => ({ id, fence: 1, attempt: null })),
        ),
    ],
  ])('lock them in one order, so that two can never wait in a circle: %s', async (_, change) => {
    const [first, second] = (await shard.submitMany(2)).sort();
    await shard.claim(term, [first!, second!]);
    const other = await shard.connect();
    await other.query('BEGIN');
    await other.query('SELECT 1 FROM punctual.claims WHERE job = $1 FOR UPDATE', [first]);
    const changing = change([second!, first!]);
    await until(async () => {
      const { rows } = await shard.pool.query(
        `SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`,
      );
      return rows.length > 0;
    });
    // Nothing of what comes later in the order is locked while the first is waited for.
    await other.query('SELECT 1 FROM punctual.claims WHERE job = $1 FOR UPDATE NOWAIT', [second]);
    await other.query('COMMIT');
    await changing;
  });

  const retrying = (id: string) =>
    ({ id, fence: 1, outcome: 'failed', runAt: 0, lateBy: 0, attempt: '{}' }) as const;
});

describe('what could not start in time', () => {
  it('is found once its last moment has passed, unless it has started', async () => {
    const soon = { startBefore: new Date(Date.now() + 5_000).toISOString() };
    const waiting = await shard.submit(soon);
    const started = await shard.submit(soon);
    const again = await shard.submit(soon);
    const held = await shard.submit(soon, { held: true });
    const heldAgain = await shard.submit(soon);
    await shard.claim(term, [started, again, heldAgain]);
    await shard.retry(term, again);
    await shard.retry(term, heldAgain);
    await postponeJobs(shard.hot, term, [{ ...unchanged(heldAgain), admitAt: 0, held: true }]);
    expect(await findExpired(shard.hot, Date.now(), 10, [])).toEqual([]);
    expect(await nextExpiry(shard.hot)).toBe(Date.parse(soon.startBefore));
    const found = await findExpired(shard.hot, Date.now() + 10_000, 10, []);
    expect(found.map((job) => [job.id, job.later]).sort()).toEqual(
      [
        [waiting, false],
        [held, true],
      ].sort(),
    );
    expect((await read(heldAgain)).start_before).toBe(Date.parse(soon.startBefore));
  });
});

describe('the backlog', () => {
  it('is read segment by segment, in the order in which jobs start, from a cursor on', async () => {
    const at = (ms: number) => new Date(Date.now() + ms).toISOString();
    const last = await shard.submit({ queue: 'ordered', runAt: at(9_000) });
    const first = await shard.submit({ queue: 'ordered', runAt: at(1_000) });
    const urgent = await shard.submit({ queue: 'ordered', priority: 9, runAt: at(5_000) });
    const { queue, needs } = (await readWaiting(shard.hot, [first]))[0]!;
    const segments = (await findSegments(shard.hot, BEFORE_ALL_SEGMENTS, 1_000)).filter(
      (segment) => segment.queue === queue,
    );
    expect(segments).toMatchObject([
      { queue, needs, lane: 0, rank: 1, id: urgent },
      { queue, needs, lane: 0, rank: 5, id: first },
    ]);
    const cursors = segments.map((segment) => ({ ...segment, ...SEGMENT_START }));
    const page = await readPages(shard.hot, cursors, 10);
    expect(page.map((job) => job.id)).toEqual([urgent, first, last]);
    const rest = await readPages(shard.hot, [{ ...cursors[1]!, runAt: page[1]!.runAt, id: first }], 10);
    expect(rest.map((job) => job.id)).toEqual([first, last]);
    expect(await readPages(shard.hot, cursors, 1)).toHaveLength(2);
  });

  it('is found by looking back over the newest ids, across all queues, page after page', async () => {
    const ids = [
      await shard.submit({ queue: 'one' }),
      await shard.submit({ queue: 'two' }),
      await shard.submit({ queue: 'three' }),
    ];
    const found = await lookBack(shard.hot, ids[0]!, SEGMENT_START.id, 2, 0);
    expect(found.ids).toEqual(ids.slice(0, 2));
    const next = await lookBack(shard.hot, ids[0]!, ids[1]!, 2, 0);
    expect(next).toEqual({ ids: [ids[2]], admit: false, cancel: false, wake: false, artifacts: false });
    await shard.pool.query(`SELECT punctual.submit_job($1, '{"task":"greet"}')`, [TENANT]);
    await shard.pool.query('SELECT punctual.cancel_job($1, $2)', [TENANT, ids[0]]);
    const last = await lookBack(shard.hot, ids[2]!, ids[2]!, 2, Date.now() + 1_000);
    expect(last).toEqual({ ids: [], admit: true, cancel: true, wake: false, artifacts: false });
  });
});
