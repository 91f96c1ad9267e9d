import { afterAll, beforeAll, expect, it } from 'vitest';
import { inTransaction } from '../../../src/store/database.js';
import { deleteEndedJobs } from '../../../src/store/delete-jobs.js';
import { finishJobs } from '../../../src/store/finish-jobs.js';
import { registerKeys } from '../../../src/store/keys.js';
import type { TermKey } from '../../../src/store/leader-statement.js';
import { admitJobs, readSubmissions, readToAdmit, unchanged } from '../../../src/store/place-jobs.js';
import { findKey, readJob } from '../../../src/store/read-job.js';
import { foldTallies } from '../../../src/store/tallies.js';
import { nobody, pidOf, SUCCEEDED, TENANT, TestShard, until, waitsForLock } from './test-shard.js';

let shard: TestShard;
let term: TermKey;
let close: () => Promise<void>;

beforeAll(async () => {
  ({ shard, close } = await TestShard.open());
  term = await shard.lead();
});
afterAll(() => close());

const REUSE = { keyMode: 'reuse-when-ended' } as const;
const SUBMIT = 'SELECT punctual.submit_job($1, $2) AS id';
const jobsWithKey = async (key: string) => {
  const { rows } = await shard.pool.query(
    `SELECT id FROM punctual.jobs WHERE key = $1 UNION ALL SELECT id FROM punctual.later WHERE key = $1
     UNION ALL SELECT id FROM punctual.job_history WHERE key = $1`,
    [key],
  );
  return rows.map((row) => row.id as string);
};

it('the same key submitted many times at once is one job, and everybody gets its id', async () => {
  const ids = await Promise.all(Array.from({ length: 40 }, () => shard.submit({ key: 'order-1' })));
  expect(new Set(ids).size).toBe(1);
  expect(await jobsWithKey('order-1')).toEqual([ids[0]]);
});

it('the same key is still the same job while that job moves to history, and after', async () => {
  const id = await shard.submit({ key: 'order-2' });
  await shard.claim(term, [id]);
  await inTransaction(shard.hot, async (db) => {
    await finishJobs(db, term, [{ ...SUCCEEDED, id }], Date.now());
    expect(await shard.submit({ key: 'order-2' })).toBe(id);
  });
  expect(await shard.submit({ key: 'order-2' })).toBe(id);
  expect(await jobsWithKey('order-2')).toEqual([id]);
});

it('the same key is the same job while that job waits outside the live table', async () => {
  const id = await shard.submit({ key: 'order-3' }, { held: true });
  expect(await shard.submit({ key: 'order-3' })).toBe(id);
  expect(await findKey(shard.pool, TENANT, 'order-3')).toBe(id);
});

it('keys of deleted jobs are locked in their order, so that nobody who takes several can deadlock', async () => {
  const keys = Array.from({ length: 9 }, (_, n) => `deleted-${9 - n}`);
  const ids: string[] = [];
  for (const key of keys) ids.push(await shard.submit({ key }));
  await shard.claim(term, ids);
  await shard.finish(
    term,
    ids.map((id) => ({ id })),
  );
  const other = await shard.connect();
  await other.query('BEGIN');
  await other.query('SELECT 1 FROM punctual.keys WHERE tenant = $1 AND key = $2 FOR UPDATE', [
    TENANT,
    'deleted-5',
  ]);
  let pid: number | undefined;
  const deleted = inTransaction(shard.hot, async (db) => {
    pid = await pidOf(db);
    return deleteEndedJobs(db, term, TENANT, ids);
  });
  await until(() => pid !== undefined);
  await waitsForLock(shard.pool, pid!);
  const { rows } = await shard.pool.query(
    `SELECT key FROM punctual.keys WHERE key LIKE 'deleted-%' ORDER BY key FOR UPDATE SKIP LOCKED`,
  );
  expect(rows.map(({ key }) => key)).toEqual(keys.slice(0, 4).reverse());
  await other.query('COMMIT');
  expect([...(await deleted)].sort()).toEqual([...ids].sort());
});

it('the same key twice in one bulk is one job, and both places get its id', async () => {
  const jobs = await Promise.all(
    ['a', 'b', 'a', 'c', 'b'].map((key) => shard.newJob({ key: `bulk-${key}` })),
  );
  const plain = await shard.newJob();
  const ids = await shard.store([...jobs, plain]);
  expect(ids[2]).toBe(ids[0]);
  expect(ids[4]).toBe(ids[1]);
  expect(new Set(ids).size).toBe(4);
  expect(ids[5]).toBe(plain.row.id);
  for (const id of ids) expect(await readJob(shard.hot, TENANT, id)).not.toBeNull();
  expect(await jobsWithKey('bulk-a')).toEqual([ids[0]]);
});

