import { randomBytes } from 'node:crypto';
import type pg from 'pg';
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { runCli } from '../../src/cli/program.js';
import { task } from '../../src/core/task.js';
import type { ListedGrant, SubmitGrant } from '../../src/store/submit-grants.js';
import { cliUnderTest } from '../cli-under-test.js';
import { TestNode } from '../node-for-tests.js';
import { withClient } from '../postgres-client.js';

/** One node; roles belong to the server that all tests share, so each has a name of its own. */
let node: TestNode;
const roles: string[] = [];

beforeAll(async () => {
  node = await TestNode.start();
});
afterAll(async () => {
  await asAdministrator(async (client) => {
    for (const role of roles.reverse()) await client.query(`DROP OWNED BY ${role}; DROP ROLE ${role}`);
  });
  await node.stop();
});

const double = task('double', (n: number) => n * 2);

function asAdministrator<T>(work: (client: pg.Client) => Promise<T>): Promise<T> {
  const url = new URL(inject('serverUrl'));
  url.pathname = new URL(node.database.url).pathname;
  return withClient(url.href, work);
}

async function newRole(attributes = "LOGIN PASSWORD 'secret'"): Promise<string> {
  const role = `app_${randomBytes(6).toString('hex')}`;
  await asAdministrator((client) => client.query(`CREATE ROLE ${role} ${attributes}`));
  roles.push(role);
  return role;
}

function as<T>(role: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const url = new URL(node.database.url);
  url.username = role;
  url.password = 'secret';
  return withClient(url.href, work);
}

async function db(...args: string[]) {
  const run = cliUnderTest();
  const exitCode = await runCli(['db', ...args, '--database-url', node.database.url, '--json'], run.cli);
  return { exitCode, stdout: run.stdout(), stderr: run.stderr() };
}

const SUBMIT = 'SELECT punctual.submit_job($1, $2) AS id';
const submitAs = (role: string, tenant: string, json = '{"task": "double", "hold": true}') =>
  as(role, async (client) => (await client.query(SUBMIT, [tenant, json])).rows[0].id as string);

it('a role needs nothing but the grant, submits in its own transaction, and can read nothing', async () => {
  const [role, tenant] = [await newRole(), 'acme'];
  await node.work([double], { tenant });
  const punctual = node.connect(tenant);
  await as(role, async (client) => {
    await client.query('BEGIN');
    await expect(punctual.submit(double, 1, { tx: client })).rejects.toMatchObject({
      code: 'FORBIDDEN',
      message: expect.stringContaining('punctual db grant submit'),
      hint: expect.stringContaining('punctual db grant submit'),
    });
    await client.query('ROLLBACK');
  });
  const granted = await db('grant', 'submit', role, '--tenant', tenant);
  expect(JSON.parse(granted.stdout)).toMatchObject({ role, tenant, creator: `transaction:${role}` });
  await as(role, async (client) => {
    await client.query('BEGIN');
    const job = await punctual.submit(double, 21, { tx: client });
    await client.query('COMMIT');
    expect(await job.result()).toBe(42);
    expect(await job.get()).toMatchObject({ tenant, createdBy: `transaction:${role}` });
    const { rows } = await client.query(
      `SELECT count(*)::int AS tables, coalesce(bool_or(has_table_privilege(c.oid, 'SELECT, INSERT, UPDATE, DELETE')), false) AS any
       FROM pg_class c WHERE c.relnamespace = 'punctual'::regnamespace AND c.relkind IN ('r', 'p', 'v')`,
    );
    expect(rows[0].tables).toBeGreaterThan(10);
    expect(rows[0].any).toBe(false);
    // Objects of the caller's own cannot take the place of those that the function uses.
    await client.query(
      `CREATE TEMP TABLE later (LIKE pg_class); CREATE TEMP TABLE submit_grants (role name)`,
    );
    // Nor can its settings change how the text of the function is read.
    await client.query('SET standard_conforming_strings = off; SET backslash_quote = off');
    const odd = '{"task": "double", "delay": "1.5s", "key": "a\\u0062\\\\u0063", "hold": true}';
    await client.query(SUBMIT, [tenant, odd]);
    const { rows: found } = await client.query('SELECT punctual.cancel_job_of_key($1, $2) AS id', [
      ...[tenant, 'ab\\u0063'],
    ]);
    expect(found[0].id).toEqual(expect.any(String));
  });
});

