import { randomBytes } from 'node:crypto';
import type pg from 'pg';
import { expect, inject, it, onTestFinished } from 'vitest';
import { checkDatabase } from '../../src/cli/doctor.js';
import { resolveConfig } from '../../src/core/config.js';
import { SILENT_LOG } from '../../src/core/log.js';
import { readerRoleOf } from '../../src/core/reader-role.js';
import type { JobPage } from '../../src/core/wire.js';
import { startNode } from '../../src/node/start-node.js';
import { openPool, type Pool } from '../../src/store/database.js';
import { listJobs } from '../../src/store/list-jobs.js';
import { migrate } from '../../src/store/migrate.js';
import { TenantReads } from '../../src/store/tenant-reads.js';
import { findWall, raiseWall, WALLED_TABLES } from '../../src/store/tenant-wall.js';
import type { TestDatabase } from '../database.js';
import { MemoryLog } from '../memory-log.js';
import { nodeForTest } from '../node-for-tests.js';
import { withClient } from '../postgres-client.js';
import { SHARD, TestShard } from './store/test-shard.js';

const A = 'tenant-a';
const B = 'tenant-b';
const NO_RIGHT = '42501';
const READ_ONLY = '25006';
const PORTION = { rows: 50, bytes: 1_000_000 };

const unique = (what: string) => `${what}_${randomBytes(6).toString('hex')}`;

function onServer(sql: string, database?: string): Promise<pg.QueryResult> {
  const url = new URL(inject('serverUrl'));
  if (database !== undefined) url.pathname = `/${database}`;
  return withClient(url.href, (client) => client.query(sql));
}

/** A role for nodes with an empty database of its own, and the role that reads for it if it comes to that. */
async function ownerWithDatabase(attributes = ''): Promise<{ role: string; database: TestDatabase }> {
  const role = unique('owner');
  await onServer(`CREATE ROLE ${role} LOGIN PASSWORD 'secret' ${attributes}`);
  onTestFinished(async () => {
    await onServer(`DROP ROLE IF EXISTS ${readerRoleOf(role)}`);
    await onServer(`DROP ROLE ${role}`);
  });
  return { role, database: await databaseOf(role) };
}

