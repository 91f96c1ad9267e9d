import { randomBytes } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ArtifactView } from '../../../src/core/artifact.js';
import type { AuditView } from '../../../src/core/audit.js';
import type { Page } from '../../../src/core/wire.js';
import { createTestDatabase, type TestDatabase } from '../../database.js';
import { nodeForTest, TestNode } from '../../node-for-tests.js';
import { handMadeElf } from '../../programs/hand-made-elf.js';
import { TestClock } from '../../test-clock.js';
import { announce, push, send, sha256 } from './artifact-for-tests.js';

/** Two nodes with one store; each test has a tenant of its own. */
let database: TestDatabase;
let node: TestNode;
let follower: TestNode;

beforeAll(async () => {
  database = await createTestDatabase();
  node = await TestNode.start({ database, settings: { uploadStall: 150 } });
  await node.node.context.shards[0].leader();
  follower = await TestNode.start({ database });
});
afterAll(async () => {
  await follower.stop();
  await node.stop();
  await database.drop();
});

/** Every file in the store of the nodes that holds, or may become, bytes of artifacts. */
async function filesOf({ node: { context } }: TestNode): Promise<string[]> {
  const entries = await readdir(context.artifacts.place, { recursive: true, withFileTypes: true }).catch(
    () => [],
  );
  return entries.filter((entry) => entry.isFile()).map(({ name }) => name);
}

/** Bytes that no other test has. */
const newFile = (bytes = 1_000) => randomBytes(bytes);
const newElf = () => Buffer.concat([handMadeElf('x64', 0), randomBytes(16)]);
const FILE = { runnable: false };

const there = (user: { get: TestNode['get'] }, id: string) =>
  user.get<ArtifactView>('GET', `/v1/artifacts/${id}`);

it('a program is announced, uploaded without a key, listed, read and removed', async () => {
  const user = node.newTenant();
  const elf = newElf();
  const announced = await announce(user, elf, { name: 'packer', version: '1.4.0' });
  expect(announced).toMatchObject({
    status: 201,
    body: {
      name: 'packer',
      version: '1.4.0',
      state: 'pending',
      kind: null,
      parts: null,
      mustComplete: false,
    },
  });
  expect(Date.parse(announced.body.expiresAt!)).toBeGreaterThan(Date.now());
  const sent = await send(announced.body.uploadUrl!, elf);
  expect(sent).toMatchObject({
    status: 200,
    body: {
      ...{ id: announced.body.id, name: 'packer', version: '1.4.0', sha256: sha256(elf), size: elf.length },
      ...{ state: 'ready', kind: 'elf', machine: 'x64', createdBy: 'tester', expiresAt: null, job: null },
    },
  });
  const page = await user.get<Page<ArtifactView>>('GET', '/v1/artifacts?name=packer');
  expect(page.data).toEqual([sent.body]);
  expect(await there(user, announced.body.id)).toEqual({ ...sent.body, usedBy: [] });
  const content = await fetch(`${node.url}/v1/artifacts/${announced.body.id}/content`, {
    headers: { authorization: `Bearer ${node.apiKey}`, 'punctual-tenant': user.tenant },
  });
  expect(content.headers.get('content-length')).toBe(String(elf.length));
  expect(content.headers.get('etag')).toBe(`"${sha256(elf)}"`);
  expect(Buffer.from(await content.arrayBuffer()).equals(elf)).toBe(true);
  expect(await filesOf(node)).toContain(sha256(elf));
  expect((await user.ask('DELETE', `/v1/artifacts/${announced.body.id}`)).status).toBe(204);
  expect(await filesOf(node)).not.toContain(sha256(elf));
  const gone = await user.ask('GET', `/v1/artifacts/${announced.body.id}`);
  expect(gone).toMatchObject({ status: 404, body: { code: 'ARTIFACT_NOT_FOUND' } });
  const { data } = await user.get<Page<AuditView>>('GET', '/v1/audit');
  expect(data.map(({ action }) => action)).toEqual(['artifact.delete', 'artifact.upload', 'artifact.create']);
  expect(data.map(({ keyName }) => keyName)).toEqual(['tester', 'tester', 'tester']);
});

