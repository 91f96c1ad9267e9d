import { createHmac } from 'node:crypto';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import type { KeyScope, NewKeyView } from '../../../src/core/access.js';
import type { HttpTarget } from '../../../src/core/job.js';
import { makeMasterKey } from '../../../src/core/secret-box.js';
import {
  generationAt,
  signAttemptToken,
  signCallerToken,
  signNodeToken,
  tokenKey,
} from '../../../src/core/tokens.js';
import { DirectTransport } from '../../../src/node/direct-transport.js';
import { EmbeddedWorkerGateway } from '../../../src/node/embedded-gateway.js';
import { createTestDatabase, type TestDatabase } from '../../database.js';
import { MemoryLog } from '../../memory-log.js';
import { nodeForTest, TestNode, TestTenant } from '../../node-for-tests.js';
import { withClient } from '../../postgres-client.js';
import { ProtocolWorker } from '../../protocol-worker.js';
import { callWith, dump, formsOf, HeldCall, ORIGIN } from './call-for-tests.js';

/** Two nodes with the same master key; each test has a tenant of its own. */
let database: TestDatabase;
let node: TestNode;
let follower: TestNode;
const log = new MemoryLog();
const settings = { secretKey: makeMasterKey() };

beforeAll(async () => {
  database = await createTestDatabase();
  node = await TestNode.start({ database, settings, log });
  await node.node.context.shards[0].leader();
  follower = await TestNode.start({ database, settings, log });
});
afterAll(async () => {
  await follower.stop();
  await node.stop();
  await database.drop();
});

const VALUE = 'sk_live_424242424242';

/** A tenant with the secret `stripe`. */
async function tenantWithSecret(at: TestNode = node): Promise<TestTenant> {
  const user = at.newTenant();
  const body = { value: VALUE, origins: [ORIGIN] };
  await user.get('PUT', '/v1/secrets/stripe', { body });
  return user;
}

async function keyFor(tenant: string, ...scopes: KeyScope[]): Promise<string> {
  const body = { name: 'k', tenant, scopes };
  return (await node.get<NewKeyView>('POST', '/v1/keys', { body })).key;
}

const secret = () => node.node.context.secret;

/** A token with the claims of an attempt, signed as nodes sign those for another purpose. */
function signedFor(purpose: string, claims: object): string {
  const now = Date.now();
  const { header, key } = tokenKey(secret(), purpose as 'attempt', generationAt(now));
  const body = { aud: `punctual:${purpose}`, ...claims, exp: Math.ceil(now / 1_000) + 600 };
  const signed = `${header}.${Buffer.from(JSON.stringify(body)).toString('base64url')}`;
  return `${signed}.${createHmac('sha256', key).update(signed).digest('base64url')}`;
}

it('the worker that holds an attempt is given what its target refers to, through every node', async () => {
  const user = await tenantWithSecret();
  await user.get('PUT', '/v1/secrets/in.body', {
    body: { value: 'b', origins: ['http://x.example', ORIGIN] },
  });
  const target: HttpTarget = { ...callWith('stripe'), body: { deep: [{ $secret: 'in.body' }] } };
  const call = await HeldCall.claim(node, user, target);
  const answer = await call.ask(['stripe', 'in.body']);
  expect(answer).toMatchObject({ status: 200, body: { values: { stripe: VALUE, 'in.body': 'b' } } });
  expect(answer.body.signing).toEqual([expect.stringMatching(/^whsec_[A-Za-z0-9+/]{43}=$/)]);
  expect(answer.headers.get('cache-control')).toBe('no-store');
  const forwarded = await call.ask(['stripe'], { at: new TestTenant(follower, user.tenant) });
  expect(forwarded.body).toEqual({ values: { stripe: VALUE }, signing: answer.body.signing });
  const key = await keyFor(user.tenant, 'work');
  expect((await call.ask(['stripe'], { key, at: follower })).body.code).toBe('WORKER_NOT_FOUND');
  expect((await call.ask([])).body).toEqual({ values: {}, signing: answer.body.signing });
});

