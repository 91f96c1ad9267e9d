import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { KeyScope, NewKeyView } from '../../../src/core/access.js';
import type { ArtifactView } from '../../../src/core/artifact.js';
import type { ArtifactAnswer, Assignment, Page } from '../../../src/core/wire.js';
import { createTestDatabase, type TestDatabase } from '../../database.js';
import { TestNode, TestTenant } from '../../node-for-tests.js';
import { handMadeElf } from '../../programs/hand-made-elf.js';
import { ProtocolWorker } from '../../protocol-worker.js';
import { push, type Refusal, sha256 } from './artifact-for-tests.js';

/** Two nodes with one store; each test has a tenant of its own. */
let database: TestDatabase;
let node: TestNode;
let follower: TestNode;

beforeAll(async () => {
  database = await createTestDatabase();
  const settings = { maxOutputBytes: 5_000 };
  node = await TestNode.start({ database, settings });
  await node.node.context.shards[0].leader();
  follower = await TestNode.start({ database, settings });
});
afterAll(async () => {
  await follower.stop();
  await node.stop();
  await database.drop();
});

const newElf = () => Buffer.concat([handMadeElf('x64', 0), randomBytes(16)]);

async function keyFor(tenant: string, ...scopes: KeyScope[]): Promise<string> {
  const body = { name: 'k', tenant, scopes };
  return (await node.get<NewKeyView>('POST', '/v1/keys', { body })).key;
}

interface Held {
  readonly user: TestTenant;
  readonly worker: ProtocolWorker;
  readonly assignment: Assignment;
  readonly artifact: ArtifactView;
  readonly elf: Buffer;
}

/** An attempt of a program that a worker by hand holds. */
async function held(): Promise<Held> {
  const user = node.newTenant();
  const elf = newElf();
  const artifact = await push(user, elf, { name: 'packer', version: '1.0' });
  const worker = await ProtocolWorker.register(user, { targets: ['exec'] });
  await user.submit({ target: { type: 'exec', artifact: 'packer@1.0' } });
  return { user, worker, assignment: await worker.claimOne(), artifact, elf };
}

const resolve = (
  { user, worker, assignment: { jobId, fence, token } }: Held,
  { at = user, body = {}, key }: { at?: TestTenant | TestNode; body?: object; key?: string } = {},
) =>
  at.ask<ArtifactAnswer & Refusal>('POST', `/v1/workers/${worker.id}/artifact`, {
    body: { jobId, fence, token, ...body },
    ...(key !== undefined && { key }),
  });

it('the worker that holds an attempt is told what it runs and where the bytes are, through every node', async () => {
  const mine = await held();
  const { status, body } = await resolve(mine);
  expect(status).toBe(200);
  expect(body).toEqual({
    ...{ id: mine.artifact.id, sha256: sha256(mine.elf), size: mine.elf.length, kind: 'elf', machine: 'x64' },
    ...{ url: expect.stringContaining(`/v1/artifacts/${mine.artifact.id}/download?token=`), headers: {} },
    expiresAt: expect.any(String),
  });
  const bytes = Buffer.from(await (await fetch(body.url)).arrayBuffer());
  expect(bytes.equals(mine.elf)).toBe(true);
  const elsewhere = body.url.replace(node.url, follower.url);
  const part = await fetch(elsewhere, { headers: { range: 'bytes=1-3' } });
  expect(part.status).toBe(206);
  expect(await part.text()).toBe('ELF');
  const forwarded = await resolve(mine, { at: new TestTenant(follower, mine.user.tenant) });
  expect(forwarded.body).toMatchObject({ id: mine.artifact.id });
  expect((await fetch(forwarded.body.url)).status).toBe(200);
});

it('nobody else is told, and an address that was not signed leads nowhere', async () => {
  const mine = await held();
  const other = await held();
  const { jobId, fence, token } = other.assignment;
  expect((await resolve(mine, { body: { token } })).status).toBe(403);
  expect((await resolve(mine, { body: { jobId, fence, token } })).body.code).toBe('STALE_FENCE');
  expect((await resolve(mine, { body: { fence: 9 } })).body.code).toBe('STALE_FENCE');
  expect((await resolve(mine, { at: other.user })).body.code).toBe('WORKER_NOT_FOUND');
  for (const scope of ['read', 'submit', 'admin'] as const) {
    const key = await keyFor(mine.user.tenant, scope);
    expect((await resolve(mine, { at: node, key })).status).toBe(403);
  }
  const { url } = (await resolve(mine)).body;
  expect((await fetch(url.replace(mine.artifact.id, other.artifact.id))).status).toBe(403);
  expect((await fetch(`${url}x`)).status).toBe(403);
  await mine.worker.succeed(mine.assignment);
  expect((await resolve(mine)).body.code).toBe('STALE_FENCE');
});

