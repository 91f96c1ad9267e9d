import type pg from 'pg';
import { describe, expect, it } from 'vitest';
import type { Job } from '../../src/core/job.js';
import { uuidv7 } from '../../src/core/uuid.js';
import type { Page, RedriveAnswer } from '../../src/core/wire.js';
import { nodeForTest, type TestNode } from '../node-for-tests.js';
import { countPlaces, withClient } from '../postgres-client.js';
import { ProtocolWorker } from '../protocol-worker.js';
import { TestClock } from '../test-clock.js';
import { until } from './store/test-shard.js';

/** Deadlines of a leader's statements lie below the lease: what is too much for them is too much soon. */
const SETTINGS = { leaseTtl: '1s', workerTimeout: '2d' };

/** JSON of 250 KiB that does not become shorter when it is compressed. */
const LARGE = `(SELECT to_json(string_agg(md5(random()::text), '')) FROM generate_series(1, 8000))`;

/** Has the table refuse rows with `poison` in their payload, as it refuses data that it cannot hold. */
async function refusePoison(client: pg.Client, table: string, event: 'INSERT' | 'UPDATE'): Promise<void> {
  await client.query(`
    CREATE OR REPLACE FUNCTION refuse_poison() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      IF NEW.payload::text LIKE '%poison%' THEN
        RAISE EXCEPTION 'poison' USING ERRCODE = '22000';
      END IF;
      RETURN NEW;
    END $$`);
  await client.query(`
    CREATE TRIGGER refuse_poison BEFORE ${event} ON punctual.${table}
    FOR EACH ROW EXECUTE FUNCTION refuse_poison()`);
}

/** Submits by SQL, all in one transaction; answers with the ids in order. */
async function submitByStatement(
  client: pg.Client,
  tenant: string,
  submissions: readonly Record<string, unknown>[],
): Promise<string[]> {
  const { rows } = await client.query(
    'SELECT punctual.submit_job($1, s.one) AS id FROM unnest($2::json[]) WITH ORDINALITY s(one, n) ORDER BY n',
    [tenant, submissions.map((submission) => JSON.stringify(submission))],
  );
  return rows.map((row) => row.id as string);
}

/** Waits until a place holds so many jobs. */
function holds(node: TestNode, place: 'live' | 'history', jobs: number): Promise<void> {
  return until(async () => (await countPlaces(node.database.url))[place] === jobs);
}

const withPayloads = (...payloads: readonly string[]) =>
  payloads.map((payload) => ({ task: 'work', payload }));

describe('admission', () => {
  it('of one tenant’s large transaction goes on part by part, and keeps no other tenant waiting', async () => {
    const node = await nodeForTest({ settings: SETTINGS });
    const JOBS = 80;
    await withClient(node.database.url, (client) =>
      client.query(
        `WITH large AS MATERIALIZED (SELECT json_build_object('task', 'work', 'payload', ${LARGE}) AS one)
         SELECT count(punctual.submit_job('heavy', large.one)) FROM large, generate_series(1, $1::int)`,
        [JOBS],
      ),
    );
    const [other] = await withClient(node.database.url, (client) =>
      submitByStatement(client, 'calm', withPayloads('small')),
    );
    await withClient(node.database.url, async (client) => {
      const others = 'SELECT count(*) AS n FROM punctual.jobs';
      const isLive = `SELECT 1 FROM punctual.jobs WHERE id = '${other}'`;
      await until(async () => (await client.query(isLive)).rows.length > 0);
      // It came last and did not have to wait for all that came before it.
      expect(Number((await client.query(others)).rows[0].n)).toBeLessThan(JOBS);
      await until(async () => Number((await client.query(others)).rows[0].n) === JOBS + 1);
    });
  });

  it.each([
    ['submission that cannot be read into its row', 'later', 'UPDATE'],
    ['job that cannot be moved to the live ones', 'jobs', 'INSERT'],
  ] as const)('ends a %s as failed, and admits all others', async (_, table, event) => {
    const node = await nodeForTest();
    const ids = await withClient(node.database.url, async (client) => {
      await refusePoison(client, table, event);
      const payloads = Array.from({ length: 40 }, (_, i) => (i % 20 === 7 ? 'poison' : 'good'));
      return submitByStatement(client, 'default', withPayloads(...payloads));
    });
    const bad = [ids[7]!, ids[27]!];
    await holds(node, 'live', ids.length - bad.length);
    for (const id of bad) {
      expect(await node.ended(id)).toMatchObject({ state: 'failed', error: { code: 'UNSTORABLE' } });
    }
  });

  it('does not read what is far too large to be a submission', async () => {
    const node = await nodeForTest();
    const [huge, small] = await withClient(node.database.url, async (client) => {
      const { rows } = await client.query(
        `INSERT INTO punctual.later (id, tenant, admit_at, submission, created_at, created_by)
         VALUES ($1, 'default', $2, json_build_object('task', 'work', 'payload', repeat('x', 8000000)), $2, 'test')
         RETURNING id`,
        [uuidv7(Date.now()), Date.now()],
      );
      return [rows[0].id, ...(await submitByStatement(client, 'default', withPayloads('good')))];
    });
    expect(await node.ended(huge)).toMatchObject({ state: 'failed', error: { code: 'PAYLOAD_TOO_LARGE' } });
    await holds(node, 'live', 1);
    expect(await node.job(small!)).toMatchObject({ state: 'pending' });
  });

  it('goes round a job that somebody has locked, and comes back to it', async () => {
    const clock = new TestClock();
    const node = await nodeForTest({ settings: { leaseTtl: '2s' }, clock });
    await withClient(node.database.url, async (client) => {
      await client.query('BEGIN');
      const ids = await submitByStatement(client, 'default', withPayloads(...Array(8).fill('good')));
      await client.query('COMMIT');
      await client.query('BEGIN');
      await client.query('SELECT 1 FROM punctual.later WHERE id = $1 FOR UPDATE', [ids[3]]);
      // The rows are due by the database's own clock, which went on while the node started.
      clock.advance(60_000);
      await holds(node, 'live', ids.length - 1);
      await client.query('COMMIT');
    });
    clock.advance(10_000);
    await holds(node, 'live', 8);
  });
});