/** An empty database, which goes before its owner does. */
async function databaseOf(role: string): Promise<TestDatabase & { readonly name: string }> {
  const name = unique('walled');
  await onServer(`CREATE DATABASE ${name} OWNER ${role}`);
  const drop = async () => {
    await onServer(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
  };
  onTestFinished(drop);
  const url = new URL(inject('nodeUrl'));
  url.pathname = `/${name}`;
  url.username = role;
  url.password = 'secret';
  return { name, url: url.href, drop };
}

/** A row of each tenant in every table that people read. */
async function shardWithTenants(): Promise<TestShard> {
  const shard = await TestShard.forTest();
  const term = await shard.lead();
  for (const tenant of [A, B]) {
    const running = await shard.submit({ key: 'running' }, { tenant });
    const ended = await shard.submit({}, { tenant });
    await shard.submit({}, { tenant, held: true });
    await shard.claim(term, [running, ended]);
    await shard.finish(term, [{ id: ended }]);
    await shard.pool.query(
      'INSERT INTO punctual.job_history_kept SELECT * FROM punctual.job_history WHERE tenant = $1',
      [tenant],
    );
    await shard.pool.query(
      `INSERT INTO punctual.job_logs (tenant, job, fence, stored_at, line) VALUES ($1, $2, 1, $3, '{}')`,
      [tenant, running, Date.now()],
    );
    await shard.pool.query(
      `WITH made AS (
         INSERT INTO punctual.schedules (id, tenant, name, definition, paused, watermark, created_at, created_by, changed_at,
           changed_by)
         VALUES (gen_random_uuid(), $1, 's', '{}', false, 0, 0, 'test', 0, 'test') RETURNING id)
       INSERT INTO punctual.occurrences (schedule, tenant, at, state, late_after, recorded_at)
       SELECT id, $1, 1, 'ran', 1000, 1 FROM made`,
      [tenant],
    );
    await shard.pool.query(
      `WITH made AS (
         INSERT INTO punctual.workflows (id, tenant, name, steps, steps_left, on_failure, running, created_at, created_by)
         VALUES (gen_random_uuid(), $1, 'w', 1, 1, 'stop', 'finish', 0, 'test') RETURNING id
       ), step AS (
         INSERT INTO punctual.steps (id, workflow, tenant, name, place, run_if, parents, parents_left, released)
         SELECT gen_random_uuid(), id, $1, 's', 0, 'all-finished', 0, 0, true FROM made RETURNING id)
       INSERT INTO punctual.edges (parent, child) SELECT id, id FROM step`,
      [tenant],
    );
    await shard.pool.query(
      `INSERT INTO punctual.artifacts (id, tenant, sha256, size, runnable, created_at, created_by, expires_at, used_at)
       VALUES (gen_random_uuid(), $1, 'a', 1, true, 0, 'test', 0, 0)`,
      [tenant],
    );
    await shard.pool.query(
      `INSERT INTO punctual.origin_limits (tenant, origin, concurrency, changed_at)
       VALUES ($1, 'https://example.com', 1, 0)`,
      [tenant],
    );
    await shard.pool.query(
      `INSERT INTO punctual.workflow_definitions
         (tenant, name, version, jobs, on_failure, running, digest, bytes, steps, created_at, created_by)
       VALUES ($1, 'w', 1, '{}', 'stop', 'finish', '', 2, 1, 0, 'test')`,
      [tenant],
    );
    await shard.pool.query(
      `INSERT INTO punctual.batches (id, tenant, on_failure, members, places, due_at, created_at, created_by)
       VALUES (gen_random_uuid(), $1, 'continue', '{}', '[]', 0, 0, 'test')`,
      [tenant],
    );
    await shard.pool.query(
      `WITH secret AS (
         INSERT INTO punctual.secrets (tenant, name, version, key_id, sealed, origins, created_at, created_by, changed_at,
           changed_by)
         VALUES ($1, 's', 1, 'k', '', '{}', 0, 'test', 0, 'test'))
       INSERT INTO punctual.signing_secrets (tenant, id, key_id, sealed, created_at)
       VALUES ($1, gen_random_uuid(), 'k', '', 0)`,
      [tenant],
    );
    await shard.pool.query(
      `INSERT INTO punctual.tasks (tenant, name, definition, created_at, created_by, changed_at, changed_by)
       VALUES ($1, 't', '{}', 0, 'test', 0, 'test')`,
      [tenant],
    );
    await shard.pool.query(
      `INSERT INTO punctual.audit (id, at, tenant, key_name, action, kind, subject, outcome)
       VALUES (gen_random_uuid(), 0, $1, 'test', 'task.put', 'task', 't', 'done')`,
      [tenant],
    );
  }
  return shard;
}

/** Everything on one connection, as for users of a pool that get it one after the other. */
function readsOfOneConnection(shard: TestShard): { pool: Pool; walled: TenantReads } {
  const deadlines = { statementTimeoutMs: 5_000, lockTimeoutMs: 5_000, idleInTransactionTimeoutMs: 5_000 };
  const pool = openPool(shard.url, { ...deadlines, hot: false, applicationName: 'punctual test', max: 1 });
  onTestFinished(() => pool.end());
  return { pool, walled: new TenantReads(pool, readerRoleOf(new URL(shard.url).username)) };
}

/** Counts rows without a condition on the tenant, as a statement would that forgot it. */
async function countAll(reads: TenantReads, tenant: string, table: string): Promise<number> {
  const { rows } = await reads.read(tenant, (db) => db.query(`SELECT count(*) AS n FROM punctual.${table}`));
  return rows[0].n;
}

it('a statement that forgets its tenant finds the rows of that tenant only, in every table', async () => {
  const shard = await shardWithTenants();
  for (const table of WALLED_TABLES) {
    expect(await shard.count(table), table).toBe(2);
    expect(await countAll(shard.reads, A, table), table).toBe(1);
    expect(await countAll(shard.reads, 'nobody', table), table).toBe(0);
  }
  const { rows } = await shard.reads.read(A, (db) =>
    db.query('SELECT tenant FROM punctual.jobs UNION ALL SELECT tenant FROM punctual.job_history'),
  );
  expect(rows).toEqual([{ tenant: A }, { tenant: A }]);
});

it('without a tenant the role sees nothing, and an id with quotes is only an id', async () => {
  const shard = await shardWithTenants();
  const role = readerRoleOf(new URL(shard.url).username);
  const client = await shard.connect();
  await client.query(`BEGIN; SET LOCAL ROLE ${role}`);
  for (const table of WALLED_TABLES) {
    const { rows } = await client.query(`SELECT count(*) AS n FROM punctual.${table}`);
    expect(rows[0].n, table).toBe(0);
  }
  await client.query('ROLLBACK');
  expect(await countAll(shard.reads, `x', false); RESET ROLE; SELECT ('`, 'jobs')).toBe(0);
});

it('the role has no other rights: not on partitions, and on no table that people do not read', async () => {
  const shard = await shardWithTenants();
  const role = readerRoleOf(new URL(shard.url).username);
  const { rows } = await shard.pool.query(
    `SELECT c.relname AS name, has_table_privilege($1, c.oid, 'SELECT') AS reads,
       has_table_privilege($1, c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER') AS changes
     FROM pg_class c WHERE c.relnamespace = 'punctual'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'S')`,
    [role],
  );
  expect(rows.filter(({ changes }) => changes)).toEqual([]);
  const read = rows.filter(({ reads }) => reads).map(({ name }) => name);
  expect(read.sort()).toEqual([...WALLED_TABLES].sort());
  const refused = ['cluster', 'api_keys', 'leases', 'workers', 'tallies', 'idempotency', 'submit_grants'];
  const { rows: days } = await shard.pool.query(
    `SELECT inhrelid::regclass::text AS name FROM pg_inherits WHERE inhparent IN ('punctual.job_history'::regclass,
       'punctual.job_logs'::regclass) LIMIT 5`,
  );
  for (const table of [...refused.map((name) => `punctual.${name}`), ...days.map(({ name }) => name)]) {
    const reading = shard.reads.read(A, (db) => db.query(`SELECT count(*) FROM ${table}`));
    await expect(reading, table).rejects.toMatchObject({ code: NO_RIGHT });
  }
  const writing = shard.reads.read(A, (db) => db.query('DELETE FROM punctual.jobs'));
  await expect(writing).rejects.toMatchObject({ code: READ_ONLY });
});

it('queues have no policy, which made lists slow; of them the role reads names and nothing else', async () => {
  const shard = await shardWithTenants();
  const { rows } = await shard.pool.query(
    `SELECT relrowsecurity AS secured FROM pg_class WHERE oid = 'punctual.queues'::regclass`,
  );
  expect(rows).toEqual([{ secured: false }]);
  const names = await shard.reads.read(A, (db) => db.query('SELECT id, tenant, name FROM punctual.queues'));
  expect(names.rows).toHaveLength(2);
  const limits = shard.reads.read(A, (db) => db.query('SELECT * FROM punctual.queues'));
  await expect(limits).rejects.toMatchObject({ code: NO_RIGHT });
});

it('one insert still stores the jobs of several tenants: nodes are exempt from the policies', async () => {
  const shard = await TestShard.forTest();
  const jobs = [await shard.newJob({}, { tenant: A }), await shard.newJob({}, { tenant: B })];
  expect(await shard.store(jobs)).toHaveLength(2);
  expect(await shard.count('jobs')).toBe(2);
});

it('nothing of role and tenant is left for the next user of the connection, also after an error', async () => {
  const shard = await shardWithTenants();
  const { pool, walled: reads } = readsOfOneConnection(shard);
  const owner = new URL(shard.url).username;
  const whoAmI = `SELECT current_user::text AS user, coalesce(current_setting('punctual.tenant', true), '') AS tenant,
    pg_backend_pid() AS pid`;
  const { pid } = (await pool.query(whoAmI)).rows[0];
  const inside = await reads.read(A, (db) => db.query(whoAmI));
  expect(inside.rows).toEqual([{ user: readerRoleOf(owner), tenant: A, pid }]);
  expect((await pool.query(whoAmI)).rows).toEqual([{ user: owner, tenant: '', pid }]);
  await expect(reads.read(A, (db) => db.query('SELECT nonsense'))).rejects.toThrow('nonsense');
  expect((await pool.query(whoAmI)).rows).toEqual([{ user: owner, tenant: '', pid }]);
  expect(await countAll(reads, B, 'jobs')).toBe(1);
  expect((await pool.query('SELECT count(*) AS n FROM punctual.jobs')).rows).toEqual([{ n: 2 }]);
});

it('a statement that is prepared once on a connection follows whoever runs it', async () => {
  const shard = await shardWithTenants();
  const reads = readsOfOneConnection(shard);
  const prepared = { name: 'count-all', text: 'SELECT count(*) AS n FROM punctual.jobs' };
  for (const plans of ['auto', 'force_generic_plan']) {
    await reads.pool.query(`SET plan_cache_mode TO ${plans}`);
    const asOwner = async () => (await reads.pool.query(prepared)).rows[0].n;
    const as = async (tenant: string) =>
      (await reads.walled.read(tenant, (db) => db.query(prepared))).rows[0].n;
    expect([await asOwner(), await as(A), await asOwner(), await as('nobody'), await as(B)]).toEqual([
      2, 1, 2, 0, 1,
    ]);
  }
});

it('jobs are searched as the owner, which bounds what is examined, and read behind the wall in the same snapshot', async () => {
  const shard = await shardWithTenants();
  const owner = new URL(shard.url).username;
  const user = 'SELECT current_user::text AS user, count(*) AS jobs FROM punctual.jobs';
  const seen = await shard.reads.readFound(
    A,
    async (db) => {
      const before = (await db.query(user)).rows;
      // Whatever happens between the two statements, they see the same.
      await shard.submit({}, { tenant: A });
      return before;
    },
    async (db, before) => [...before, ...(await db.query(user)).rows],
  );
  expect(seen).toEqual([
    { user: owner, jobs: 2 },
    { user: readerRoleOf(owner), jobs: 1 },
  ]);
});

it('a search among many jobs of others examines no more rows than it may', async () => {
  const shard = await TestShard.forTest();
  for (let i = 0; i < 60; i++) await shard.submit({}, { tenant: B });
  const first = await listJobs(shard.reads, A, {}, PORTION, 10);
  expect(first).toMatchObject({ rows: [], examined: 0, examinedInAll: 10 });
  expect(first.next).not.toBeNull();
});

it('whatever is read behind the wall, a search that found the job of another shows nothing of it', async () => {
  const shard = await shardWithTenants();
  const { rows } = await shard.pool.query('SELECT id FROM punctual.jobs WHERE tenant = $1', [B]);
  const shown = await shard.reads.readFound(
    A,
    async () => rows[0].id as string,
    (db, id) => db.query('SELECT payload FROM punctual.jobs WHERE id = $1', [id]),
  );
  expect(shown.rows).toEqual([]);
});

it('all routes that read for people go through the wall, and fail closed when it falls', async () => {
  const node = await nodeForTest({ log: SILENT_LOG });
  const wall = await findWall(node.database.url);
  expect(wall).toMatchObject({ stands: true });
  const job = await node.submit({ task: 'nobody', key: 'order-1', payload: { customer: 7 } });
  await node.get('POST', '/v1/tasks', { body: { name: 'greet' } });
  const schedule = { cron: '0 0 * * *', task: 'greet' };
  await node.get('POST', '/v1/schedules', { body: { name: 'nightly', ...schedule } });
  const routes = [
    '/v1/jobs',
    '/v1/jobs?payload.customer=7',
    '/v1/jobs?key=order-1',
    '/v1/jobs?keyPrefix=order',
    `/v1/jobs/${job.id}/logs`,
    '/v1/tasks',
    '/v1/tasks/greet',
    '/v1/schedules',
    '/v1/schedules/nightly',
    '/v1/schedules/nightly/occurrences',
    '/v1/audit',
    '/v1/audit?order=chain',
  ];
  // The operator names a tenant: without one it reads the audit of all tenants.
  const statuses = async () => {
    const asked = routes.map(async (path) => [
      path,
      (await node.ask('GET', path, { tenant: 'default' })).status,
    ]);
    return Object.fromEntries(await Promise.all(asked));
  };
  expect(await statuses()).toEqual(Object.fromEntries(routes.map((path) => [path, 200])));
  for (const path of routes.slice(0, 4)) {
    const { data } = await node.get<JobPage>('GET', path);
    expect(
      data.map(({ id }) => id),
      path,
    ).toEqual([job.id]);
  }
  await withClient(node.database.url, (client) =>
    client.query(`REVOKE USAGE ON SCHEMA punctual FROM ${wall!.role}`),
  );
  expect(await statuses()).toEqual(Object.fromEntries(routes.map((path) => [path, 500])));
  // What is exempt goes on.
  expect((await node.ask('GET', `/v1/jobs/${job.id}`)).status).toBe(200);
  expect(await raiseWall(node.database.url)).toMatchObject({ stands: true });
  expect(await statuses()).toEqual(Object.fromEntries(routes.map((path) => [path, 200])));
});

it('where nodes may not create roles they serve everything without the wall, say so once, and doctor tells', async () => {
  const { role, database } = await ownerWithDatabase();
  await migrate(database.url);
  const log = new MemoryLog();
  const node = await nodeForTest({ database, log });
  const job = await node.submit({ task: 'nobody', key: 'order-1' });
  for (const path of ['/v1/jobs', '/v1/jobs?keyPrefix=order']) {
    expect((await node.get<JobPage>('GET', path)).data).toMatchObject([{ id: job.id }]);
  }
  expect(await node.get('GET', '/v1/schedules')).toMatchObject({ data: [] });
  const remedy = `CREATE ROLE "${readerRoleOf(role)}" NOLOGIN; GRANT "${readerRoleOf(role)}" TO "${role}";`;
  const warnings = log.lines.filter(({ message }) => message.includes('row-level security'));
  expect(warnings).toMatchObject([{ level: 'warn', fields: { shard: SHARD, remedy } }]);
  const doctor = async () =>
    (await checkDatabase(database.url)).find(({ name }) => name === 'row-level security');
  expect(await doctor()).toMatchObject({ status: 'warn', advice: expect.stringContaining(remedy) });

  await onServer(remedy);
  expect(await raiseWall(database.url)).toEqual({ stands: true, role: readerRoleOf(role) });
  expect(await doctor()).toMatchObject({ status: 'ok' });
});

it('owners that may create roles get theirs, however many databases begin at once', async () => {
  const { role } = await ownerWithDatabase('CREATEROLE');
  const databases = await Promise.all(Array.from({ length: 3 }, () => databaseOf(role)));
  const urls = databases.flatMap(({ url }) => [url, url]);
  for (const { url } of databases) await migrate(url);
  const walls = await Promise.all(urls.map((url) => raiseWall(url)));
  expect(walls).toEqual(urls.map(() => ({ stands: true, role: readerRoleOf(role) })));
  // A database can be dropped; its owner's role stays for the others.
  await databases[0]!.drop();
  expect(await findWall(databases[1]!.url)).toMatchObject({ stands: true });
});

it('owners of two databases on one server cannot read in the database of the other', async () => {
  const one = await ownerWithDatabase('CREATEROLE');
  const other = await ownerWithDatabase('CREATEROLE');
  for (const { database } of [one, other]) {
    await migrate(database.url);
    expect(await raiseWall(database.url)).toMatchObject({ stands: true });
  }
  const stranger = new URL(other.database.url);
  stranger.username = one.role;
  await withClient(stranger.href, async (client) => {
    for (const role of [readerRoleOf(one.role), readerRoleOf(other.role)]) {
      const reading = client.query(
        `BEGIN; SET LOCAL ROLE ${role}; SET LOCAL punctual.tenant TO 'default'; SELECT count(*) FROM punctual.jobs`,
      );
      await expect(reading, role).rejects.toMatchObject({ code: NO_RIGHT });
      await client.query('ROLLBACK');
    }
  });
});

it('after a restore without rights, the next start gives them back', async () => {
  const { role, database } = await ownerWithDatabase('CREATEROLE');
  await migrate(database.url);
  await raiseWall(database.url);
  const name = new URL(database.url).pathname.slice(1);
  await onServer(`DROP OWNED BY ${readerRoleOf(role)}; DROP ROLE ${readerRoleOf(role)}`, name);
  expect(await findWall(database.url)).toMatchObject({
    stands: false,
    reason: expect.stringContaining('no role'),
  });
  await onServer('GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA punctual TO PUBLIC', name);
  expect(await raiseWall(database.url)).toMatchObject({ stands: true });
  const { rows } = await onServer(
    `SELECT p.proname AS name FROM pg_proc p WHERE p.pronamespace = 'punctual'::regnamespace
       AND has_function_privilege('${readerRoleOf(role)}', p.oid, 'EXECUTE')`,
    name,
  );
  expect(rows.map(({ name }) => name).sort()).toEqual(['error_fingerprint', 'error_shape', 'readable']);
});

it('a role of that name that is above the policies, or can log in, gets nothing and is no wall', async () => {
  const { role, database } = await ownerWithDatabase();
  await migrate(database.url);
  for (const attributes of ['BYPASSRLS NOLOGIN', 'NOBYPASSRLS LOGIN']) {
    await onServer(`DROP ROLE IF EXISTS ${readerRoleOf(role)}`);
    await onServer(`CREATE ROLE ${readerRoleOf(role)} ${attributes}; GRANT ${readerRoleOf(role)} TO ${role}`);
    expect(await raiseWall(database.url)).toMatchObject({
      stands: false,
      remedy: expect.stringContaining('NOBYPASSRLS'),
    });
  }
  const { rows } = await withClient(database.url, (client) =>
    client.query(`SELECT has_table_privilege('${readerRoleOf(role)}', 'punctual.jobs', 'SELECT') AS reads`),
  );
  expect(rows).toEqual([{ reads: false }]);
});

it('policies that somebody has switched off are no wall, and doctor names the tables', async () => {
  const { database } = await ownerWithDatabase('CREATEROLE');
  await migrate(database.url);
  await raiseWall(database.url);
  for (const table of ['jobs', 'tasks']) {
    await withClient(database.url, (client) =>
      client.query(`ALTER TABLE punctual.${table} DISABLE ROW LEVEL SECURITY`),
    );
  }
  const remedy =
    'ALTER TABLE punctual.jobs ENABLE ROW LEVEL SECURITY; ALTER TABLE punctual.tasks ENABLE ROW LEVEL SECURITY;';
  expect(await raiseWall(database.url)).toMatchObject({ stands: false, remedy });
  await withClient(database.url, (client) => client.query(remedy));
  expect(await findWall(database.url)).toMatchObject({ stands: true });
});

it('a node whose user the policies bind refuses to start, instead of seeing no jobs', async () => {
  const { role, database } = await ownerWithDatabase();
  await migrate(database.url);
  const name = new URL(database.url).pathname.slice(1);
  const other = await ownerWithDatabase();
  onTestFinished(async () => void (await onServer(`DROP OWNED BY ${other.role}`, name)));
  const rights = [
    'ON SCHEMA punctual',
    'ON ALL TABLES IN SCHEMA punctual',
    'ON ALL SEQUENCES IN SCHEMA punctual',
  ];
  for (const right of rights) await onServer(`GRANT ALL ${right} TO ${other.role}`, name);
  const stranger = new URL(database.url);
  stranger.username = other.role;
  const { config } = resolveConfig({ databaseUrl: stranger.href, port: 0 }, {}, () => '');
  await expect(startNode({ config, log: SILENT_LOG })).rejects.toMatchObject({
    code: 'CONFIGURATION',
    message: expect.stringContaining(role),
  });
});
