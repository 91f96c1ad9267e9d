import pg from 'pg';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { countStatements } from '../count-statements.js';
import { createTestDatabase, type TestDatabase } from '../database.js';
import { Happening } from '../happening.js';
import { MemoryLog } from '../memory-log.js';
import { TestNode, type TestNodeOptions } from '../node-for-tests.js';

/** Tells what becomes of rehearsals. */
class RehearsalLog extends MemoryLog {
  readonly told = new Happening<string>();

  override debug(fields: Record<string, unknown>, message: string): void {
    super.debug(fields, message);
    if (/rehearsed/.test(message)) this.told.happen(message);
  }
}

let database: TestDatabase;
let client: pg.Client;
let nodes: TestNode[];

beforeEach(async () => {
  database = await createTestDatabase();
  client = new pg.Client({ connectionString: database.url });
  await client.connect();
  nodes = [];
});
afterEach(async () => {
  for (const node of nodes.reverse()) await node.stop();
  await client.end();
  await database.drop();
});

async function start(options: TestNodeOptions = {}): Promise<TestNode> {
  const node = await TestNode.start({ database, ...options });
  nodes.push(node);
  return node;
}

/** A node that leads and starts no job. */
async function startLeader(): Promise<TestNode> {
  const leader = await start({ paused: true });
  // It leads when it has answered what only a leader can.
  await leader.get('GET', '/v1/workers');
  await leader.submit({ task: 'first', keyMode: 'replace', key: 'first' });
  return leader;
}

/** Everything that a takeover or a submission changes. */
async function everything(): Promise<unknown> {
  const tables = [
    ...[
      'jobs',
      'later',
      'job_history',
      'keys',
      'claims',
      'queues',
      'needs',
      'steps',
      'workflows',
      'edges',
      'outbox',
    ],
    ...['workers', 'schedules', 'batches', 'idempotency', 'tenant_usage', 'tenants'],
  ];
  const found: unknown[] = [];
  for (const table of tables)
    found.push((await client.query(`SELECT t::text FROM punctual.${table} t ORDER BY 1`)).rows);
  found.push((await client.query('SELECT shard, epoch, holder FROM punctual.leases')).rows);
  return found;
}

it('a standby rehearses a takeover and submissions, and changes nothing', async () => {
  const leader = await startLeader();
  await leader.submit({ task: 'greet', delay: '1h' });
  const before = await everything();
  const log = new RehearsalLog();
  const counts = countStatements();
  const standby = await start({ log });
  await log.told.times(1);
  expect(log.told.all).toEqual(['a takeover is rehearsed']);
  // The leader is paused and sends none of these.
  const names = [
    'insert-jobs',
    'insert-varied-jobs',
    'read-workers',
    'claim-jobs',
    'claim-known-jobs',
    'finish-jobs',
  ];
  expect(names.map((name) => counts.get(name))).toEqual([2, 1, 1, 1, 1, 1]);
  expect([...log.messages('error'), ...log.messages('warn')]).toEqual([]);
  expect(await everything()).toEqual(before);
  expect([leader.node.leads(), standby.node.leads()]).toEqual([true, false]);
});

it('a standby of a database without jobs rehearses when there are some', async () => {
  const leader = await start({ paused: true });
  await leader.get('GET', '/v1/workers');
  const log = new RehearsalLog();
  await start({ log });
  await leader.submit({ task: 'greet' });
  // A node that joins has the others look.
  await start();
  await log.told.times(1);
  expect(log.told.all).toEqual(['a takeover is rehearsed']);
});

it('a job that has the key of an earlier rehearsal keeps nobody from rehearsing', async () => {
  const leader = await startLeader();
  await leader.submit({ task: 'greet', key: 'rehearsal' });
  const log = new RehearsalLog();
  await start({ log });
  await log.told.times(1);
  expect(log.told.all).toEqual(['a takeover is rehearsed']);
});

it('a rehearsal waits for no more than the statement that runs when its node stops', async () => {
  await startLeader();
  await client.query('BEGIN');
  await client.query('LOCK TABLE punctual.claims IN ACCESS EXCLUSIVE MODE');
  const log = new RehearsalLog();
  const standby = await start({ log });
  await untilBlocked(standby);
  const counts = countStatements();
  const stopped = standby.stop();
  await client.query('ROLLBACK');
  await stopped;
  // What it would have read after the claims.
  expect(counts.get('read-workers')).toBeUndefined();
  expect([...log.messages('error'), ...log.messages('warn')]).toEqual([]);
  expect(log.told.all).toEqual([]);
});

/** Resolves when a rehearsal waits for the table of claims. */
async function untilBlocked({ node }: TestNode): Promise<void> {
  const blocked = `SELECT 1 FROM pg_stat_activity
    WHERE application_name = $1 AND wait_event_type = 'Lock' AND query LIKE '%punctual.claims%'`;
  for (let found = 0; found === 0; found = (await client.query(blocked, [`punctual ${node.id}`])).rowCount!)
    await client.query('SELECT pg_stat_clear_snapshot()');
}