it('the address works at every node, and what was uploaded at one is read at another', async () => {
  const user = node.newTenant();
  const bytes = newFile();
  const { body } = await announce(user, bytes, FILE);
  const elsewhere = body.uploadUrl!.replace(node.url, follower.url);
  expect(await send(elsewhere, bytes)).toMatchObject({ status: 200, body: { kind: 'file', machine: null } });
  const read = await follower.ask('GET', `/v1/artifacts/${body.id}/content`, { tenant: user.tenant });
  expect(read.status).toBe(200);
});

it('a range of bytes is read', async () => {
  const user = node.newTenant();
  const bytes = Buffer.from('0123456789');
  const { id } = await push(user, bytes, FILE);
  const range = async (asked: string) => {
    const answer = await user.ask('GET', `/v1/artifacts/${id}/content`, { headers: { range: asked } });
    return [answer.status, answer.headers.get('content-range'), answer.body];
  };
  expect(await range('bytes=2-4')).toEqual([206, 'bytes 2-4/10', '234']);
  expect(await range('bytes=7-')).toEqual([206, 'bytes 7-9/10', '789']);
  expect(await range('bytes=-2')).toEqual([206, 'bytes 8-9/10', '89']);
  expect(await range('bytes=0-99')).toEqual([206, 'bytes 0-9/10', '0123456789']);
  expect(await range('bytes=0-1,4-5')).toEqual([200, null, '0123456789']);
  expect(
    await user.ask('GET', `/v1/artifacts/${id}/content`, { headers: { range: 'bytes=10-' } }),
  ).toMatchObject({
    ...{ status: 416, body: { code: 'RANGE_NOT_SATISFIABLE' } },
  });
});

