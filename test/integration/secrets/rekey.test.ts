import { expect, it, onTestFinished } from 'vitest';
import type { AuditView } from '../../../src/core/audit.js';
import type { RekeyAnswer, SecretKeysView } from '../../../src/core/secret.js';
import { makeMasterKey } from '../../../src/core/secret-box.js';
import type { Page } from '../../../src/core/wire.js';
import { createTestDatabase, type TestDatabase } from '../../database.js';
import { TestNode, TestTenant } from '../../node-for-tests.js';
import { withClient } from '../../postgres-client.js';
import { callWith, HeldCall, ORIGIN } from './call-for-tests.js';

const [OLD, NEW] = [makeMasterKey(), makeMasterKey()];

async function databaseForTest(): Promise<TestDatabase> {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop(), 30_000);
  return database;
}

/** A node with these master keys; it ends with `stop`. */
const start = (database: TestDatabase, ...keys: readonly string[]) =>
  TestNode.start({ database, settings: { secretKey: keys.join(','), maxSecrets: 1_000 } });

const put = (user: TestTenant, name: string, value: string) =>
  user.get('PUT', `/v1/secrets/${name}`, { body: { value, origins: [ORIGIN] } });

/** Calls it until it says that nothing is left to do. */
async function rekey(node: TestNode): Promise<RekeyAnswer> {
  for (let rekeyed = 0; ; ) {
    const answer = await node.get<RekeyAnswer>('POST', '/v1/secrets/rekey');
    rekeyed += answer.rekeyed;
    if (answer.done) return { ...answer, rekeyed };
  }
}

it('the master key is changed while secrets are set and used, and the old one is not needed afterwards', async () => {
  const database = await databaseForTest();
  const tenants = Array.from({ length: 5 }, (_, i) => `tenant-${i}`);
  const first = await start(database, OLD);
  const values = new Map<string, string>();
  for (const tenant of tenants) {
    const user = new TestTenant(first, tenant);
    for (let i = 0; i < 60; i++) {
      values.set(`${tenant} s${i}`, `${tenant} ${i}`);
    }
    await Promise.all(
      Array.from({ length: 60 }, (_, i) => put(user, `s${i}`, values.get(`${tenant} s${i}`)!)),
    );
    await user.get('POST', '/v1/signing-secrets');
  }
  const [oldKey] = (await first.get<SecretKeysView>('GET', '/v1/secret-keys')).known;
  await first.stop();

  const both = await start(database, NEW, OLD);
  const before = await both.get<SecretKeysView>('GET', '/v1/secret-keys');
  expect(before.stored).toEqual([{ keyId: oldKey, isKnown: true, values: 305 }]);
  const calls = await Promise.all(
    tenants.map((tenant) => HeldCall.claim(both, new TestTenant(both, tenant), callWith('s1', 's2'))),
  );
  const signed = await Promise.all(calls.map(async (call) => (await call.ask([])).body.signing));
  let rekeying = true;
  const load = tenants.map(async (tenant, i) => {
    const user = new TestTenant(both, tenant);
    for (let round = 0; rekeying || round < 5; round++) {
      const value = `${tenant} round ${round}`;
      values.set(`${tenant} s1`, value);
      await put(user, 's1', value);
      const { status, body } = await calls[i]!.ask(['s1', 's2']);
      expect(status).toBe(200);
      expect(body.values).toEqual({ s1: value, s2: `${tenant} 2` });
      expect(body.signing).toEqual(signed[i]);
    }
  });
  const done = await Promise.all([rekey(both), rekey(both)]);
  rekeying = false;
  await Promise.all(load);
  const last = await rekey(both);
  expect(last).toMatchObject({ rekeyed: 0, remaining: 0, done: true });
  expect(last.detail).toContain(oldKey!);
  expect(last.stored).toEqual([{ keyId: last.current, isKnown: true, values: 305 }]);
  // Those that were set meanwhile were under the new key already.
  const sum = done[0]!.rekeyed + done[1]!.rekeyed;
  expect(sum).toBeGreaterThan(290);
  expect(sum).toBeLessThanOrEqual(305);
  const { data } = await both.get<Page<AuditView>>('GET', '/v1/audit?action=secret.rekey');
  const audited = data.map(({ after }) => (after as { values: number }).values);
  expect(audited.reduce((all, each) => all + each, 0)).toBe(sum);
  await both.stop();

  const after = await start(database, NEW);
  onTestFinished(() => after.stop(), 30_000);
  for (const tenant of tenants) {
    const user = new TestTenant(after, tenant);
    for (let from = 0; from < 60; from += 15) {
      const names = Array.from({ length: 15 }, (_, i) => `s${from + i}`);
      const call = await HeldCall.claim(after, user, callWith(...names));
      const { body } = await call.ask(names);
      expect(body.values).toEqual(
        Object.fromEntries(names.map((name) => [name, values.get(`${tenant} ${name}`)])),
      );
      expect(body.signing).toEqual(signed[tenants.indexOf(tenant)]);
      await call.worker.succeed(call.assignment);
    }
  }
});

