import { createHash, randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openStore } from '../../../src/artifact/open-store.js';
import type { S3Store } from '../../../src/artifact/s3-store.js';
import { type ArtifactView, PART_BYTES } from '../../../src/core/artifact.js';
import { resolveConfig } from '../../../src/core/config.js';
import type { ArtifactAnswer } from '../../../src/core/wire.js';
import { nodeForTest } from '../../node-for-tests.js';
import { handMadeElf } from '../../programs/hand-made-elf.js';
import { ProtocolWorker } from '../../protocol-worker.js';
import { S3Server } from '../../s3-server.js';
import { announce, push, send } from './artifact-for-tests.js';

let server: S3Server;
beforeEach(async () => {
  server = await S3Server.start();
});
afterEach(() => server.stop());

const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');
const blobOf = (bytes: Buffer) => ({ sha256: sha256(bytes), size: bytes.length });
const pieces = (bytes: Buffer) => Readable.from([bytes.subarray(0, 10), bytes.subarray(10)]);
const read = async (stream: Readable | null) => {
  const all: Buffer[] = [];
  for await (const piece of stream!) all.push(piece as Buffer);
  return Buffer.concat(all);
};

function storeAt(change: Record<string, string> = {}): S3Store {
  const { config } = resolveConfig({ ...server.settings(), ...change }, {}, () => '');
  return openStore(config) as S3Store;
}

const keys = () => [...server.objects.keys()];