describe('an announcement', () => {
  it('that is repeated answers with the same artifact, with and without a name', async () => {
    const user = node.newTenant();
    for (const fields of [FILE, { ...FILE, name: 'a', version: '1' }]) {
      const bytes = newFile();
      const first = await announce(user, bytes, fields);
      const again = await announce(user, bytes, fields);
      expect(again).toMatchObject({ status: 200, body: { id: first.body.id, state: 'pending' } });
      expect((await send(again.body.uploadUrl!, bytes)).status).toBe(200);
      const ready = await announce(user, bytes, fields);
      expect(ready).toMatchObject({
        status: 200,
        body: { id: first.body.id, state: 'ready', uploadUrl: null },
      });
    }
  });

  it('of other bytes for a version that is there is refused', async () => {
    const user = node.newTenant();
    const named = { ...FILE, name: 'tool', version: '1.0' };
    await push(user, newFile(), named);
    const other = await announce(user, newFile(), named);
    expect(other).toMatchObject({ status: 409, body: { code: 'ARTIFACT_EXISTS' } });
  });

  it('of other bytes for a version that is not there yet takes its place, and the old address ends', async () => {
    const user = node.newTenant();
    const named = { ...FILE, name: 'tool', version: '1.0' };
    const [old, next] = [newFile(), newFile(1_001)];
    const first = await announce(user, old, named);
    const second = await announce(user, next, named);
    expect(second.body).toMatchObject({ id: first.body.id, sha256: sha256(next), size: 1_001 });
    expect(await send(first.body.uploadUrl!, old)).toMatchObject({
      status: 410,
      body: { code: 'UPLOAD_EXPIRED' },
    });
    expect((await send(second.body.uploadUrl!, next)).status).toBe(200);
    expect(await filesOf(node)).not.toContain(sha256(old));
  });

  it('of other bytes forgets the parts that have arrived', async () => {
    const user = node.newTenant();
    const size = 64 * 1024 ** 2 + 1;
    const named = { ...FILE, name: 'large', version: '1.0', size };
    const [old, next] = [newFile(), newFile()];
    const first = await announce(user, old, named);
    expect((await send(`${first.body.uploadUrl}&part=5`, Buffer.from('x'))).status).toBe(200);
    expect((await announce(user, old, named)).body.parts!.arrived).toEqual([5]);
    expect((await announce(user, next, named)).body.parts!.arrived).toEqual([]);
  });

  it.each([
    ['a name without a version', { name: 'a' }, 422, '/version'],
    ['a version without a name', { version: '1' }, 422, '/name'],
    [
      'a name that looks like an id',
      { name: '01890a5d-ac96-774b-bcce-b302099a8057', version: '1' },
      422,
      '/name',
    ],
    ['a hash that is none', { sha256: 'abc' }, 422, '/sha256'],
    ['no bytes at all', { size: 0 }, 422, '/size'],
  ])('with %s is refused', async (_, fields, status, pointer) => {
    const answer = await announce(node.newTenant(), newFile(), fields);
    expect(answer).toMatchObject({ status, body: { code: 'INVALID_REQUEST', errors: [{ pointer }] } });
  });

  it('of too many bytes is refused, by the limit of the nodes and by the quota of the tenant', async () => {
    const user = node.newTenant();
    expect(await announce(user, newFile(), { size: 2 ** 40 })).toMatchObject({
      ...{ status: 413, body: { code: 'ARTIFACT_TOO_LARGE' } },
    });
    await node.get('POST', '/v1/tenants', { body: { id: user.tenant, quotas: { artifactBytes: 2_500 } } });
    await expect
      .poll(async () => (await announce(user, newFile(), { ...FILE, size: 2_501 })).body.code, {
        timeout: 5_000,
      })
      .toBe('QUOTA_EXCEEDED');
    const first = newFile(2_000);
    await push(user, first, FILE);
    const beyond = await announce(user, newFile(501), FILE);
    expect(beyond).toMatchObject({ status: 429, body: { quota: 'artifactBytes', limit: 2_500 } });
    expect((await announce(user, newFile(500), FILE)).status).toBe(201);
    expect((await announce(user, first, FILE)).status).toBe(200);
  });
});

