import { afterAll, beforeAll, expect, it } from 'vitest';
import type { KeyInput, NewKeyView } from '../../../src/core/access.js';
import type { AuditView } from '../../../src/core/audit.js';
import type { SecretView } from '../../../src/core/secret.js';
import { makeMasterKey } from '../../../src/core/secret-box.js';
import type { Page } from '../../../src/core/wire.js';
import { createTestDatabase, type TestDatabase } from '../../database.js';
import { nodeForTest, TestNode, TestTenant } from '../../node-for-tests.js';
import { dump, formsOf, ORIGIN } from './call-for-tests.js';

/** Two nodes with the same master key; each test has a tenant of its own. */
let database: TestDatabase;
let node: TestNode;
let follower: TestNode;
const settings = { secretKey: makeMasterKey() };

beforeAll(async () => {
  database = await createTestDatabase();
  node = await TestNode.start({ database, settings });
  await node.node.context.shards[0].leader();
  follower = await TestNode.start({ database, settings });
});
afterAll(async () => {
  await follower.stop();
  await node.stop();
  await database.drop();
});

const put = (
  user: TestTenant,
  name: string,
  value = 'sk_live_4242',
  origins: unknown = [ORIGIN],
  key?: string,
) =>
  user.ask<SecretView & { code?: string; detail?: string; errors?: { pointer: string }[] }>(
    'PUT',
    `/v1/secrets/${name}`,
    { body: { value, origins }, ...(key !== undefined && { key }) },
  );

const list = async (user: TestTenant, query = '') =>
  (await user.get<Page<SecretView>>('GET', `/v1/secrets${query}`)).data.map(({ name }) => name);

async function keyFor(tenant: TestTenant, rights: Partial<KeyInput>): Promise<string> {
  const body = { name: 'k', tenant: tenant.tenant, ...rights };
  return (await node.get<NewKeyView>('POST', '/v1/keys', { body })).key;
}

const entries = async (user: TestTenant, action: string) =>
  (await user.get<Page<AuditView>>('GET', `/v1/audit?action=${action}`)).data;

it('a secret is set, changed, listed and deleted, and its value is never shown', async () => {
  const user = node.newTenant();
  const made = await put(user, 'stripe', 'sk_live_4242', [
    'HTTPS://API.example.com:443/',
    'http://b.example:8080',
  ]);
  expect(made.status).toBe(201);
  expect(made.body).toEqual({
    name: 'stripe',
    origins: [ORIGIN, 'http://b.example:8080'],
    version: 1,
    createdAt: made.body.changedAt,
    createdBy: 'tester',
    changedAt: expect.any(String),
    changedBy: 'tester',
  });
  const changed = await put(user, 'stripe', 'sk_live_4343', [ORIGIN, `${ORIGIN}/`]);
  expect(changed).toMatchObject({ status: 200, body: { version: 2, origins: [ORIGIN] } });
  expect(changed.body.createdAt).toBe(made.body.createdAt);
  await put(user, 'another');
  const page = await user.get<Page<SecretView>>('GET', '/v1/secrets?limit=1');
  expect(page).toMatchObject({ data: [{ name: 'another' }], next: 'another' });
  expect(await list(user, '?after=another')).toEqual(['stripe']);
  expect(JSON.stringify(page)).not.toContain('sk_live');
  expect((await user.ask('GET', '/v1/secrets/stripe')).status).toBe(405);
  expect((await user.ask('DELETE', '/v1/secrets/stripe')).status).toBe(204);
  expect(await user.ask('DELETE', '/v1/secrets/stripe')).toMatchObject({
    ...{ status: 404, body: { code: 'SECRET_NOT_FOUND' } },
  });
  expect(await list(user)).toEqual(['another']);
});

it('every node does so', async () => {
  const user = new TestTenant(follower, 'at-the-follower');
  const other = new TestTenant(follower, 'beside-it');
  expect((await put(user, 'at-a-follower')).status).toBe(201);
  expect(await list(user)).toEqual(['at-a-follower']);
  expect(await list(other)).toEqual([]);
  expect((await user.ask('DELETE', '/v1/secrets/at-a-follower')).status).toBe(204);
});