it('a role that may submit jobs of a tenant may cancel them in its transactions, by id and by key, and no others', async () => {
  const role = await newRole();
  const tenant = 'cancelling';
  await db('grant', 'submit', role, '--tenant', tenant);
  const punctual = node.connect(tenant);
  const jobs = [
    await punctual.submit(double, 1, { hold: true }),
    await punctual.submit(double, 2, { hold: true, key: 'by-key' }),
  ];
  const other = await node.connect('not-cancelling').submit(double, 3, { hold: true });
  await as(role, async (client) => {
    const cancelOther = client.query('SELECT punctual.cancel_job($1, $2)', ['not-cancelling', other.id]);
    await expect(cancelOther).rejects.toMatchObject({ code: '42501', detail: 'FORBIDDEN' });
    await client.query('BEGIN');
    await punctual.cancel(jobs[0]!.id, { tx: client });
    await punctual.cancel({ key: 'by-key' }, { tx: client });
    // A job of another tenant is not found under the id of this one.
    await punctual.cancel(other.id, { tx: client });
    await client.query('COMMIT');
  });
  for (const { id } of jobs) expect((await node.ended(id, tenant)).state).toBe('cancelled');
  expect((await other.get()).state).toBe('pending');
});

it('a grant is for its tenant only, unless it is for all, and can be given another name', async () => {
  const role = await newRole();
  await db('grant', 'submit', role);
  await submitAs(role, 'default');
  await expect(submitAs(role, 'other')).rejects.toMatchObject({
    code: '42501',
    detail: 'FORBIDDEN',
    message: `punctual: the role ${role} may not submit or cancel jobs of the tenant other`,
  });
  await db('grant', 'submit', role, '--all-tenants', '--name', 'shop');
  const id = await submitAs(role, 'other');
  await expect.poll(async () => (await node.job(id, 'other')).createdBy).toBe('shop');
});

it('the role of SET ROLE counts, and members have the grants of the roles whose rights they inherit', async () => {
  const [group, member, stranger] = [
    await newRole('NOLOGIN'),
    await newRole(),
    await newRole("LOGIN NOINHERIT PASSWORD 'secret'"),
  ];
  await db('grant', 'submit', group, '--tenant', 'group');
  await asAdministrator((client) => client.query(`GRANT ${group} TO ${member}, ${stranger}`));
  await submitAs(member, 'group');
  await expect(submitAs(stranger, 'group')).rejects.toMatchObject({ code: '42501' });
  await db('grant', 'submit', stranger, '--tenant', 'stranger');
  await as(stranger, async (client) => {
    const submit = (tenant: string) => client.query(SUBMIT, [tenant, '{"task": "double", "hold": true}']);
    await submit('stranger');
    await expect(submit('group')).rejects.toMatchObject({ detail: 'FORBIDDEN' });
    await client.query(`SET ROLE ${group}`);
    await submit('group');
    await expect(submit('stranger')).rejects.toMatchObject({ detail: 'FORBIDDEN' });
  });
});

it('what was granted is listed, and revoked for one tenant or for all', async () => {
  const role = await newRole();
  const listed = async () =>
    (JSON.parse((await db('grants')).stdout) as { data: SubmitGrant[] }).data
      .filter((grant) => grant.role === role)
      .map((grant) => grant.tenant);
  for (const tenant of ['a', 'b']) await db('grant', 'submit', role, '--tenant', tenant);
  expect(await listed()).toEqual(['a', 'b']);
  await db('revoke', 'submit', role, '--tenant', 'a');
  await submitAs(role, 'b');
  await expect(submitAs(role, 'a')).rejects.toMatchObject({ code: '42501' });
  expect(JSON.parse((await db('revoke', 'submit', role)).stdout).revoked).toMatchObject([{ tenant: 'b' }]);
  await expect(submitAs(role, 'b')).rejects.toThrow('permission denied for schema punctual');
  expect(await listed()).toEqual([]);
  expect(JSON.parse((await db('revoke', 'submit', role)).stdout)).toEqual({ revoked: [] });
});