it("a tenant's own worker needs no more than the scope work", async () => {
  const user = await tenantWithSecret();
  const key = await keyFor(user.tenant, 'work');
  const body = {
    name: 'own',
    queues: ['default'],
    slots: 1,
    targets: ['handler', 'http'],
    tasks: ['work'],
    labels: {},
  };
  const { workerId } = await node.get<{ workerId: string }>('POST', '/v1/workers', { key, body });
  const { id } = await user.submit({ task: 'work' });
  const claim = { max: 1, wait: '10s' };
  const { jobs } = await node.get<{ jobs: { jobId: string; fence: number; token: string }[] }>(
    ...(['POST', `/v1/workers/${workerId}/claim`, { key, body: claim }] as const),
  );
  await giveTarget(id, callWith('stripe'));
  const { jobId, fence, token } = jobs[0]!;
  const ask = { jobId, fence, token, names: ['stripe'] };
  const path = `/v1/workers/${workerId}/secrets`;
  expect(await node.get('POST', path, { key, body: ask })).toMatchObject({ values: { stripe: VALUE } });
  for (const scope of ['read', 'submit', 'admin'] as const) {
    const other = await keyFor(user.tenant, scope);
    expect((await node.ask('POST', path, { key: other, body: ask })).status).toBe(403);
  }
  // The attempt's token alone opens nothing here, and neither does the key of another tenant.
  expect((await node.ask('POST', path, { key: token, body: ask })).status).toBe(403);
  const foreign = await keyFor('somebody-else', 'work', 'admin', 'read', 'submit');
  expect(await node.ask('POST', path, { key: foreign, body: ask })).toMatchObject({
    ...{ status: 404, body: { code: 'WORKER_NOT_FOUND' } },
  });
});

function giveTarget(id: string, target: HttpTarget): Promise<unknown> {
  return withClient(database.url, (client) =>
    client.query('UPDATE punctual.jobs SET target = $2 WHERE id = $1', [id, JSON.stringify(target)]),
  );
}

it('a token for another purpose, job, fence or tenant is refused, and so is none at all', async () => {
  const user = await tenantWithSecret();
  const call = await HeldCall.claim(node, user, callWith('stripe'));
  const { jobId, fence } = call.assignment;
  const own = { tenant: user.tenant, jobId, fence };
  const claims = { ten: user.tenant, job: jobId, fence };
  const [now, until] = [Date.now(), Date.now() + 600_000];
  const refused = {
    // What the receiver of a call is given.
    receiver: signedFor('receiver', claims),
    node: signNodeToken(secret(), 'node-1', now),
    caller: signCallerToken(secret(), 'node-1', { operator: true, name: 'operator' }, now),
    'another job': signAttemptToken(
      secret(),
      { ...own, jobId: '0198c0de-0000-7000-8000-00000000beef' },
      until,
      now,
    ),
    'another fence': signAttemptToken(secret(), { ...own, fence: fence + 1 }, until, now),
    'another tenant': signAttemptToken(secret(), { ...own, tenant: 'other' }, until, now),
    expired: signAttemptToken(secret(), own, now - 60_000, now),
    forged: `${call.assignment.token!.slice(0, -4)}AAAA`,
    nonsense: 'nonsense',
  };
  for (const [what, token] of Object.entries(refused)) {
    const { status, body } = await call.ask(['stripe'], { body: { token } });
    expect([what, status, body.code]).toEqual([what, 403, 'FORBIDDEN']);
    expect(JSON.stringify(body)).not.toContain(VALUE);
    // Not even what signs the calls.
    expect((await call.ask([], { body: { token } })).status).toBe(403);
  }
  for (const at of [node, follower]) {
    const none = await call.ask(['stripe'], {
      body: { token: undefined },
      at: new TestTenant(at, user.tenant),
    });
    expect(none).toMatchObject({ status: 422, body: { code: 'INVALID_REQUEST' } });
  }
  expect((await call.ask(['stripe'], { body: { token: signedFor('attempt', claims) } })).status).toBe(200);
});

it('only the worker that holds the attempt is answered, and only while it does', async () => {
  const user = await tenantWithSecret();
  const call = await HeldCall.claim(node, user, callWith('stripe'));
  const { jobId, fence, token } = call.assignment;
  const other = await ProtocolWorker.register(user);
  const stale = { status: 409, body: { code: 'STALE_FENCE' } };
  expect(await call.ask(['stripe'], { worker: other.id })).toMatchObject(stale);
  expect(await call.ask(['stripe'], { body: { fence: fence + 1 } })).toMatchObject(stale);
  const nobody = '0198c0de-0000-7000-8000-00000000beef';
  expect(await call.ask(['stripe'], { worker: nobody })).toMatchObject({ status: 404 });
  expect(await call.ask(['stripe'], { body: { jobId: nobody } })).toMatchObject(stale);
  expect((await call.ask(['stripe'])).status).toBe(200);

  await call.worker.handOn({ jobId, fence });
  expect(await call.ask(['stripe'])).toMatchObject(stale);
  await node.ask('POST', `/v1/jobs/${jobId}/complete`, { key: token!, body: { fence } });
  expect(await call.ask(['stripe'])).toMatchObject(stale);

  const second = await HeldCall.claim(node, user, callWith('stripe'), call.worker);
  await second.worker.succeed(second.assignment);
  expect(await second.ask(['stripe'])).toMatchObject(stale);
});