it('a value has a bound, a secret needs origins, and they must be exact', async () => {
  const user = node.newTenant();
  expect((await put(user, 'a', 'x'.repeat(8_192))).status).toBe(201);
  // In bytes, not in characters; and with everything escaped that can be.
  expect((await put(user, 'a', 'ä'.repeat(4_096))).status).toBe(200);
  expect((await put(user, 'a', '\u0001'.repeat(8_192))).status).toBe(200);
  for (const wrong of ['', 'x'.repeat(8_193), 'ä'.repeat(4_097), 'half \ud800 a pair']) {
    const { status, body } = await put(user, 'a', wrong);
    expect([status, body.code, body.errors?.[0]?.pointer]).toEqual([422, 'INVALID_REQUEST', '/value']);
    if (wrong !== '') expect(JSON.stringify(body)).not.toContain(wrong.slice(0, 20));
  }
  // However wrong the request is, its answer does not quote it.
  for (const wrong of [
    '{"value":4242424242}',
    '{"value":["4242424242"]}',
    '{"value": 4242424242x}',
    '{"vaule":"4242424242"}',
  ]) {
    const { status, body } = await user.ask('PUT', '/v1/secrets/a', { body: wrong });
    expect([400, 422]).toContain(status);
    expect(JSON.stringify(body)).not.toContain('4242424242');
  }
  const many = Array.from({ length: 17 }, (_, i) => `https://a${i}.example`);
  for (const wrong of [
    undefined,
    [],
    '*',
    ['*'],
    ['https://*.example'],
    [`${ORIGIN}/path`],
    ['api.example.com'],
    many,
  ]) {
    expect((await put(user, 'a', 'v', wrong ?? null)).status).toBe(422);
  }
  expect((await put(user, 'a', 'v', many.slice(1))).status).toBe(200);
  expect((await put(user, 'a b')).status).toBe(422);
  expect(await list(user)).toEqual(['a']);
});

it('a tenant has as many secrets as the operator allows, also when they come at the same time', async () => {
  const small = await nodeForTest({ settings: { ...settings, maxSecrets: 3 } });
  const user = small.newTenant();
  const answers = await Promise.all(Array.from({ length: 8 }, (_, i) => put(user, `s${i}`)));
  expect(answers.filter(({ status }) => status === 201)).toHaveLength(3);
  const refused = answers.filter(({ status }) => status === 429);
  expect(refused).toHaveLength(5);
  expect(refused[0]!.body.code).toBe('QUOTA_EXCEEDED');
  const [name] = await list(user);
  expect((await put(user, name!)).status).toBe(200);
  expect((await put(small.newTenant(), 'of-another')).status).toBe(201);
});

it('writing needs admin, reading names needs read, and other tenants have nothing to do with it', async () => {
  const [user, other] = [node.newTenant(), node.newTenant()];
  await put(user, 'mine');
  const keys = {
    read: await keyFor(user, { scopes: ['read'] }),
    submit: await keyFor(user, { scopes: ['submit', 'work'] }),
    admin: await keyFor(user, { scopes: ['admin'] }),
    other: await keyFor(other, { scopes: ['admin', 'read'] }),
  };
  const asks = async (key: string) => [
    (await node.ask('GET', '/v1/secrets', { key })).status,
    (await node.ask('PUT', '/v1/secrets/mine', { key, body: { value: 'v', origins: [ORIGIN] } })).status,
    (await node.ask('DELETE', '/v1/secrets/nothing', { key })).status,
  ];
  expect(await asks(keys.read)).toEqual([200, 403, 403]);
  expect(await asks(keys.submit)).toEqual([403, 403, 403]);
  expect(await asks(keys.admin)).toEqual([200, 200, 404]);
  expect((await node.ask<Page<SecretView>>('GET', '/v1/secrets', { key: keys.other })).body.data).toEqual([]);
  expect((await node.ask('DELETE', '/v1/secrets/mine', { key: keys.other })).status).toBe(404);
  expect(await list(user)).toEqual(['mine']);
});

it('for a key that is restricted to queues, secrets of the tenant do not exist and cannot be made', async () => {
  const user = node.newTenant();
  await put(user, 'mine');
  const key = await keyFor(user, { scopes: ['admin', 'read'], queues: ['mail'] });
  const ask = (method: string, path: string, body?: unknown) => node.ask(method, path, { key, body });
  expect((await ask('GET', '/v1/secrets')).body).toEqual({ data: [], next: null });
  expect((await ask('DELETE', '/v1/secrets/mine')).status).toBe(404);
  expect((await ask('PUT', '/v1/secrets/mine', { value: 'v', origins: [ORIGIN] })).status).toBe(403);
  expect((await ask('POST', '/v1/signing-secrets')).status).toBe(403);
  expect((await ask('GET', '/v1/signing-secrets')).body).toEqual({ data: [], next: null });
  expect(await list(user)).toEqual(['mine']);
});