it('the same key of two tenants is two jobs', async () => {
  const ours = await shard.submit({ key: 'shared' });
  const theirs = await shard.submit({ key: 'shared' }, { tenant: 'globex' });
  expect(theirs).not.toBe(ours);
  expect(await findKey(shard.pool, 'globex', 'shared')).toBe(theirs);
});

it('bulks with the same keys in opposite order neither deadlock nor double', async () => {
  for (let round = 0; round < 5; round++) {
    const keys = Array.from({ length: 60 }, (_, i) => `crossed-${round}-${i}`);
    const bulk = (order: string[]) => Promise.all(order.map((key) => shard.newJob({ key })));
    const bulks = await Promise.all([bulk(keys), bulk([...keys].reverse()), bulk(keys)]);
    const [a, b, c] = await Promise.all(bulks.map((jobs) => shard.store(jobs)));
    expect([...b!].reverse()).toEqual(a);
    expect(c).toEqual(a);
  }
});

it('bulks that take over the same keys in opposite order neither deadlock nor double', async () => {
  for (let round = 0; round < 5; round++) {
    const keys = Array.from({ length: 60 }, (_, i) => `taken-${round}-${i}`);
    const bulk = (order: string[]) => Promise.all(order.map((key) => shard.newJob({ key, ...REUSE })));
    const first = await shard.store(await bulk(keys));
    await shard.claim(term, first);
    await shard.finish(
      term,
      first.map((id) => ({ id })),
    );
    const bulks = await Promise.all([bulk(keys), bulk([...keys].reverse()), bulk(keys)]);
    const [a, b, c] = await Promise.all(bulks.map((jobs) => shard.store(jobs)));
    expect([...b!].reverse()).toEqual(a);
    expect(c).toEqual(a);
    expect(first.some((id) => a!.includes(id))).toBe(false);
  }
});

/** A throttled job as if it had been submitted some seconds from now. */
async function throttled(key: string, seconds: number) {
  const job = await shard.newJob({ key, keyMode: 'throttle', keyWindow: '1m' });
  const definition = { ...job.row.definition, created_at: job.row.definition.created_at + seconds * 1_000 };
  return { ...job, row: { ...job.row, definition } };
}

it('throttled submissions of one batch that are a window apart are jobs of their own', async () => {
  const jobs = await Promise.all([0, 30, 61, 70, 130].map((seconds) => throttled('apart', seconds)));
  const [first, , third, , fifth] = jobs.map(({ row }) => row.id);
  expect(await shard.store(jobs)).toEqual([first, first, third, third, fifth]);
  expect((await jobsWithKey('apart')).sort()).toEqual([first, third, fifth].sort());
  expect(await findKey(shard.pool, TENANT, 'apart')).toBe(fifth);
});

it('a stored job is replaced before its key passes on in the same batch', async () => {
  const stored = await shard.submit({ key: 'handed' }, { held: true });
  const replacing = await shard.newJob({ key: 'handed', keyMode: 'replace', payload: 2 });
  const next = await throttled('handed', 70);
  const { registered, replacements } = await registerKeys(shard.hot, [replacing, next], Date.now());
  expect(registered).toMatchObject([{ id: stored }, { id: next.row.id, repetition: null }]);
  expect(replacements).toEqual([{ id: stored, isNew: false, by: replacing, held: true }]);
});