it('a name must stand in the target, exist, and be allowed to go to its origin', async () => {
  const user = await tenantWithSecret();
  await user.get('PUT', '/v1/secrets/unused', { body: { value: 'u', origins: [ORIGIN] } });
  await user.get('PUT', '/v1/secrets/elsewhere', { body: { value: 'e', origins: ['https://b.example'] } });
  const call = await HeldCall.claim(node, user, callWith('stripe', 'elsewhere', 'missing', '__proto__'));
  expect(await call.ask(['unused'])).toMatchObject({ status: 403, body: { code: 'FORBIDDEN' } });
  const missing = await call.ask(['stripe', 'missing']);
  expect(missing).toMatchObject({ status: 404, body: { code: 'SECRET_NOT_FOUND' } });
  expect(missing.body.detail).toContain('missing');
  const elsewhere = await call.ask(['elsewhere']);
  expect(elsewhere).toMatchObject({ status: 403, body: { code: 'SECRET_ORIGIN' } });
  expect(elsewhere.body.detail).toContain('elsewhere');
  expect(elsewhere.body.detail).toContain(ORIGIN);
  expect(JSON.stringify([missing, elsewhere])).not.toContain(VALUE);
  await user.get('PUT', '/v1/secrets/__proto__', { body: { value: 'p', origins: [ORIGIN] } });
  const odd = await call.ask(['__proto__']);
  expect(Object.entries(odd.body.values!)).toEqual([['__proto__', 'p']]);
  expect((await call.ask(Array.from({ length: 17 }, (_, i) => `n${i}`))).status).toBe(422);

  for (const url of [
    'http://api.example.com/',
    'https://api.example.com:8443/',
    'https://api.example.com./',
  ]) {
    await giveTarget(call.assignment.jobId, { ...callWith('stripe'), url });
    expect((await call.ask(['stripe'])).body.code).toBe('SECRET_ORIGIN');
  }
  await giveTarget(call.assignment.jobId, { ...callWith('stripe'), url: 'https://API.example.com:443/x' });
  expect((await call.ask(['stripe'])).body.values).toEqual({ stripe: VALUE });
  // A worker of handlers has no use for what signs calls.
  await giveTarget(call.assignment.jobId, { type: 'handler', name: 'work' } as never);
  expect(await call.ask([])).toMatchObject({ status: 403, body: { code: 'FORBIDDEN' } });
});

it('a new value or the end of a secret counts for the next call', async () => {
  const user = await tenantWithSecret();
  const call = await HeldCall.claim(node, user, callWith('stripe'));
  const values = async () => (await call.ask(['stripe'])).body.values;
  expect(await values()).toEqual({ stripe: VALUE });
  await user.get('PUT', '/v1/secrets/stripe', { body: { value: 'next', origins: [ORIGIN] } });
  expect(await values()).toEqual({ stripe: 'next' });
  await user.get('DELETE', '/v1/secrets/stripe');
  expect((await call.ask(['stripe'])).status).toBe(404);
  // A secret of the same name that another tenant has is another secret.
  const other = await tenantWithSecret();
  expect((await call.ask(['stripe'])).status).toBe(404);
  expect((await other.ask('GET', '/v1/secrets')).status).toBe(200);
});

it("an operator's shared worker gets what the tenant of each job has", async () => {
  const [one, two] = [await tenantWithSecret(), node.newTenant()];
  await two.get('PUT', '/v1/secrets/stripe', { body: { value: 'of two', origins: [ORIGIN] } });
  const shared = { targets: ['handler', 'http'] as const, shared: true, queues: ['shared'] };
  const worker = await ProtocolWorker.register(node, shared);
  const answers = [];
  for (const user of [one, two]) {
    const { id } = await user.submit({ task: 'work', queue: 'shared' });
    const { jobId, fence, token } = await worker.claimOne();
    expect(jobId).toBe(id);
    await giveTarget(id, callWith('stripe'));
    const body = { jobId, fence, token, names: ['stripe'] };
    const path = `/v1/workers/${worker.id}/secrets`;
    answers.push(await node.get<{ values: object; signing: string[] }>('POST', path, { body }));
    // Its session belongs to the operator: no key of the tenant speaks for it.
    const key = await keyFor(user.tenant, 'work');
    expect((await node.ask('POST', path, { key, body })).status).toBe(404);
  }
  expect(answers.map(({ values }) => values)).toEqual([{ stripe: VALUE }, { stripe: 'of two' }]);
  expect(answers[0]!.signing).not.toEqual(answers[1]!.signing);
});