it('a grant that the database does not know is listed as such, with the command that mends it', async () => {
  const role = await newRole();
  const gone = `gone_${randomBytes(6).toString('hex')}`;
  await db('grant', 'submit', role, '--tenant', 'moved', '--name', 'shop');
  const listed = async () =>
    (JSON.parse((await db('grants')).stdout) as { data: ListedGrant[] }).data.filter(({ tenant }) =>
      ['moved', 'gone'].includes(tenant),
    );
  expect(await listed()).toMatchObject([{ role, creator: 'shop', missing: [] }]);
  // As after a restore into a server that did not have the roles.
  await asAdministrator(async (client) => {
    await client.query(`REVOKE ALL ON ALL FUNCTIONS IN SCHEMA punctual FROM ${role}`);
    await client.query(`REVOKE USAGE ON SCHEMA punctual FROM ${role}`);
    await client.query(`INSERT INTO punctual.submit_grants VALUES ($1, 'gone', $2, 0)`, [
      ...[gone, `transaction:${gone}`],
    ]);
  });
  const missing = [
    'USAGE on schema punctual',
    'EXECUTE on punctual.submit_job(text, json)',
    'EXECUTE on punctual.cancel_job(text, uuid)',
    'EXECUTE on punctual.cancel_job_of_key(text, text)',
  ];
  const lacking = [
    { role, missing },
    { role: gone, missing: ['the role'] },
  ];
  expect(await listed()).toMatchObject(role < gone ? lacking : lacking.reverse());
  const run = cliUnderTest();
  expect(await runCli(['db', 'grants', '--database-url', node.database.url], run.cli)).toBe(0);
  expect(run.stdout()).toMatch(new RegExp(`${role} +moved +shop +\\S+ +missing`));
  expect(run.stderr()).toContain(
    `has not given ${role} what it needs (${missing.join(', ')}): run \`punctual db grant submit ${role} --tenant moved --name "shop"\`.`,
  );
  expect(run.stderr()).toContain(
    `has no role ${gone}: create it, then run \`punctual db grant submit ${gone}`,
  );
  await db('grant', 'submit', role, '--tenant', 'moved', '--name', 'shop');
  await db('revoke', 'submit', gone);
  expect(await listed()).toMatchObject([{ role, creator: 'shop', missing: [] }]);
});

it('a role that does not exist, or one that may not grant, is told so', async () => {
  expect(await db('grant', 'submit', 'nobody_at_all')).toMatchObject({
    exitCode: 5,
    stderr: expect.stringContaining('ROLE_NOT_FOUND'),
  });
  const role = await newRole();
  const url = new URL(node.database.url);
  [url.username, url.password] = [role, 'secret'];
  const run = cliUnderTest();
  expect(await runCli(['db', 'grant', 'submit', role, '--database-url', url.href], run.cli)).toBe(4);
  expect(run.stderr()).toContain('Only the owner');
  expect(run.stderr()).not.toContain('key');
});

it('a grant takes from everybody what a restore without rights gave', async () => {
  const [role, other] = [await newRole(), await newRole()];
  // What pg_restore --no-acl leaves: functions as they are created, which everybody may execute.
  await asAdministrator((client) =>
    client.query('GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA punctual TO PUBLIC'),
  );
  expect((await db('grant', 'submit', role, '--tenant', 'restored')).exitCode).toBe(0);
  expect(await submitAs(role, 'restored')).toMatch(/^[0-9a-f-]{36}$/);
  const executable = (who: string) =>
    asAdministrator(async (client) => {
      const { rows } = await client.query(
        `SELECT p.proname AS name FROM pg_proc p
         WHERE p.pronamespace = 'punctual'::regnamespace AND has_function_privilege($1, p.oid, 'EXECUTE') ORDER BY 1`,
        [who],
      );
      return rows.map(({ name }) => name);
    });
  expect(await executable(role)).toEqual(['cancel_job', 'cancel_job_of_key', 'submit_job']);
  expect(await executable(other)).toEqual([]);
});

it('a role without rights is told so by db status', async () => {
  const url = new URL(node.database.url);
  Object.assign(url, { username: await newRole(), password: 'secret' });
  const run = cliUnderTest();
  expect(await runCli(['db', 'status', '--database-url', url.href], run.cli)).not.toBe(0);
  expect(run.stderr()).toMatch(/may not use Punctual's schema: permission denied/);
});
