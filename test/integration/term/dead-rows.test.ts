import { expect, it, onTestFinished } from 'vitest';
import { Term } from '../../../src/cluster/term.js';
import { TimerClock } from '../../../src/core/clock.js';
import { resolveConfig } from '../../../src/core/config.js';
import { SILENT_LOG } from '../../../src/core/log.js';
import { Dispatcher } from '../../../src/dispatch/dispatcher.js';
import { openPool, type Pool, type Queryable } from '../../../src/store/database.js';
import { PatientReads } from '../../../src/store/patient-reads.js';
import {
  BEFORE_ALL_SEGMENTS,
  findSegments,
  readPages,
  readWaiting,
  SEGMENT_START,
} from '../../../src/store/read-backlog.js';
import { Door } from '../../happening.js';
import { TestShard, until } from '../store/test-shard.js';

const DEAD_ROWS = 20_000;

/** Holds a snapshot from which everything stays visible until the test ends. */
async function pinHorizon(shard: TestShard): Promise<void> {
  const client = await shard.connect();
  await client.query('SET idle_in_transaction_session_timeout = 0');
  await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ');
  await client.query('SELECT pg_current_xact_id()');
}

/** Jobs that were due before the given one and have ended, on its segment. */
async function leaveDeadRows(shard: TestShard, like: string, count: number): Promise<void> {
  await shard.pool.query(
    `INSERT INTO punctual.jobs (id, tenant, queue, needs, rank, run_at, max_attempts, max_losses, at_most_once,
       timeout_ms, created_at, created_by, payload)
     SELECT gen_random_uuid(), tenant, queue, needs, rank, run_at - n, max_attempts, max_losses, at_most_once,
       timeout_ms, created_at, created_by, payload
     FROM punctual.jobs, generate_series(1, $2::int) n WHERE id = $1`,
    [like, count],
  );
  await shard.pool.query('DELETE FROM punctual.jobs WHERE id <> $1', [like]);
}

/** Runs statements and counts the pages of the database that they look at. */
function counting(db: Queryable): Queryable & { pages: number } {
  const query = async (statement: string | { text: string; values?: unknown[] }) => {
    const { text, values = [] } = typeof statement === 'string' ? { text: statement } : statement;
    const { rows } = await db.query(`EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ${text}`, values);
    const plan = JSON.parse(rows[0]['QUERY PLAN'])[0].Plan;
    counter.pages += plan['Shared Hit Blocks'] + plan['Shared Read Blocks'];
    return db.query({ text, values });
  };
  const counter = { pages: 0, query };
  return counter;
}

it('dead rows in front of what waits are stepped over once, and by no page', async () => {
  const shard = await TestShard.forTest();
  const id = await shard.submit();
  await pinHorizon(shard);
  await leaveDeadRows(shard, id, DEAD_ROWS);
  const found = await findSegments(shard.hot, BEFORE_ALL_SEGMENTS, 10);
  expect(found.map((cursor) => cursor.id)).toEqual([id]);

  const fromFound = counting(shard.hot);
  expect(await readPages(fromFound, found, 100)).toHaveLength(1);
  const fromStart = counting(shard.hot);
  expect(await readPages(fromStart, [{ ...found[0]!, ...SEGMENT_START }], 100)).toHaveLength(1);
  // Without dead rows the test would show nothing.
  expect(fromStart.pages).toBeGreaterThan(DEAD_ROWS / 100);
  expect(fromFound.pages).toBeLessThan(50);
});

it('a segment begins with its first job that waits, however many run before it', async () => {
  const shard = await TestShard.forTest();
  const term = await shard.lead();
  const ids = await shard.submitMany(5);
  const other = await shard.submit({ queue: 'busy' });
  await shard.claim(term, [...ids.slice(0, 3), other]);
  const [first] = await readWaiting(shard.hot, [ids[3]!]);
  const { queue, needs, lane, rank, runAt, id } = first!;
  expect(await findSegments(shard.hot, BEFORE_ALL_SEGMENTS, 10)).toEqual([
    { queue, needs, lane, rank, runAt, id },
  ]);
});

