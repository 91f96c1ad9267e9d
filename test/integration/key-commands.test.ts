import { afterAll, beforeAll, expect, it } from 'vitest';
import { runCli } from '../../src/cli/program.js';
import type { KeyView, NewKeyView } from '../../src/core/access.js';
import { verifyOperatorKey } from '../../src/store/operator-key.js';
import { cliUnderTest } from '../cli-under-test.js';
import { TestNode } from '../node-for-tests.js';

let node: TestNode;
beforeAll(async () => {
  node = await TestNode.start();
});
afterAll(() => node.stop());

async function punctual(args: readonly string[], environment: Record<string, string> = {}) {
  const own = { PUNCTUAL_URL: node.url, PUNCTUAL_API_KEY: node.apiKey, ...environment };
  const shell = cliUnderTest({ environment: own });
  const code = await runCli(args, shell.cli);
  return { code, stdout: shell.stdout(), stderr: shell.stderr() };
}

const json = async <T>(args: readonly string[]): Promise<T> => {
  const { code, stdout, stderr } = await punctual([...args, '--json']);
  if (code !== 0) throw new Error(stderr);
  return JSON.parse(stdout);
};

it('a key is made, shown, rotated and revoked by commands', async () => {
  const made = await json<NewKeyView>([
    ...['key', 'create', '--tenant', 'acme', '--name', 'shop', '--scopes', 'submit,read'],
    ...['--queues', 'mail,post', '--expires', '2099-01-01T00:00:00Z'],
  ]);
  expect(made).toMatchObject({
    tenant: 'acme',
    name: 'shop',
    scopes: ['submit', 'read'],
    queues: ['mail', 'post'],
  });
  const list = await punctual(['key', 'list', '--tenant', 'acme']);
  expect(list.stdout).toContain(made.id);
  expect(list.stdout).toContain('submit,read');
  expect(list.stdout).not.toContain(made.key);
  const shown = await punctual(['key', 'get', made.id]);
  expect(shown.stdout).toMatch(/limited to +queues mail,post/);
  const next = await punctual(['key', 'rotate', made.id, '--old-expires-in', '1h']);
  expect(next.stdout).toMatch(/^pk_tn_[\w-]{51}\n$/);
  const old = await json<KeyView>(['key', 'get', made.id]);
  expect(Date.parse(old.expiresAt!) - Date.now()).toBeLessThanOrEqual(3_600_000);
  expect(await punctual(['key', 'revoke', made.id])).toMatchObject({
    code: 0,
    stdout: `${made.id}  revoked\n`,
  });
  expect((await punctual(['key', 'get', made.id])).code).toBe(5);
});

it('the beginning of the id of a key is enough', async () => {
  const make = (name: string) =>
    json<NewKeyView>(['key', 'create', '--tenant', 'short', '--name', name, '--scopes', 'read']);
  let [first, second] = [await make('one'), await make('two')];
  // The first 8 digits are a time, which passes from one value to the next once in a minute.
  while (first.id.slice(0, 8) !== second.id.slice(0, 8)) [first, second] = [second, await make('three')];
  const beginning = first.id.slice(0, -1);
  expect(await json<KeyView>(['key', 'get', beginning, '--tenant', 'short'])).toMatchObject({
    id: first.id,
  });
  expect(await punctual(['key', 'get', first.id.slice(0, 8), '--tenant', 'short'])).toMatchObject({
    code: 6,
    stderr: expect.stringContaining(second.id),
  });
  expect((await punctual(['key', 'revoke', '00000000', '--tenant', 'short'])).stderr).toContain(
    'KEY_NOT_FOUND',
  );
  expect(await punctual(['key', 'revoke', beginning, '--tenant', 'short'])).toMatchObject({
    stdout: `${first.id}  revoked\n`,
  });
});

it('an operator key is made by a node, or in the database without any key', async () => {
  const byNode = await json<NewKeyView>(['key', 'create', '--operator', '--name', 'ops']);
  expect(byNode).toMatchObject({ operator: true, createdBy: 'tester' });
  const inDatabase = await punctual(['key', 'create', '--operator'], {
    ...{ PUNCTUAL_URL: '', PUNCTUAL_API_KEY: '', PUNCTUAL_DATABASE_URL: node.database.url },
  });
  expect(inDatabase.stdout).toMatch(/^pk_op_[\w-]{51}\n$/);
  expect((await node.ask('GET', '/v1/tenants', { key: inDatabase.stdout.trim() })).status).toBe(200);
});

it('an operator key that may only read is made by a node, or in the database', async () => {
  const byNode = await json<NewKeyView>([
    'key',
    'create',
    '--operator',
    '--scopes',
    'read',
    '--name',
    'prom',
  ]);
  expect(byNode).toMatchObject({ operator: true, scopes: ['read'] });
  expect((await punctual(['key', 'get', byNode.id])).stdout).toMatch(/^scopes +operator, read only$/m);
  const inDatabase = await punctual(['key', 'create', '--operator', '--scopes', 'read', '--json'], {
    ...{ PUNCTUAL_URL: '', PUNCTUAL_API_KEY: '', PUNCTUAL_DATABASE_URL: node.database.url },
  });
  const { id, key } = JSON.parse(inDatabase.stdout);
  expect(await json<KeyView>(['key', 'get', id])).toMatchObject({ operator: true, scopes: ['read'] });
  expect((await node.ask('GET', '/v1/tenants', { key })).status).toBe(200);
  expect((await node.ask('POST', '/v1/cluster/pause', { key })).status).toBe(403);
  expect(await verifyOperatorKey(node.database.url, key)).toBe(false);
});

it('what a key cannot have in the database is refused with the reason why it is made there', async () => {
  const environment = { PUNCTUAL_URL: '', PUNCTUAL_DATABASE_URL: node.database.url };
  const { code, stderr } = await punctual(['key', 'create', '--operator', '--queues', 'mail'], environment);
  expect([code, stderr]).toEqual([2, expect.stringContaining('because PUNCTUAL_DATABASE_URL is set')]);
});

it.each([
  [['key', 'create', '--name', 'x'], 'Say what the key may do'],
  [['key', 'create', '--scopes', 'read'], 'Name the key'],
  [['key', 'create', '--name', 'x', '--scopes', 'fly'], 'read, submit, work, admin'],
  [
    ['key', 'create', '--scopes', 'read', '--name', 'x', '--database-url', 'postgres://h/d'],
    'add --operator',
  ],
  [
    ['key', 'create', '--operator', '--scopes', 'admin', '--database-url', 'postgres://h/d'],
    '--scopes: an op',
  ],
  [['key', 'create', '--operator', '--scopes', 'admin'], '--scopes: an op'],
  [
    ['key', 'create', '--operator', '--expires', '2099-01-01T00:00:00Z', '--database-url', 'postgres://h/d'],
    'because --database-url is given',
  ],
])('%j is refused', async (args, detail) => {
  const { code, stderr } = await punctual(args);
  expect([code, stderr]).toEqual([2, expect.stringContaining(detail)]);
});
