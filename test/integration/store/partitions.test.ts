import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { firstUuidAt } from '../../../src/core/uuid.js';
import { inTransaction, isMissingPartition } from '../../../src/store/database.js';
import { finishJobs } from '../../../src/store/finish-jobs.js';
import { addLogLines, readLogLines } from '../../../src/store/job-logs.js';
import type { TermKey } from '../../../src/store/leader-statement.js';
import { keepPartitions, makePartition, partitionName } from '../../../src/store/partitions.js';
import { findKey, readJob } from '../../../src/store/read-job.js';
import { makePartitionsAhead, removeOldDays } from '../../../src/store/retention.js';
import { submitJobs } from '../../../src/store/submit-jobs.js';
import { SUCCEEDED, TENANT, TestShard } from './test-shard.js';

const DAY_MS = 86_400_000;
const TABLES = ['job_history', 'job_logs'] as const;
const SUBMIT_IN_TRANSACTION = 'SELECT punctual.submit_job($1, $2) AS id';

async function partitions(shard: TestShard, table: string): Promise<string[]> {
  const { rows } = await shard.pool.query(
    `SELECT inhrelid::regclass::text AS name FROM pg_inherits WHERE inhparent = ('punctual.' || $1)::regclass`,
    [table],
  );
  return rows.map((row) => (row.name as string).replace('punctual.', '')).sort();
}

/** Ends a running job at a moment of the test's choice. */
async function finishAt(shard: TestShard, term: TermKey, id: string, moment: number): Promise<boolean> {
  return (await finishJobs(shard.hot, term, [{ ...SUCCEEDED, id }], moment)).size === 0;
}

/** A job with a key and a log that ended so many days ago. */
async function endedDaysAgo(shard: TestShard, term: TermKey, days: number, key: string): Promise<string> {
  const moment = Date.now() - days * DAY_MS;
  for (const table of TABLES) await makePartition(shard.pool, table, moment);
  const job = await shard.newJob({ key });
  const id = firstUuidAt(moment).slice(0, 13) + randomUUID().slice(13);
  await submitJobs(shard.hot, [{ ...job, row: { ...job.row, id } }], shard.made(), moment);
  await shard.claim(term, [id]);
  await addLogLines(shard.hot, { tenant: TENANT, job: id, fence: 1 }, ['"a line"'], 1_000, moment);
  await finishAt(shard, term, id, moment);
  return id;
}

/** A session that has read history in a transaction and not ended it. */
async function openReader(shard: TestShard) {
  const reader = await shard.connect();
  await reader.query('BEGIN');
  await reader.query('SELECT count(*) FROM punctual.job_history');
  return { leave: () => reader.query('COMMIT') };
}

describe('days ahead', () => {
  it('exist for two weeks after a migration, yesterday included', async () => {
    const shard = await TestShard.forTest();
    for (const table of TABLES) {
      const wanted = Array.from({ length: 16 }, (_, i) =>
        partitionName(table, Date.now() + (i - 1) * DAY_MS),
      );
      expect(await partitions(shard, table)).toEqual(expect.arrayContaining(wanted));
    }
  });

  it('are made as time goes on, once, by however many make them at the same time', async () => {
    const shard = await TestShard.forTest();
    const term = await shard.lead();
    const later = Date.now() + 30 * DAY_MS;
    await Promise.all(Array.from({ length: 4 }, () => makePartition(shard.pool, 'job_history', later)));
    await Promise.all([
      makePartitionsAhead(shard.pool, term, later),
      keepPartitions(shard.pool, later),
      makePartition(shard.pool, 'job_history', later + DAY_MS),
    ]);
    await makePartition(shard.pool, 'job_history', later);
    const days = await partitions(shard, 'job_history');
    expect(days).toContain(partitionName('job_history', later + 14 * DAY_MS));
    expect(new Set(days).size).toBe(days.length);
  });

  it('are taken up when a crash left a day made but not attached', async () => {
    const shard = await TestShard.forTest();
    const day = Date.now() + 50 * DAY_MS;
    const name = partitionName('job_logs', day);
    await shard.pool.query(`CREATE TABLE punctual.${name} (LIKE punctual.job_logs INCLUDING INDEXES)`);
    await makePartition(shard.pool, 'job_logs', day);
    expect(await partitions(shard, 'job_logs')).toContain(name);
  });

  it('wait for no reader, and nothing that finishes waits for them', async () => {
    const shard = await TestShard.forTest();
    const term = await shard.lead();
    const [first, second] = await shard.submitMany(2);
    await shard.claim(term, [first!, second!]);
    const reader = await openReader(shard);
    await inTransaction(shard.pool, async (db) => {
      await makePartition(db, 'job_history', Date.now() + 60 * DAY_MS);
      expect(await shard.finish(term, [{ id: first! }])).toEqual([first]);
      expect((await readJob(shard.hot, TENANT, first!))!.state).toBe('succeeded');
    });
    expect(await shard.finish(term, [{ id: second! }])).toEqual([second]);
    await reader.leave();
  });

  it('have the indexes of all days', async () => {
    const shard = await TestShard.forTest();
    const day = Date.now() + 70 * DAY_MS;
    await makePartition(shard.pool, 'job_history', day);
    const indexes = async (moment: number) =>
      (
        await shard.pool.query(`SELECT indexdef FROM pg_indexes WHERE tablename = $1`, [
          partitionName('job_history', moment),
        ])
      ).rows.map((row) => row.indexdef.replaceAll(/job_history_\w+/g, ''));
    const made = await indexes(day);
    expect(made).toHaveLength(3);
    expect(made.sort()).toEqual((await indexes(Date.now())).sort());
    const { rows } = await shard.pool.query(
      `SELECT count(*) AS n FROM pg_index WHERE indrelid = 'punctual.job_history'::regclass AND NOT indisvalid`,
    );
    expect(rows[0].n).toBe(0);
  });
});