/** A pool in which finding what waits takes until the door opens. */
function slowToFind(pool: Pool, door: Door): Pool {
  const query = async (statement: { readonly name?: string }, ...rest: never[]) => {
    if (statement.name === 'find-segments') await door.opened;
    return (pool.query as (...args: unknown[]) => unknown)(statement, ...rest);
  };
  return new Proxy(pool, {
    get: (target, key) => (key === 'query' ? query : Reflect.get(target, key).bind?.(target)),
  });
}

it('a term begins while what waits is not found yet: with new jobs, and after those that run', async () => {
  const shard = await TestShard.forTest();
  const earlier = await shard.lead();
  await shard.submit({ queue: 'idle' });
  const [, running] = await shard.submitMany(6);
  await shard.claim(earlier, [running!]);
  // What the look-back reaches would be found without all this.
  await shard.pool.query(`UPDATE punctual.jobs SET id = ('00' || substr(id::text, 3))::uuid`);
  await shard.pool.query(`UPDATE punctual.claims SET job = ('00' || substr(job::text, 3))::uuid`);
  await shard.expireLease();
  const { epoch, holder } = await shard.lead({ holder: 'node-b' });

  const door = new Door();
  const dispatcher = new Dispatcher({
    term: new Term(0, epoch, holder, Number.POSITIVE_INFINITY),
    ...{ hot: slowToFind(shard.hot, door), pool: shard.pool, patient: shard.hot },
    ...{ clock: new TimerClock(() => Date.now()), config: resolveConfig({}, {}, () => '').config },
    ...{ log: SILENT_LOG, secret: Buffer.alloc(32), submitTimeoutMs: 1_000, renounce: () => undefined },
  });
  onTestFinished(() => dispatcher.stop());
  const waits = async (count: number) => until(() => dispatcher.waiting === count);
  await dispatcher.start();
  await waits(4);
  const fresh = await shard.submit({ queue: 'fresh' });
  await dispatcher.hint(await readWaiting(shard.hot, [fresh]));
  await waits(5);
  door.open();
  // The one before the running job, and the one of the queue of which nothing runs.
  await waits(7);
});

/** Reads that are given up by the quick connections after 50 ms. */
function patientReads(shard: TestShard): PatientReads {
  const options = {
    applicationName: 'patient test',
    lockTimeoutMs: 1_000,
    idleInTransactionTimeoutMs: 1_000,
  };
  const pools = [50, 20_000].map((statementTimeoutMs) =>
    openPool(shard.url, { ...options, max: 1, hot: true, statementTimeoutMs }),
  );
  onTestFinished(async () => {
    await Promise.all(pools.map((pool) => pool.end()));
  });
  return new PatientReads(pools[0]!, pools[1]!);
}

it('a read that takes longer than a write may is made again with patience', async () => {
  const reads = patientReads(await TestShard.forTest());
  const { rows } = await reads.query('SELECT $1::int AS n, pg_sleep(0.2)', [7]);
  expect(rows[0].n).toBe(7);
  await expect(reads.query('SELECT 1 / 0')).rejects.toThrow('division by zero');
});

it('a patient read ends with its term, in the server too', async () => {
  const shard = await TestShard.forTest();
  const reads = patientReads(shard);
  const sleeping = async () => {
    const asleep = `SELECT 1 FROM pg_stat_activity
      WHERE application_name = 'patient test' AND datname = current_database() AND query LIKE '%pg_sleep(15)%'
        AND state = 'active' AND clock_timestamp() - query_start > interval '100 ms'`;
    return (await shard.pool.query(asleep)).rows.length > 0;
  };
  const outcome = expect(reads.query('SELECT pg_sleep(15)')).rejects.toThrow();
  await until(sleeping);
  reads.stop();
  await outcome;
  await until(async () => !(await sleeping()));
});