it('what breaks off goes on where it was, and more than one portion is done', async () => {
  const database = await databaseForTest();
  const first = await start(database, OLD);
  const user = first.newTenant();
  for (let from = 0; from < 450; from += 50) {
    await Promise.all(Array.from({ length: 50 }, (_, i) => put(user, `s${from + i}`, `v${from + i}`)));
  }
  await first.stop();
  const both = await start(database, NEW, OLD);
  onTestFinished(() => both.stop(), 30_000);
  // One row is being changed by somebody else: it is passed over, and not waited for.
  await withClient(database.url, async (client) => {
    await client.query(`BEGIN; SELECT FROM punctual.secrets WHERE name = 's7' FOR UPDATE`);
    const part = await both.get<RekeyAnswer>('POST', '/v1/secrets/rekey');
    expect(part).toMatchObject({ rekeyed: 449, remaining: 1, done: false });
    await client.query('ROLLBACK');
  });
  expect(await rekey(both)).toMatchObject({ rekeyed: 1, remaining: 0, done: true });
});

it('a key that is missing, and what cannot be decrypted, are named', async () => {
  const database = await databaseForTest();
  const first = await start(database, OLD);
  const user = first.newTenant();
  await put(user, 'a', 'v');
  await put(user, 'b', 'v');
  const [oldKey] = (await first.get<SecretKeysView>('GET', '/v1/secret-keys')).known;
  await first.stop();

  const without = await start(database, NEW);
  await put(new TestTenant(without, user.tenant), 'c', 'v');
  const missing = await rekey(without);
  expect(missing).toMatchObject({ rekeyed: 0, remaining: 2, done: true });
  expect(missing.detail).toContain(oldKey!);
  expect(missing.stored.find(({ keyId }) => keyId === oldKey)).toMatchObject({ isKnown: false, values: 2 });
  await without.stop();

  const both = await start(database, NEW, OLD);
  onTestFinished(() => both.stop(), 30_000);
  // As if somebody had given the value of one secret to the other.
  await withClient(database.url, (client) =>
    client.query(
      `UPDATE punctual.secrets SET sealed = (SELECT sealed FROM punctual.secrets WHERE name = 'b') WHERE name = 'a'`,
    ),
  );
  const broken = await rekey(both);
  expect(broken).toMatchObject({ rekeyed: 1, remaining: 1, done: true });
  expect(broken.detail).toContain('1 value');
  const tenant = new TestTenant(both, user.tenant);
  const call = await HeldCall.claim(both, tenant, callWith('a', 'b', 'c'));
  expect(await call.ask(['a'])).toMatchObject({ status: 503, body: { code: 'SECRETS_UNAVAILABLE' } });
  expect((await call.ask(['b', 'c'])).body.values).toEqual({ b: 'v', c: 'v' });
  await put(tenant, 'a', 'again');
  expect(await rekey(both)).toMatchObject({ remaining: 0, done: true });
});

it('only operators change the master key, or are told about it', async () => {
  const database = await databaseForTest();
  const node = await start(database, OLD);
  onTestFinished(() => node.stop(), 30_000);
  const body = { name: 'k', tenant: 'acme', scopes: ['admin', 'read', 'submit', 'work'] };
  const { key } = await node.get<{ key: string }>('POST', '/v1/keys', { body });
  expect((await node.ask('POST', '/v1/secrets/rekey', { key })).status).toBe(403);
  expect((await node.ask('GET', '/v1/secret-keys', { key })).status).toBe(403);
});