it('an ended job that went well is written to one index of history, and no job to more than three', async () => {
  const shard = await TestShard.forTest();
  const { rows } = await shard.pool.query(
    `SELECT count(*) AS all, count(*) FILTER (WHERE indpred IS NULL) AS of_every_job FROM pg_index
     WHERE indrelid = 'punctual.job_history'::regclass`,
  );
  // Each further one costs a part of the throughput: five instead of one cost a fifth of it.
  expect(rows).toEqual([{ all: 3, of_every_job: 1 }]);
});

describe('a day without a partition', () => {
  it('is recognised, loses nothing, and finishing goes on once the day is made', async () => {
    const shard = await TestShard.forTest();
    const term = await shard.lead();
    const id = await shard.submit();
    await shard.claim(term, [id]);
    const far = Date.now() + 100 * DAY_MS;
    const failure = await finishAt(shard, term, id, far).catch((error: unknown) => error);
    expect(isMissingPartition(failure)).toBe(true);
    expect((await readJob(shard.hot, TENANT, id))!.state).toBe('running');
    await makePartition(shard.pool, 'job_history', far);
    expect(await finishAt(shard, term, id, far)).toBe(true);
  });
});

describe('old days', () => {
  it('are removed with their jobs, logs and keys; younger ones stay', async () => {
    const shard = await TestShard.forTest();
    const term = await shard.lead();
    const old = await endedDaysAgo(shard, term, 40, 'old');
    const young = await endedDaysAgo(shard, term, 20, 'young');
    expect(await removeOldDays(shard.pool, term, Date.now() - 30 * DAY_MS)).toBe(2);
    expect(await readJob(shard.hot, TENANT, old)).toBeNull();
    expect((await readLogLines(shard.pool, TENANT, old, 0, { rows: 10, bytes: 1_000 })).rows).toEqual([]);
    expect(await findKey(shard.pool, TENANT, 'old')).toBeNull();
    expect(await shard.submit({ key: 'old' })).not.toBe(old);
    expect(await findKey(shard.pool, TENANT, 'young')).toBe(young);
    expect(await readJob(shard.hot, TENANT, young)).toMatchObject({ id: young, place: 'history' });
    const { rows: tables } = await shard.pool.query(`SELECT to_regclass('punctual.' || $1) AS old`, [
      partitionName('job_history', Date.now() - 40 * DAY_MS),
    ]);
    expect(tables).toEqual([{ old: null }]);
  });

  it('that cannot leave yet keep their keys: a key never stands for two jobs that are there', async () => {
    const shard = await TestShard.forTest();
    const term = await shard.lead();
    const old = await endedDaysAgo(shard, term, 40, 'old');
    const reader = await openReader(shard);
    await removeOldDays(shard.hot, term, Date.now() - 30 * DAY_MS);
    expect(await findKey(shard.pool, TENANT, 'old')).toBe(old);
    expect(await shard.submit({ key: 'old' })).toBe(old);
    await reader.leave();
    await removeOldDays(shard.hot, term, Date.now() - 30 * DAY_MS);
    expect(await findKey(shard.pool, TENANT, 'old')).toBeNull();
  });

  it('are finished by a later pass when a crash left them detached', async () => {
    const shard = await TestShard.forTest();
    const term = await shard.lead();
    await endedDaysAgo(shard, term, 40, 'old');
    const [history, logs] = TABLES.map((table) => partitionName(table, Date.now() - 40 * DAY_MS));
    await shard.pool.query(`ALTER TABLE punctual.job_history DETACH PARTITION punctual.${history}`);
    await shard.pool.query(`ALTER TABLE punctual.job_logs DETACH PARTITION punctual.${logs}`);
    // A day made ahead and not attached yet is no old day.
    const ahead = partitionName('job_history', Date.now() + 50 * DAY_MS);
    await shard.pool.query(`CREATE TABLE punctual.${ahead} (LIKE punctual.job_history)`);
    expect(await removeOldDays(shard.hot, term, Date.now() - 30 * DAY_MS)).toBe(2);
    expect(await findKey(shard.pool, TENANT, 'old')).toBeNull();
    const { rows } = await shard.pool.query(
      `SELECT relname FROM pg_class WHERE relname = ANY ($1) ORDER BY relname`,
      [[history, logs, ahead]],
    );
    expect(rows).toEqual([{ relname: ahead }]);
  });

  it('leave no key behind that answers with a job that is gone, at any moment of their removal', async () => {
    const shard = await TestShard.forTest();
    const term = await shard.lead();
    const old = [
      await endedDaysAgo(shard, term, 40, 'one'),
      await endedDaysAgo(shard, term, 40, 'two'),
      await endedDaysAgo(shard, term, 40, 'three'),
    ];
    const day = partitionName('job_history', Date.now() - 40 * DAY_MS);
    await shard.pool.query(`ALTER TABLE punctual.job_history DETACH PARTITION punctual.${day}`);
    const young = await shard.submit({ key: 'young' });
    // Many want the keys at the same time, singly and together; one of them gets each.
    const bulk = async () => {
      const keys = ['three', 'young', 'one', 'one', 'new'];
      const jobs = await Promise.all(keys.map((key) => shard.newJob({ key })));
      return shard.store(jobs);
    };
    const single = () => shard.submit({ key: 'one' });
    const [a, b, c, d] = await Promise.all([bulk(), single(), bulk(), single()]);
    expect(b).toBe(a[2]);
    expect(c).toEqual(a);
    expect(d).toBe(b);
    expect(a[3]).toBe(a[2]);
    expect(a[1]).toBe(young);
    for (const id of a) expect(await readJob(shard.hot, TENANT, id)).not.toBeNull();
    expect(a.filter((id) => old.includes(id))).toEqual([]);
    // A submission that nobody has read yet is found by a key of which the job is gone.
    const { rows } = await shard.pool.query(SUBMIT_IN_TRANSACTION, [TENANT, '{"task":"greet","key":"two"}']);
    expect(await findKey(shard.pool, TENANT, 'two')).toBe(rows[0].id);
    // The keys that were taken over stay when the rest is removed.
    await removeOldDays(shard.pool, term, Date.now() - 30 * DAY_MS);
    expect(await shard.submit({ key: 'one' })).toBe(b);
    const { rows: keys } = await shard.pool.query('SELECT key FROM punctual.keys ORDER BY key');
    expect(keys.map(({ key }) => key)).toEqual(['new', 'one', 'three', 'young']);
  });

  it('with very many keys lose all of them', async () => {
    const shard = await TestShard.forTest();
    const term = await shard.lead();
    const JOBS = 20_000;
    await endedDaysAgo(shard, term, 40, 'first');
    await shard.pool.query(
      `INSERT INTO punctual.job_history (id, tenant, queue, needs, rank, run_at, attempts, failures, losses,
         max_attempts, max_losses, at_most_once, timeout_ms, created_at, created_by, key, payload, state, finished_at)
       SELECT gen_random_uuid(), $2, 1, 1, 5, 0, 1, 0, 0, 1, 1, false, 1, 0, 'test', 'key-' || n, 'null', 'succeeded', $3
       FROM generate_series(1, $1::int) n`,
      [JOBS, TENANT, Date.now() - 40 * DAY_MS],
    );
    await shard.pool.query(
      `INSERT INTO punctual.keys SELECT tenant, key, id FROM punctual.job_history WHERE key <> 'first'`,
    );
    const young = await shard.submit({ key: 'young' });
    expect(await removeOldDays(shard.hot, term, Date.now() - 30 * DAY_MS)).toBe(2);
    const { rows } = await shard.pool.query('SELECT job FROM punctual.keys');
    expect(rows).toEqual([{ job: young }]);
  });

  it('do not take the key of a job that has gone round and ended anew', async () => {
    const shard = await TestShard.forTest();
    const term = await shard.lead();
    await endedDaysAgo(shard, term, 40, 'reused');
    await shard.pool.query('DELETE FROM punctual.keys');
    const newer = await shard.submit({ key: 'reused' });
    await removeOldDays(shard.pool, term, Date.now() - 30 * DAY_MS);
    expect(await findKey(shard.pool, TENANT, 'reused')).toBe(newer);
  });

  it('give up quickly behind an open reader, stall nobody, and leave on a later pass', async () => {
    const shard = await TestShard.forTest();
    const term = await shard.lead();
    await endedDaysAgo(shard, term, 40, 'old');
    const id = await shard.submit();
    await shard.claim(term, [id]);
    const reader = await openReader(shard);
    const startedAt = performance.now();
    const [removed, finished] = await Promise.all([
      removeOldDays(shard.pool, term, Date.now() - 30 * DAY_MS),
      shard.finish(term, [{ id }]),
    ]);
    expect(performance.now() - startedAt).toBeLessThan(5_000);
    expect(removed).toBe(1);
    expect(finished).toEqual([id]);
    await reader.leave();
    expect(await removeOldDays(shard.pool, term, Date.now() - 30 * DAY_MS)).toBe(1);
    expect(await removeOldDays(shard.pool, term, Date.now() - 30 * DAY_MS)).toBe(0);
  });
});