it('a worker in the process of the leader needs no token; one beside a follower does, because it asks over the network', async () => {
  const user = await tenantWithSecret();
  const caller = { tenant: user.tenant, actor: 'embedded', operator: true };
  for (const [at, isLeader, queue] of [
    [node, true, 'at-the-leader'],
    [follower, false, 'at-a-follower'],
  ] as const) {
    const gateway = new EmbeddedWorkerGateway(at.node, caller, new DirectTransport(at.node, caller));
    const session = await gateway.register({
      ...{
        name: 'inside',
        queues: [queue],
        slots: 1,
        targets: ['handler', 'http'],
        tasks: ['work'],
        labels: {},
      },
    });
    const { id } = await user.submit({ task: 'work', queue });
    const { jobs } = await gateway.claim(session, { max: 1, wait: '10s' });
    const { jobId, fence, token } = jobs[0]!;
    expect(jobId).toBe(id);
    await giveTarget(id, callWith('stripe'));
    const asked = { jobId, fence, names: ['stripe'] };
    const withToken = await gateway.secrets(session, { ...asked, token: token! });
    expect(withToken.values).toEqual({ stripe: VALUE });
    const without = gateway.secrets(session, asked);
    if (isLeader) expect(await without).toEqual(withToken);
    else await expect(without).rejects.toMatchObject({ code: 'INVALID_REQUEST' });
    await gateway.leave(session, { settled: true });
  }
});

it('the database, the log and the audit never see a value: not set, not used, not deleted', async () => {
  const user = node.newTenant();
  const value = 'nowhere-to-be-seen-4242';
  const nowhere = async () => {
    const all = (await dump(node)) + JSON.stringify(log.lines);
    for (const form of formsOf(value)) expect(all).not.toContain(form);
    for (const form of signing.flatMap(formsOf)) expect(all).not.toContain(form);
  };
  let signing: readonly string[] = [];
  await user.get('PUT', '/v1/secrets/hidden', { body: { value, origins: [ORIGIN] } });
  await nowhere();
  const call = await HeldCall.claim(node, user, callWith('hidden'));
  const { body } = await call.ask(['hidden']);
  expect(body.values).toEqual({ hidden: value });
  signing = body.signing!.map((each) => each.slice('whsec_'.length));
  await nowhere();
  await call.worker.succeed(call.assignment);
  await user.get('DELETE', '/v1/secrets/hidden');
  await nowhere();
});

it('a worker goes on with its attempt under the next leader, and is given the same', async () => {
  const own = await createTestDatabase();
  onTestFinished(() => own.drop(), 30_000);
  const first = await TestNode.start({ database: own, settings });
  await first.node.context.shards[0].leader();
  const second = await nodeForTest({ database: own, settings });
  const user = await tenantWithSecret(first);
  const call = await HeldCall.claim(first, user, callWith('stripe'));
  const before = await call.ask(['stripe']);
  await first.stop();
  const at = new TestTenant(second, user.tenant);
  await expect.poll(async () => (await call.ask(['stripe'], { at })).body).toEqual(before.body);
});

it('without a master key, calls are not signed and secrets are refused', async () => {
  const bare = await nodeForTest();
  const user = bare.newTenant();
  const call = await HeldCall.claim(bare, user, callWith('stripe'));
  expect(await call.ask([])).toMatchObject({ status: 200, body: { values: {}, signing: [] } });
  expect(await call.ask(['stripe'])).toMatchObject({ status: 503, body: { code: 'SECRETS_UNAVAILABLE' } });
});

it('a node that lacks the key of what exists says so, instead of leaving signatures out', async () => {
  const own = await createTestDatabase();
  const first = await TestNode.start({ database: own, settings });
  const user = await tenantWithSecret(first);
  await user.get('POST', '/v1/signing-secrets');
  await first.stop();
  for (const secretKey of ['', makeMasterKey()]) {
    const other = await TestNode.start({ database: own, settings: { secretKey } });
    try {
      const call = await HeldCall.claim(other, new TestTenant(other, user.tenant), callWith('stripe'));
      for (const names of [[], ['stripe']]) {
        expect(await call.ask(names)).toMatchObject({ status: 503, body: { code: 'SECRETS_UNAVAILABLE' } });
      }
    } finally {
      await other.stop();
    }
  }
  await own.drop();
});