describe('nothing is left of an upload', () => {
  it.each<[string, number, string, (bytes: Buffer) => Buffer]>([
    ['of other bytes', 422, 'ARTIFACT_HASH', () => newFile()],
    ['of too many bytes', 422, 'ARTIFACT_SIZE', (bytes) => Buffer.concat([bytes, bytes])],
    ['of too few bytes', 422, 'ARTIFACT_SIZE', (bytes) => bytes.subarray(1)],
    ['of no bytes', 422, 'ARTIFACT_SIZE', () => Buffer.alloc(0)],
  ])('%s, and it can be made again', async (_, status, code, sent) => {
    const user = node.newTenant();
    const bytes = newFile();
    const before = await filesOf(node);
    const { body } = await announce(user, bytes, FILE);
    expect(await send(body.uploadUrl!, Buffer.from(sent(bytes)))).toMatchObject({ status, body: { code } });
    expect(await filesOf(node)).toEqual(before);
    expect((await there(user, body.id)).state).toBe('pending');
    expect((await send(body.uploadUrl!, bytes)).status).toBe(200);
  });

  it('that breaks off', async () => {
    const user = node.newTenant();
    const bytes = newFile(200_000);
    const before = await filesOf(node);
    const { body } = await announce(user, bytes, FILE);
    const leaving = new AbortController();
    async function* broken() {
      yield bytes.subarray(0, 100_000);
      leaving.abort();
      await new Promise(() => undefined);
    }
    const broke = fetch(body.uploadUrl!, {
      ...{ method: 'PUT', body: broken() as never, duplex: 'half', signal: leaving.signal },
    } as RequestInit);
    await expect(broke).rejects.toThrow();
    await expect.poll(() => filesOf(node)).toEqual(before);
    expect((await send(body.uploadUrl!, bytes)).status).toBe(200);
  });

  it('that stalls: it is told so, and given up', async () => {
    const user = node.newTenant();
    const bytes = newFile();
    const before = await filesOf(node);
    const { body } = await announce(user, bytes, FILE);
    const { hostname, port, pathname, search } = new URL(body.uploadUrl!);
    const socket = connect(Number(port), hostname);
    socket.write(`PUT ${pathname}${search} HTTP/1.1\r\nhost: a\r\ncontent-length: 1000\r\n\r\nabc`);
    let said = '';
    for await (const piece of socket) {
      said += piece;
      if (said.includes('UPLOAD_STALLED')) break;
    }
    expect(said).toMatch(/^HTTP\/1.1 408 /);
    await expect.poll(() => filesOf(node)).toEqual(before);
  });

  it('whose address was changed or signed elsewhere', async () => {
    const user = node.newTenant();
    const bytes = newFile();
    const [one, two] = [await announce(user, bytes, FILE), await announce(user, newFile(), FILE)];
    const swapped = one.body.uploadUrl!.replace(one.body.id, two.body.id);
    expect(await send(swapped, bytes)).toMatchObject({ status: 403, body: { code: 'FORBIDDEN' } });
    expect(await send(`${one.body.uploadUrl}x`, bytes)).toMatchObject({
      status: 403,
      body: { code: 'FORBIDDEN' },
    });
  });

  it('that comes twice at the same time: the second one is told to wait', async () => {
    const user = node.newTenant();
    const bytes = newFile();
    const before = await filesOf(node);
    const { body } = await announce(user, bytes, FILE);
    const address = body.uploadUrl!.replace(node.url, follower.url);
    const first = new TransformStream<Uint8Array>();
    const writer = first.writable.getWriter();
    const sent = send(address, first.readable, { duplex: 'half' });
    void writer.write(bytes.subarray(0, 10));
    await expect.poll(async () => (await filesOf(node)).length, { interval: 5 }).toBe(before.length + 1);
    const second = await send(address, bytes);
    expect(second.body.code).toBe('TOO_BUSY');
    await writer.write(bytes.subarray(10));
    await writer.close();
    expect((await sent).status).toBe(200);
  });

  it('that comes a second time', async () => {
    const user = node.newTenant();
    const bytes = newFile();
    const { body } = await announce(user, bytes, FILE);
    expect((await send(body.uploadUrl!, bytes)).status).toBe(200);
    expect(await send(body.uploadUrl!, bytes)).toMatchObject({ status: 409, body: { code: 'UPLOAD_DONE' } });
    await user.ask('DELETE', `/v1/artifacts/${body.id}`);
    expect(await send(body.uploadUrl!, bytes)).toMatchObject({
      status: 410,
      body: { code: 'UPLOAD_EXPIRED' },
    });
  });

  it('that is too late', async () => {
    const clock = new TestClock();
    const late = await nodeForTest({ clock });
    const bytes = newFile();
    const { body } = await announce(late, bytes, FILE);
    clock.advance(3_600_000);
    expect(await send(body.uploadUrl!, bytes)).toMatchObject({
      status: 410,
      body: { code: 'UPLOAD_EXPIRED' },
    });
    const again = await announce(late, bytes, FILE);
    expect(again.body.id).toBe(body.id);
    expect((await send(again.body.uploadUrl!, bytes)).status).toBe(200);
  });
});

