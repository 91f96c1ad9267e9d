import { afterAll, beforeAll, expect, it } from 'vitest';
import type { AuditView } from '../../../src/core/audit.js';
import type { NewSigningSecret, SigningSecretView } from '../../../src/core/secret.js';
import { makeMasterKey } from '../../../src/core/secret-box.js';
import type { Page } from '../../../src/core/wire.js';
import { TestNode, type TestTenant } from '../../node-for-tests.js';
import { TestClock } from '../../test-clock.js';
import { callWith, HeldCall } from './call-for-tests.js';

/** One node for all; each test has a tenant of its own. */
let node: TestNode;

beforeAll(async () => {
  node = await TestNode.start({ settings: { secretKey: makeMasterKey() } });
});
afterAll(() => node.stop());

const create = (user: TestTenant, keepOthersFor?: string) =>
  user.ask<NewSigningSecret & { code?: string }>('POST', '/v1/signing-secrets', {
    ...(keepOthersFor !== undefined && { body: { keepOthersFor } }),
  });

const list = async (user: TestTenant) =>
  (await user.get<Page<SigningSecretView>>('GET', '/v1/signing-secrets')).data;

const signing = async (call: HeldCall) => (await call.ask([])).body.signing!;

it('the next one is shown once, and signs beside the others until they end', async () => {
  const user = node.newTenant();
  const first = await create(user);
  expect(first.status).toBe(201);
  expect(first.body.secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
  expect(Buffer.from(first.body.secret.slice(6), 'base64')).toHaveLength(32);
  expect(first.body.expiresAt).toBeNull();
  const second = await create(user, '1h');
  const call = await HeldCall.claim(node, user, callWith());
  expect(await signing(call)).toEqual([second.body.secret, first.body.secret]);
  const listed = await list(user);
  expect(listed.map(({ id }) => id)).toEqual([second.body.id, first.body.id]);
  expect(listed[0]!.expiresAt).toBeNull();
  const end = Date.parse(listed[1]!.expiresAt!) - Date.parse(second.body.createdAt);
  expect(end).toBe(3_600_000);
  expect(JSON.stringify(listed)).not.toContain('whsec_');
  // One that ends earlier keeps its end.
  await create(user, '2h');
  expect((await list(user))[2]!.expiresAt).toBe(listed[1]!.expiresAt);

  expect((await user.ask('DELETE', `/v1/signing-secrets/${first.body.id}`)).status).toBe(204);
  expect(await signing(call)).not.toContain(first.body.secret);
  expect((await user.ask('DELETE', `/v1/signing-secrets/${first.body.id}`)).status).toBe(404);
});

it('an end is of its moment', async () => {
  const clock = new TestClock();
  const own = await TestNode.start({ settings: { secretKey: makeMasterKey() }, clock });
  try {
    const user = own.newTenant();
    const old = await create(user);
    const next = await create(user, '1m');
    expect(await list(user)).toHaveLength(2);
    clock.advance(61_000);
    expect((await list(user)).map(({ id }) => id)).toEqual([next.body.id]);
    expect((await user.ask('DELETE', `/v1/signing-secrets/${old.body.id}`)).status).toBe(404);
  } finally {
    await own.stop();
  }
});

it('at most five are valid at a time, also when they are made at the same time', async () => {
  const user = node.newTenant();
  const made = await Promise.all(Array.from({ length: 9 }, () => create(user)));
  expect(made.filter(({ status }) => status === 201)).toHaveLength(5);
  expect(made.find(({ status }) => status !== 201)).toMatchObject({
    status: 429,
    body: { code: 'QUOTA_EXCEEDED' },
  });
  const call = await HeldCall.claim(node, user, callWith());
  expect(await signing(call)).toHaveLength(5);
  expect((await user.ask('DELETE', `/v1/signing-secrets/${(await list(user))[0]!.id}`)).status).toBe(204);
  expect((await create(user)).status).toBe(201);
});

it('the others stay longer than workers keep them: a minute at least', async () => {
  const user = node.newTenant();
  for (const wrong of ['59s', '0s', '91d', 'soon']) expect((await create(user, wrong)).status).toBe(422);
  expect(await list(user)).toEqual([]);
  expect((await create(user, '1m')).status).toBe(201);
});

it('a tenant gets its first one when a worker first asks: one, however many ask', async () => {
  const user = node.newTenant();
  const call = await HeldCall.claim(node, user, callWith());
  expect(await list(user)).toEqual([]);
  const answers = await Promise.all(Array.from({ length: 16 }, () => signing(call)));
  expect(new Set(answers.map(String)).size).toBe(1);
  expect(answers[0]).toHaveLength(1);
  expect(await list(user)).toHaveLength(1);
  const audited = await user.get<Page<AuditView>>('GET', '/v1/audit?action=signing-secret.create');
  expect(audited.data).toMatchObject([
    { kind: 'signing-secret', tenant: user.tenant, after: { first: true } },
  ]);
});

it('making and ending one is in the audit, without its value', async () => {
  const user = node.newTenant();
  const { body } = await create(user);
  await user.ask('DELETE', `/v1/signing-secrets/${body.id}`);
  const { data } = await user.get<Page<AuditView>>('GET', '/v1/audit?kind=signing-secret');
  expect(data.map(({ action, subject }) => [action, subject])).toEqual([
    ['signing-secret.delete', body.id],
    ['signing-secret.create', body.id],
  ]);
  expect(JSON.stringify(data)).not.toContain(body.secret.slice(6));
});