it.each([
  [
    'taking one over and renewing another',
    1,
    async (a: string, b: string) => {
      const replacing = await shard.newJob({ key: a, keyMode: 'replace' });
      const jobs = [await shard.newJob({ key: b, ...REUSE }), replacing];
      await inTransaction(shard.hot, (db) => registerKeys(db, jobs, Date.now()));
    },
  ],
  [
    'deleting their jobs',
    2,
    async (_a: string, _b: string, ids: readonly string[]) => {
      await deleteEndedJobs(shard.hot, term, TENANT, ids.toReversed());
    },
  ],
])('keys are locked in their order by %s', async (what, ended, write) => {
  const [a, b] = [`a ${what}`, `b ${what}`];
  const ids = [await shard.submit({ key: a }), await shard.submit({ key: b })];
  await shard.claim(term, ids.slice(-ended));
  await shard.finish(
    term,
    ids.slice(-ended).map((id) => ({ id })),
  );
  const other = await shard.connect();
  await other.query('BEGIN');
  const lock = (key: string) =>
    other.query('SELECT 1 FROM punctual.keys WHERE tenant = $1 AND key = $2 FOR UPDATE NOWAIT', [
      TENANT,
      key,
    ]);
  await lock(a);
  const written = write(a, b, ids);
  await until(async () => {
    const { rows } = await shard.pool.query(
      `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
    );
    return rows.length > 0;
  });
  // Whoever waits for the first key must not have the second.
  expect((await lock(b)).rows).toHaveLength(1);
  await other.query('ROLLBACK');
  await written;
});

it('a key that the database stores as another text still finds its job', async () => {
  const job = await shard.newJob();
  const definition = { ...job.row.definition, key: 'half a pair \ud800' };
  const odd = { ...job, row: { ...job.row, definition } };
  expect(await shard.store([odd])).toEqual([job.row.id]);
  expect(await readJob(shard.hot, TENANT, job.row.id)).not.toBeNull();
});

it("a caller's open transaction blocks neither submissions nor the leader", async () => {
  const caller = await shard.connect();
  await caller.query('BEGIN');
  const submission = JSON.stringify({ task: 'greet', queue: 'tx', key: 'tx-1' });
  const { rows } = await caller.query(SUBMIT, [TENANT, submission]);
  const uncommitted = rows[0].id as string;

  const id = await shard.submit({ key: 'tx-1', queue: 'tx' });
  expect(id).not.toBe(uncommitted);
  const held = await shard.submit({ queue: 'tx' }, { held: true });
  await admitJobs(shard.hot, term, [unchanged(held)]);
  await shard.claim(term, [id, held]);
  await shard.finish(term, [{ id }, { id: held }]);
  await foldTallies(shard.hot, term, Date.now() + 60_000);
  const { rows: other } = await shard.pool.query(SUBMIT, [TENANT, '{"task":"greet","queue":"tx"}']);
  const due = await readToAdmit(shard.hot, Date.now() + 1_000, 100, []);
  expect(due.map((job) => job.id)).toContain(other[0].id);
  expect(due.map((job) => job.id)).not.toContain(uncommitted);

  await caller.query('COMMIT');
  const [row] = (await readToAdmit(shard.hot, Date.now() + 1_000, 100, [])).filter(
    (job) => job.id === uncommitted,
  );
  expect(row).toMatchObject({ tenant: TENANT });
  expect((await readSubmissions(shard.hot, [uncommitted])).get(uncommitted)).toBe(submission);
  // The leader registers the key when it reads the submission; the earlier job has it.
  const job = await shard.newJob({ key: 'tx-1' });
  const unread = { ...job, row: { ...job.row, id: uncommitted } };
  expect(await registerKeys(shard.hot, [unread], Date.now())).toMatchObject({ registered: [{ id }] });
});

it("a caller's transaction is answered with the job that visibly has its key, as long as that is somewhere", async () => {
  const submit = async (submission: object) =>
    (await shard.pool.query(SUBMIT, [TENANT, JSON.stringify({ task: 'greet', ...submission })])).rows[0]
      .id as string;
  const live = await shard.submit({ key: 'seen-live' });
  const later = await shard.submit({ key: 'seen-later' }, { held: true });
  const ended = await shard.submit({ key: 'seen-ended' });
  await shard.claim(term, [ended]);
  await shard.finish(term, [{ id: ended }]);
  await shard.pool.query(`INSERT INTO punctual.keys (tenant, key, job) VALUES ($1, 'seen-gone', $2)`, [
    TENANT,
    nobody(),
  ]);
  const before = await shard.count('later');
  expect(await submit({ key: 'seen-live' })).toBe(live);
  expect(await submit({ key: 'seen-later', keyMode: 'keep' })).toBe(later);
  expect(await submit({ key: 'seen-ended', payload: '\u0000' })).toBe(ended);
  expect(await shard.count('later')).toBe(before);
  const stored = [{ key: 'seen-gone' }, { key: 'seen-live', keyMode: 'replace' }, {}];
  for (const submission of stored) await submit(submission);
  expect(await shard.count('later')).toBe(before + stored.length);
});

it("a caller's transaction that is rolled back leaves nothing", async () => {
  const tables = ['jobs', 'later', 'keys', 'tallies', 'queues'];
  const before = await Promise.all(tables.map((table) => shard.count(table)));
  const caller = await shard.connect();
  await caller.query('BEGIN');
  await caller.query(SUBMIT, [TENANT, '{"task":"greet","key":"never","queue":"never"}']);
  await caller.query('ROLLBACK');
  expect(await Promise.all(tables.map((table) => shard.count(table)))).toEqual(before);
  expect(await findKey(shard.pool, TENANT, 'never')).toBeNull();
});

it("a job of a caller's transaction is found by its key before the leader has read it", async () => {
  const { rows } = await shard.pool.query(SUBMIT, [TENANT, '{"task":"greet","key":"unread"}']);
  expect(await findKey(shard.pool, TENANT, 'unread')).toBe(rows[0].id);
  expect(await findKey(shard.pool, 'globex', 'unread')).toBeNull();
});

it.each([
  ['a tenant that is none', ['no such/tenant', '{"task":"greet"}']],
  ['a submission that is no object', [TENANT, '[]']],
])("a caller's transaction is told at once about %s", async (_, values) => {
  await expect(shard.pool.query(SUBMIT, values)).rejects.toMatchObject({ code: '22023' });
});