describe('a bucket', () => {
  it('keeps bytes under their hash, with requests whose signatures a server of its own checks', async () => {
    const store = storeAt();
    await store.probe();
    expect(keys()).toEqual([]);
    const bytes = randomBytes(100_000);
    const { sha256: hash } = blobOf(bytes);
    expect(await store.size(hash)).toBeNull();
    expect(await store.open(hash)).toBeNull();
    await store.put(blobOf(bytes), pieces(bytes));
    expect(keys()).toEqual([`some/prefix/blobs/${hash.slice(0, 2)}/${hash}`]);
    expect(await store.size(hash)).toBe(100_000);
    expect((await read(await store.open(hash))).equals(bytes)).toBe(true);
    expect((await read(await store.open(hash, { start: 5, end: 9 }))).equals(bytes.subarray(5, 9))).toBe(
      true,
    );
    await store.remove(hash);
    await store.remove(hash);
    expect(keys()).toEqual([]);
  });

  it('stores nothing of other, more or fewer bytes, and nothing of what breaks off', async () => {
    const store = storeAt();
    const bytes = randomBytes(1_000);
    const blob = blobOf(bytes);
    const other = { ...blob, sha256: sha256(Buffer.from('x')) };
    await expect(store.put(other, pieces(bytes))).rejects.toMatchObject({ code: 'ARTIFACT_HASH' });
    const more = store.put({ ...blob, size: 999 }, pieces(bytes));
    await expect(more).rejects.toMatchObject({ code: 'ARTIFACT_SIZE' });
    const fewer = store.put({ ...blob, size: 1_001 }, pieces(bytes));
    await expect(fewer).rejects.toMatchObject({ code: 'ARTIFACT_SIZE' });
    async function* broken(): AsyncGenerator<Buffer> {
      yield bytes.subarray(0, 500);
      throw new Error('the client left');
    }
    await expect(store.put(blob, broken())).rejects.toThrow('the client left');
    expect(keys()).toEqual([]);
  });

  it('joins parts without sending them again, and forgets them', async () => {
    const store = storeAt();
    const part = 5 * 1024 * 1024;
    const bytes = Buffer.concat([randomBytes(100), Buffer.alloc(2 * part, 5)]);
    const [first, second, last] = [
      bytes.subarray(0, part),
      bytes.subarray(part, 2 * part),
      bytes.subarray(2 * part),
    ];
    await store.putPart('u', { number: 2, size: part }, pieces(second));
    await store.putPart('u', { number: 1, size: part }, pieces(first));
    await store.putPart('u', { number: 3, size: 100 }, pieces(last));
    expect((await store.parts('u')).map(({ number }) => number)).toEqual([1, 2, 3]);
    const put = server.answered.length;
    await store.complete('u', blobOf(bytes));
    expect((await read(await store.open(sha256(bytes)))).equals(bytes)).toBe(true);
    expect(server.answered.slice(put).filter((each) => each.startsWith('PUT'))).toHaveLength(3);
    expect(keys()).toHaveLength(1);
    expect(server.uploads.size).toBe(0);
  });

  it('joins nothing of other bytes, of a part that was replaced meanwhile, and of parts that are too small', async () => {
    const store = storeAt();
    const bytes = randomBytes(2_000);
    const upload = async () => {
      await store.putPart('v', { number: 1, size: 1_000 }, pieces(bytes.subarray(0, 1_000)));
      await store.putPart('v', { number: 2, size: 1_000 }, pieces(bytes.subarray(1_000)));
    };
    await upload();
    const wrong = { ...blobOf(bytes), sha256: sha256(Buffer.from('x')) };
    await expect(store.complete('v', wrong)).rejects.toMatchObject({ code: 'ARTIFACT_HASH' });
    expect(keys()).toEqual([]);
    await upload();
    // The server refuses parts below 5 MiB with an error whose status is none.
    await expect(store.complete('v', blobOf(bytes))).rejects.toMatchObject({
      ...{ code: 'ARTIFACT_STORE_UNAVAILABLE', message: expect.stringContaining('InvalidPart') },
    });
    expect(server.uploads.size).toBe(0);
    expect(keys()).toHaveLength(2);
  });

  it('is swept of what was begun to be joined and never ended', async () => {
    const store = storeAt();
    const parts = new Map<number, Buffer>();
    server.uploads.set('old', { key: 'some/prefix/blobs/a', parts, begunAt: 1_000 });
    server.uploads.set('young', { key: 'some/prefix/blobs/b', parts, begunAt: Date.now() });
    await store.sweep(Date.now() - 60_000, async () => new Set());
    expect([...server.uploads.keys()]).toEqual(['young']);
  });

  it('forgets what was written to uploads that nobody needs any more', async () => {
    const store = storeAt();
    const bytes = randomBytes(10);
    for (const upload of ['crashed', 'goes-on', 'young'])
      await store.putPart(upload, { number: 1, size: 10 }, pieces(bytes));
    for (const upload of ['crashed', 'goes-on'])
      server.writtenAt.set(`some/prefix/uploads/${upload}/part-1`, 1_000);
    await store.sweep(2_000, async () => new Set(['goes-on']));
    expect(keys()).toEqual(['goes-on', 'young'].map((upload) => `some/prefix/uploads/${upload}/part-1`));
  });

  it('is asked again while it is busy, and says clearly what is wrong with it', async () => {
    const store = storeAt();
    server.failures.push(503, 500);
    expect(await store.size(sha256(Buffer.from('x')))).toBeNull();
    server.failures.push(503, 503, 503, 503);
    await expect(store.parts('u')).rejects.toMatchObject({
      ...{ code: 'ARTIFACT_STORE_UNAVAILABLE', message: expect.stringContaining('503, SlowDown') },
    });
    const bytes = randomBytes(100);
    server.failures.push(503);
    // Bytes that are read as they are sent are sent once.
    await expect(store.put(blobOf(bytes), pieces(bytes))).rejects.toMatchObject({
      code: 'ARTIFACT_STORE_UNAVAILABLE',
    });
    for (const [change, said] of [
      [{ s3SecretAccessKey: 'wrong' }, 'SignatureDoesNotMatch'],
      [{ s3AccessKeyId: 'wrong' }, 'InvalidAccessKeyId'],
      [{ s3Region: 'elsewhere' }, 'AuthorizationHeaderMalformed'],
      [{ artifactStore: 's3://another' }, 'NoSuchBucket'],
    ] as const)
      await expect(storeAt(change).probe()).rejects.toMatchObject({ message: expect.stringContaining(said) });
    server.isDown = true;
    await expect(store.probe()).rejects.toMatchObject({
      ...{ code: 'ARTIFACT_STORE_UNAVAILABLE', message: expect.stringContaining('cannot be reached') },
    });
  });

  it.each([
    ['s3://', /s3:\/\/bucket/],
    ['s3://UPPER/x', /s3:\/\/bucket/],
    ['gs://bucket', /s3:\/\/bucket/],
  ])('is not %s', (artifactStore, message) => {
    expect(() => storeAt({ artifactStore })).toThrow(message);
  });

  it('takes no larger artifacts than one request can write', () => {
    expect(() => storeAt({ maxArtifactBytes: String(6 * 1024 ** 3) })).toThrow(/PUNCTUAL_MAX_ARTIFACT_BYTES/);
  });

  it('needs a key', () => {
    expect(() => storeAt({ s3AccessKeyId: '' })).toThrow(/PUNCTUAL_S3_ACCESS_KEY_ID/);
  });
});