describe('a flood of one tenant', () => {
  it('does not keep the jobs of others from being admitted until it is through', async () => {
    const clock = new TestClock();
    const node = await nodeForTest({ clock });
    await withClient(node.database.url, async (client) => {
      await client.query(
        `SELECT count(punctual.submit_job('flood', '{"task": "work"}'::json)) FROM generate_series(1, 12000)`,
      );
      // Slow enough that the flood takes a while.
      await client.query(`
        CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(0.002); RETURN NEW; END $$`);
      await client.query(
        'CREATE TRIGGER slow BEFORE INSERT ON punctual.jobs FOR EACH ROW EXECUTE FUNCTION slow()',
      );
      const [calm] = await submitByStatement(client, 'calm', withPayloads('good'));
      clock.advance(60_000);
      const isLive = async () =>
        (await client.query('SELECT 1 FROM punctual.jobs WHERE id = $1', [calm])).rows.length > 0;
      await until(isLive);
      const { rows } = await client.query('SELECT count(*)::int AS left FROM punctual.later');
      expect(rows[0].left).toBeGreaterThan(2_000);
    });
  });
});

describe('ends and redrives', () => {
  it('of other jobs do not wait for one that somebody has locked', async () => {
    const node = await nodeForTest({ settings: { leaseTtl: '2s', workerTimeout: '2d' } });
    const worker = await ProtocolWorker.register(node);
    const jobs = await Promise.all(Array.from({ length: 3 }, () => node.submit({ task: 'work' })));
    const assignments = [];
    while (assignments.length < 3) assignments.push(...(await worker.claim(3)));
    const finish = ({ jobId, fence }: { jobId: string; fence: number }) =>
      node.ask('POST', `/v1/jobs/${jobId}/complete`, { body: { fence } });
    const [first, ...others] = assignments;
    await withClient(node.database.url, async (client) => {
      await client.query('BEGIN');
      await client.query('SELECT 1 FROM punctual.jobs WHERE id = $1 FOR UPDATE', [first!.jobId]);
      const locked = finish(first!);
      // The first try of the locked one may take the others along.
      for (const other of others) expect((await finish(other)).status).toBeLessThan(300);
      await client.query('COMMIT');
      expect((await locked).status).toBeLessThan(300);
    });
    for (const { id } of jobs) expect((await node.ended(id)).state).toBe('succeeded');
  });

  it('of one dead worker that are locked hold up neither other dead workers nor overdue ends', async () => {
    const clock = new TestClock();
    const node = await nodeForTest({ clock, settings: { leaseTtl: '2s' } });
    const [locked, other, overdue] = [await dying(node), await dying(node), await dying(node)];
    await overdue.worker.handOn(overdue.attempt);
    await withClient(node.database.url, async (client) => {
      await client.query('BEGIN');
      await client.query('SELECT 1 FROM punctual.jobs WHERE id = $1 FOR UPDATE', [locked.attempt.jobId]);
      clock.advance(10_001);
      expect(await node.ended(other.attempt.jobId)).toMatchObject({
        state: 'failed',
        error: { code: 'LOST' },
      });
      const { state, error } = await node.ended(overdue.attempt.jobId);
      expect({ state, code: error?.code }).toEqual({ state: 'failed', code: 'TIMED_OUT' });
      await client.query('COMMIT');
    });
    await until(async () => {
      clock.advance(1_000);
      return (await node.job(locked.attempt.jobId)).state === 'failed';
    });
  });

  it('come one at a time, and no more than a few of a tenant wait', async () => {
    const node = await nodeForTest();
    const worker = await ProtocolWorker.register(node);
    const { id } = await node.submit({ task: 'work', retry: { maxAttempts: 1 } });
    const [assignment] = await worker.claim();
    const body = { fence: assignment!.fence, error: { message: 'no' } };
    await node.get('POST', `/v1/jobs/${id}/fail`, { body });
    const redrive = () => node.ask<RedriveAnswer>('POST', '/v1/jobs/redrive', { body: { all: true } });
    await withClient(node.database.url, async (client) => {
      await client.query('BEGIN');
      await client.query('SELECT 1 FROM punctual.job_history WHERE id = $1 FOR UPDATE', [id]);
      const calls = Array.from({ length: 5 }, redrive);
      expect((await Promise.race(calls)).status).toBe(503);
      await client.query('COMMIT');
      const answers = await Promise.all(calls);
      expect(answers.filter(({ status }) => status === 503)).toHaveLength(1);
      const redriven = answers.map(({ body }) => body.redriven ?? 0);
      expect(redriven.sort()).toEqual([0, 0, 0, 0, 1]);
    });
  });
});