it('what an attempt leaves is listed at its job, and read as an artifact', async () => {
  const mine = await held();
  expect(await put(mine, 'result.txt', 'hello')).toMatchObject({
    status: 201,
    body: {
      output: 'result.txt',
      job: mine.assignment.jobId,
      size: 5,
      kind: 'file',
      state: 'ready',
      name: null,
    },
  });
  expect((await put(mine, 'a/b.bin', Buffer.alloc(0), follower)).status).toBe(201);
  const outputs = async () =>
    (await mine.user.get<Page<ArtifactView>>('GET', `/v1/jobs/${mine.assignment.jobId}/outputs`)).data;
  expect((await outputs()).map(({ output }) => output)).toEqual(['a/b.bin', 'result.txt']);
  // The same name again takes the place of what was left before.
  expect((await put(mine, 'result.txt', 'bye')).status).toBe(201);
  const [newest, ...rest] = await outputs();
  expect(newest).toMatchObject({ output: 'result.txt', size: 3 });
  expect(rest).toHaveLength(1);
  const odd = await mine.user.ask('GET', `/v1/jobs/${mine.assignment.jobId}/outputs?after=====`);
  expect([odd.status, odd.body]).toMatchObject([422, { errors: [{ pointer: '/after' }] }]);
  await mine.worker.succeed(mine.assignment);
  expect(await outputs()).toHaveLength(2);
  const read = await mine.user.ask('GET', `/v1/artifacts/${newest!.id}/content`);
  expect(read.body).toBe('bye');
  expect(await put(mine, 'late', 'x')).toMatchObject({ status: 409, body: { code: 'STALE_FENCE' } });
});

it('what an attempt leaves is for its tenant, and for an operator who names the tenant in the address', async () => {
  const mine = await held();
  const { body: left } = await put(mine, 'page.html', '<b>hello</b>');
  await mine.worker.succeed(mine.assignment);
  const path = `/v1/artifacts/${left.id}/content`;
  const read = await fetch(`${node.url}${path}?tenant=${mine.user.tenant}`, {
    headers: { authorization: `Bearer ${node.apiKey}` },
  });
  expect(await read.text()).toBe('<b>hello</b>');
  expect(Object.fromEntries(read.headers)).toMatchObject({
    'content-type': 'application/octet-stream',
    'content-disposition': "attachment; filename*=UTF-8''page.html",
    'x-content-type-options': 'nosniff',
  });
  expect((await node.ask('GET', path)).status).toBe(404);
  const { tenant } = node.newTenant();
  const key = await keyFor(tenant, 'read');
  expect((await node.ask('GET', `${path}?tenant=${mine.user.tenant}`, { key })).status).toBe(403);
  expect((await node.ask('GET', `${path}?tenant=${tenant}`, { key })).status).toBe(404);
});

it('an attempt leaves neither too much nor in the name of another job', async () => {
  const mine = await held();
  const other = await held();
  expect(await put(mine, 'large', Buffer.alloc(5_001))).toMatchObject({
    ...{ status: 413, body: { code: 'OUTPUT_TOO_LARGE' } },
  });
  expect((await put(mine, 'one', Buffer.alloc(3_000))).status).toBe(201);
  expect((await put(mine, 'two', Buffer.alloc(3_000))).body.code).toBe('OUTPUT_TOO_LARGE');
  expect((await put(mine, 'one', Buffer.alloc(4_000))).status).toBe(201);
  for (const name of ['a/../b', '/a', 'a//b', 'x'.repeat(256)]) {
    expect((await put(mine, name, 'x')).body.code, name).toBe('INVALID_REQUEST');
  }
  const stranger = { ...mine, assignment: { ...mine.assignment, token: other.assignment.token! } };
  expect((await put(stranger, 'x', 'x')).status).toBe(403);
  const answer = await mine.user.ask('PUT', `/v1/jobs/${mine.assignment.jobId}/outputs/x`, { body: '{"a"' });
  expect(answer).toMatchObject({ status: 422, body: { errors: [{ pointer: '/fence' }] } });
});

/** Leaves a file with the token of the attempt. */
async function put(
  { assignment: { jobId, token } }: Pick<Held, 'assignment'>,
  name: string,
  bytes: string | Buffer,
  at: TestNode = node,
): Promise<{ readonly status: number; readonly body: ArtifactView & Refusal }> {
  const answer = await fetch(`${at.url}/v1/jobs/${jobId}/outputs/${encodeURIComponent(name)}`, {
    ...{ method: 'PUT', headers: { authorization: `Bearer ${token}` }, body: bytes },
  });
  return { status: answer.status, body: (await answer.json()) as ArtifactView & Refusal };
}