describe('a node with a bucket', () => {
  const newElf = () => Buffer.concat([handMadeElf('x64', 0), randomBytes(16)]);

  it('serves uploads, downloads and what attempts ask for from there', async () => {
    const node = await nodeForTest({ settings: server.settings() });
    const elf = newElf();
    const view = await push(node, elf, { name: 'packer', version: '1' });
    expect(view).toMatchObject({ state: 'ready', kind: 'elf' });
    const worker = await ProtocolWorker.register(node, { targets: ['exec'] });
    await node.submit({ target: { type: 'exec', artifact: 'packer@1' } });
    const { jobId, fence, token } = await worker.claimOne();
    const answer = await node.get<ArtifactAnswer>('POST', `/v1/workers/${worker.id}/artifact`, {
      body: { jobId, fence, token },
    });
    // Straight from the bucket, without a node in between.
    expect(answer.url.startsWith(server.endpoint)).toBe(true);
    const bytes = await fetch(answer.url, { headers: { ...answer.headers, range: 'bytes=1-3' } });
    expect(await bytes.text()).toBe('ELF');
    const changed = await fetch(answer.url.replace('Expires=900', 'Expires=901'));
    expect(changed.status).toBe(403);
    const left = await fetch(`${node.url}/v1/jobs/${jobId}/outputs/result`, {
      ...{ method: 'PUT', headers: { authorization: `Bearer ${token}` }, body: 'hello' },
    });
    expect(left.status).toBe(201);
    await worker.succeed({ jobId, fence });
    const { id } = (await left.json()) as ArtifactView;
    expect((await node.ask('GET', `/v1/artifacts/${id}/content`)).body).toBe('hello');
  });

  it('takes bytes straight into the bucket where a client wants that, and checks them then', async () => {
    const node = await nodeForTest({ settings: server.settings() });
    const elf = newElf();
    const { body } = await announce(node, elf, { direct: true });
    expect(body).toMatchObject({ mustComplete: true, parts: null });
    expect(body.uploadUrl!.startsWith(server.endpoint)).toBe(true);
    const complete = () => node.ask('POST', `/v1/artifacts/${body.id}/complete`);
    expect(await complete()).toMatchObject({ status: 409, body: { code: 'UPLOAD_INCOMPLETE' } });
    // The client says by itself how many bytes come, and that is signed.
    expect(body.uploadHeaders).toEqual({ 'content-length': String(elf.length) });
    const put = (bytes: Buffer) => fetch(body.uploadUrl!, { method: 'PUT', body: Buffer.from(bytes) });
    expect((await put(Buffer.alloc(elf.length))).status).toBe(200);
    expect(await complete()).toMatchObject({ status: 422, body: { code: 'ARTIFACT_HASH' } });
    expect((await put(Buffer.alloc(elf.length + 1))).status).toBe(403);
    expect((await put(elf)).status).toBe(200);
    expect(await complete()).toMatchObject({ status: 200, body: { state: 'ready', kind: 'elf' } });
    expect(keys()).toHaveLength(1);
  });

  it('makes artifacts ready and removes them while the bucket is slower than a transaction may be idle', async () => {
    // A transaction that waits for nothing is ended after four fifths of this.
    const node = await nodeForTest({ settings: { ...server.settings(), leaseTtl: '2s' } });
    server.slow.set('HEAD', 2_500).set('DELETE', 2_500);
    const view = await push(node, newElf());
    expect(view.state).toBe('ready');
    expect((await node.ask('DELETE', `/v1/artifacts/${view.id}`)).status).toBe(204);
    expect(keys()).toEqual([]);
  }, 20_000);

  it('answers both who end the same upload at the same time', async () => {
    const node = await nodeForTest({ settings: server.settings() });
    const elf = newElf();
    const { body } = await announce(node, elf, { direct: true });
    expect((await fetch(body.uploadUrl!, { method: 'PUT', body: elf })).status).toBe(200);
    const complete = () => node.ask('POST', `/v1/artifacts/${body.id}/complete`);
    const answers = await Promise.all([complete(), complete(), complete()]);
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
  });

  it('says that the bucket is at fault if it sends a part of what it has', async () => {
    const node = await nodeForTest({ settings: server.settings() });
    const elf = newElf();
    const { body } = await announce(node, elf, { direct: true });
    expect((await fetch(body.uploadUrl!, { method: 'PUT', body: elf })).status).toBe(200);
    const complete = () => node.ask('POST', `/v1/artifacts/${body.id}/complete`);
    server.isCutting = true;
    expect(await complete()).toMatchObject({ status: 503, body: { code: 'ARTIFACT_STORE_UNAVAILABLE' } });
    server.isCutting = false;
    expect(await complete()).toMatchObject({ status: 200, body: { state: 'ready' } });
  });

  it('says that the bucket is down, and goes on when it is back', async () => {
    const node = await nodeForTest({ settings: server.settings() });
    const elf = newElf();
    const { body } = await announce(node, elf);
    server.isDown = true;
    expect(await send(body.uploadUrl!, elf)).toMatchObject({
      ...{ status: 503, body: { code: 'ARTIFACT_STORE_UNAVAILABLE' } },
    });
    server.isDown = false;
    expect((await send(body.uploadUrl!, elf)).status).toBe(200);
  });

  it('takes a large file in parts, which an upload that broke off goes on with', async () => {
    const node = await nodeForTest({ settings: server.settings() });
    const size = 4 * PART_BYTES + 5;
    const bytes = Buffer.concat([randomBytes(1_000), Buffer.alloc(size - 1_000, 3)]);
    const { body } = await announce(node, bytes, { runnable: false });
    const first = Buffer.from(bytes.subarray(0, PART_BYTES));
    expect((await send(`${body.uploadUrl}&part=1`, first)).status).toBe(200);
    const { artifacts } = node.connect();
    const sent: number[] = [];
    const view = await artifacts.push(bytes, { runnable: false, onProgress: (all) => sent.push(all) });
    expect(view).toMatchObject({ id: body.id, state: 'ready', size });
    // What had arrived was not sent again.
    expect(sent[0]).toBe(PART_BYTES);
    expect(server.answered.filter((each) => each.startsWith('PUT') && each.includes('part-'))).toHaveLength(
      5,
    );
    expect(keys()).toHaveLength(1);
    expect(sha256([...server.objects.values()][0]!)).toBe(sha256(bytes));
  }, 30_000);
});