/** A worker that says nothing more after its first heartbeat, with a job that may run for 5 s and is tried once. */
async function dying(node: TestNode) {
  const worker = await ProtocolWorker.register(node);
  await node.submit({ task: 'work', delivery: 'at-most-once', timeout: '5s' });
  return { worker, attempt: await worker.claimOne() };
}

/** Stores large jobs that can start until a moment, and one with another payload among them. */
async function storeLarge(
  node: TestNode,
  count: number,
  startBefore: number,
  odd: string | null,
): Promise<void> {
  const { id } = await node.submit({ task: 'work', startBefore: new Date(startBefore).toISOString() });
  await withClient(node.database.url, async (client) => {
    const { fields } = await client.query('SELECT * FROM punctual.jobs LIMIT 0');
    const others = fields.map((field) => field.name).filter((name) => name !== 'id' && name !== 'payload');
    await client.query(
      `INSERT INTO punctual.jobs (id, payload, ${others.join(', ')})
       SELECT (substr(j.id::text, 1, 14) || substr(gen_random_uuid()::text, 15))::uuid, CASE WHEN n = 40 AND $3::text IS NOT NULL THEN to_json($3::text) ELSE large.payload END,
         ${others.map((name) => `j.${name}`).join(', ')}
       FROM punctual.jobs j, (SELECT ${LARGE} AS payload OFFSET 0) large, generate_series(2, $2::int) n
       WHERE j.id = $1`,
      [id, count, odd],
    );
  });
}

describe('expiry and redrive', () => {
  it('of many large jobs go on part by part', async () => {
    const clock = new TestClock();
    const node = await nodeForTest({ settings: SETTINGS, clock });
    const JOBS = 80;
    await storeLarge(node, JOBS, clock.now() + 60_000, null);
    clock.advance(61_000);
    await holds(node, 'history', JOBS);
    let redriven = 0;
    for (let more = true; more; ) {
      const { status, body } = await node.ask<RedriveAnswer>('POST', '/v1/jobs/redrive', {
        body: { all: true },
      });
      // So short a lease may be lost on a machine that is busy with other tests.
      if (status === 503) continue;
      redriven += body.redriven;
      more = body.more;
    }
    expect(redriven).toBeGreaterThan(0);
    expect(await countPlaces(node.database.url)).toMatchObject({ live: JOBS, history: 0 });
  });

  it('leave out a job that cannot be moved, and move all others', async () => {
    const clock = new TestClock();
    const node = await nodeForTest({ settings: { workerTimeout: '2d' }, clock });
    await storeLarge(node, 60, clock.now() + 60_000, 'poison');
    await withClient(node.database.url, async (client) => {
      await refusePoison(client, 'job_history', 'INSERT');
      clock.advance(61_000);
      await holds(node, 'history', 59);
      expect((await countPlaces(node.database.url)).live).toBe(1);
      await client.query('DROP TRIGGER refuse_poison ON punctual.job_history');
      clock.advance(10_000);
      await holds(node, 'history', 60);
      await refusePoison(client, 'jobs', 'INSERT');
    });
    expect(await node.get('POST', '/v1/jobs/redrive', { body: { all: true } })).toMatchObject({
      matched: 60,
      redriven: 59,
      more: false,
    });
    const left = await node.get<Page<Job>>('GET', '/v1/jobs?state=failed');
    expect(left.data.map((job) => job.payload)).toEqual(['poison']);
  });
});