describe('what is to be run', () => {
  it('must be a static program, which is found out before most of it has come', async () => {
    const user = node.newTenant();
    const text = Buffer.from('hello');
    const { body } = await announce(user, text);
    expect(await send(body.uploadUrl!, text)).toMatchObject({
      ...{
        status: 422,
        body: { code: 'ARTIFACT_NOT_RUNNABLE', detail: expect.stringContaining('no ELF file') },
      },
    });
    const large = newFile(40_000_000);
    const announced = await announce(user, large);
    expect(await send(announced.body.uploadUrl!, large)).toMatchObject({
      ...{ status: 422, body: { code: 'ARTIFACT_NOT_RUNNABLE' } },
    });
    expect(await filesOf(node)).not.toContain(sha256(text));
  });

  it('may be a script where the operator allows it', async () => {
    const script = Buffer.from(`#!/bin/sh\necho ${newFile(8).toString('hex')}\n`);
    const user = node.newTenant();
    const { body } = await announce(user, script);
    expect(await send(body.uploadUrl!, script)).toMatchObject({
      ...{ status: 422, body: { detail: expect.stringContaining('PUNCTUAL_ALLOW_SCRIPTS') } },
    });
    const lenient = await nodeForTest({ settings: { allowScripts: true } });
    expect(await push(lenient, script)).toMatchObject({ kind: 'script', machine: null, state: 'ready' });
  });
});

it('a tenant reaches no artifact of another, and the same bytes are there once', async () => {
  const [one, two] = [node.newTenant(), node.newTenant()];
  const bytes = newFile();
  const mine = await push(one, bytes, { ...FILE, name: 'shared', version: '1' });
  for (const [method, path] of [
    ['GET', `/v1/artifacts/${mine.id}`],
    ['GET', `/v1/artifacts/${mine.id}/content`],
    ['DELETE', `/v1/artifacts/${mine.id}`],
    ['POST', `/v1/artifacts/${mine.id}/complete`],
  ] as const) {
    expect(await two.ask(method, path), path).toMatchObject({
      status: 404,
      body: { code: 'ARTIFACT_NOT_FOUND' },
    });
  }
  expect((await two.get<Page<ArtifactView>>('GET', '/v1/artifacts')).data).toEqual([]);
  // To know the hash gives nothing: the bytes have to be sent.
  const announced = await announce(two, bytes, { ...FILE, name: 'shared', version: '1' });
  expect(announced.body).toMatchObject({ state: 'pending' });
  expect((await two.ask('GET', `/v1/artifacts/${announced.body.id}/content`)).status).toBe(409);
  expect((await send(announced.body.uploadUrl!, bytes)).status).toBe(200);
  const copies = async () => (await filesOf(node)).filter((name) => name === sha256(bytes));
  expect(await copies()).toHaveLength(1);
  await one.get('DELETE', `/v1/artifacts/${mine.id}`);
  expect(await copies()).toHaveLength(1);
  await two.get('DELETE', `/v1/artifacts/${announced.body.id}`);
  expect(await copies()).toHaveLength(0);
});

it('a node that stops breaks off downloads that nobody takes, and uploads that go on for ever', async () => {
  const stopping = await TestNode.start({ database });
  const user = stopping.newTenant();
  const { id } = await push(user, Buffer.alloc(40_000_000, 3), FILE);
  const { body } = await announce(user, newFile(1_000_000), FILE);
  const download = await fetch(`${stopping.url}/v1/artifacts/${id}/content`, {
    headers: { authorization: `Bearer ${stopping.apiKey}`, 'punctual-tenant': user.tenant },
  });
  expect(download.status).toBe(200);
  let begin: () => void = () => undefined;
  const begun = new Promise<void>((resolve) => {
    begin = resolve;
  });
  async function* endless() {
    yield newFile(1_000);
    begin();
    await new Promise(() => undefined);
  }
  const upload = fetch(body.uploadUrl!, {
    ...{ method: 'PUT', body: endless() as never, duplex: 'half' },
  } as RequestInit).then(
    ({ status }) => status,
    () => 'broken',
  );
  await begun;
  const before = performance.now();
  await stopping.stop();
  expect(performance.now() - before).toBeLessThan(10_000);
  await expect(download.arrayBuffer()).rejects.toThrow();
  expect([503, 'broken']).toContain(await upload);
});