it('the audit says who changed what, and nothing of the value', async () => {
  const user = node.newTenant();
  const value = 'audited-4242';
  await put(user, 'stripe', value);
  await put(user, 'stripe', value, [ORIGIN, 'https://b.example']);
  await user.ask('DELETE', '/v1/secrets/stripe');
  const [made] = await entries(user, 'secret.create');
  expect(made).toMatchObject({
    ...{ kind: 'secret', subject: 'stripe', tenant: user.tenant, keyName: 'tester', before: null },
    after: { origins: [ORIGIN], version: 1 },
  });
  const [changed] = await entries(user, 'secret.change');
  expect(changed).toMatchObject({ before: { version: 1 }, after: { version: 2 } });
  const [deleted] = await entries(user, 'secret.delete');
  expect(deleted).toMatchObject({ before: { version: 2 }, after: null });
  expect(Object.keys(deleted!.before!)).toEqual(['origins', 'version']);
});

it('a repeated request with an Idempotency-Key leaves nothing of the value behind, and shows none again', async () => {
  const user = node.newTenant();
  const value = 'not-in-any-hash-4242';
  const headers = { 'idempotency-key': 'the same' };
  const body = { value, origins: [ORIGIN] };
  for (const version of [1, 2]) {
    const answer = await user.ask<SecretView>('PUT', '/v1/secrets/a', { body, headers });
    expect(answer.body.version).toBe(version);
  }
  const made = await user.ask<{ secret: string }>('POST', '/v1/signing-secrets', { headers });
  const again = await user.ask<{ secret: string }>('POST', '/v1/signing-secrets', { headers });
  expect(again.body.secret).not.toBe(made.body.secret);
  const all = await dump(node);
  for (const each of [value, made.body.secret, again.body.secret]) {
    for (const form of formsOf(each)) expect(all).not.toContain(form);
  }
  expect(
    await node.node.context.shards[0].pool.query('SELECT FROM punctual.idempotency WHERE tenant = $1', [
      user.tenant,
    ]),
  ).toMatchObject({ rowCount: 0 });
});

it('without a master key, nodes say what to set, and lists still work', async () => {
  const bare = await nodeForTest();
  const user = bare.newTenant();
  const refused = await put(user, 'a');
  expect([refused.status, refused.body.code]).toEqual([503, 'SECRETS_UNAVAILABLE']);
  expect(refused.body.detail).toContain('PUNCTUAL_SECRET_KEY');
  expect((await user.ask('POST', '/v1/signing-secrets')).body).toMatchObject({ code: 'SECRETS_UNAVAILABLE' });
  expect((await bare.ask('POST', '/v1/secrets/rekey')).body).toMatchObject({ code: 'SECRETS_UNAVAILABLE' });
  expect(await list(user)).toEqual([]);
  expect(await bare.get('GET', '/v1/secret-keys')).toEqual({ current: null, known: [], stored: [] });
});

it('a program sets, lists and deletes secrets', async () => {
  const punctual = node.newTenant().connect();
  const set = await punctual.secrets.set('stripe', { value: 'v', origins: [ORIGIN] });
  expect(set).toMatchObject({ name: 'stripe', version: 1 });
  const listed: SecretView[] = [];
  for await (const secret of punctual.secrets.list()) listed.push(secret);
  expect(listed).toEqual([set]);
  await punctual.secrets.delete('stripe');
  await expect(punctual.secrets.delete('stripe')).rejects.toMatchObject({ code: 'SECRET_NOT_FOUND' });
  const made = await punctual.signingSecrets.create({ keepOthersFor: '1h' });
  expect(made.secret).toMatch(/^whsec_/);
  const signing: string[] = [];
  for await (const { id } of punctual.signingSecrets.list()) signing.push(id);
  expect(signing).toEqual([made.id]);
  await punctual.signingSecrets.delete(made.id);
  const gone = punctual.signingSecrets.delete(made.id);
  await expect(gone).rejects.toMatchObject({ code: 'SIGNING_SECRET_NOT_FOUND' });
});
