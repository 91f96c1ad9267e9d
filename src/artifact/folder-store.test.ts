import { createHash, randomBytes } from 'node:crypto';
import { chmod, mkdir, readdir, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { describe, expect, it, onTestFinished } from 'vitest';
import { temporaryFolder } from '../../test/temporary-folder.js';
import type { Blob } from './artifact-store.js';
import { FolderStore } from './folder-store.js';

const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex');
const blobOf = (bytes: Buffer): Blob => ({ sha256: sha256(bytes), size: bytes.length });

async function* inPieces(bytes: Buffer, size = 7_000): AsyncGenerator<Buffer> {
  for (let from = 0; from < bytes.length; from += size) yield bytes.subarray(from, from + size);
}

async function read(stream: Readable | null): Promise<Buffer> {
  const pieces: Buffer[] = [];
  for await (const piece of stream!) pieces.push(piece as Buffer);
  return Buffer.concat(pieces);
}

async function newStore(): Promise<{ store: FolderStore; folder: string }> {
  const folder = await temporaryFolder();
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return { store: new FolderStore(folder), folder };
}

/** Every file below the folder. */
async function files(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => []);
  return entries.filter((each) => each.isFile()).map((each) => each.name);
}

const BYTES = randomBytes(100_000);

describe('a folder of artifacts', () => {
  it('gives back what was stored, all of it or a range', async () => {
    const { store } = await newStore();
    const blob = blobOf(BYTES);
    expect(await store.size(blob.sha256)).toBeNull();
    expect(await store.open(blob.sha256)).toBeNull();
    await store.put(blob, inPieces(BYTES));
    await store.put(blob, inPieces(BYTES));
    expect(await store.size(blob.sha256)).toBe(100_000);
    expect((await read(await store.open(blob.sha256))).equals(BYTES)).toBe(true);
    const range = await read(await store.open(blob.sha256, { start: 10, end: 20 }));
    expect(range.equals(BYTES.subarray(10, 20))).toBe(true);
    await store.remove(blob.sha256);
    await store.remove(blob.sha256);
    expect(await store.open(blob.sha256)).toBeNull();
  });

  it.each<[string, string, (blob: Blob) => Blob, (bytes: Buffer) => AsyncIterable<Buffer>]>([
    [
      'other bytes than were said',
      'ARTIFACT_HASH',
      (blob) => ({ ...blob, sha256: sha256(Buffer.from('x')) }),
      inPieces,
    ],
    ['more bytes than were said', 'ARTIFACT_SIZE', (blob) => ({ ...blob, size: 99_999 }), inPieces],
    ['fewer bytes than were said', 'ARTIFACT_SIZE', (blob) => ({ ...blob, size: 100_001 }), inPieces],
  ])('refuses %s and leaves nothing', async (_, code, said, sent) => {
    const { store, folder } = await newStore();
    await expect(store.put(said(blobOf(BYTES)), sent(BYTES))).rejects.toMatchObject({ code });
    expect(await files(folder)).toEqual([]);
  });

  it('passes on why a client broke off, and leaves nothing', async () => {
    const { store, folder } = await newStore();
    async function* broken(): AsyncGenerator<Buffer> {
      yield BYTES.subarray(0, 50_000);
      throw new Error('the client left');
    }
    await expect(store.put(blobOf(BYTES), broken())).rejects.toThrow('the client left');
    expect(await files(folder)).toEqual([]);
  });

  it('stores the same bytes once, however many send them at the same time', async () => {
    const { store, folder } = await newStore();
    await Promise.all([1, 2, 3, 4].map((size) => store.put(blobOf(BYTES), inPieces(BYTES, size * 10_000))));
    expect(await files(folder)).toEqual([sha256(BYTES)]);
  });

  it('puts parts together, whatever their order, and forgets them', async () => {
    const { store, folder } = await newStore();
    const part = (number: number, from: number, to: number) =>
      store.putPart('upload-1', { number, size: to - from }, inPieces(BYTES.subarray(from, to)));
    await part(2, 60_000, 100_000);
    await expect(part(1, 0, 60_000)).resolves.toBeUndefined();
    await part(1, 0, 60_000);
    expect(await store.parts('upload-1')).toEqual([
      { number: 1, size: 60_000 },
      { number: 2, size: 40_000 },
    ]);
    await store.complete('upload-1', blobOf(BYTES));
    expect((await read(await store.open(sha256(BYTES)))).equals(BYTES)).toBe(true);
    expect(await files(folder)).toEqual([sha256(BYTES)]);
    expect(await store.parts('upload-1')).toEqual([]);
  });

  it('has nothing to put together before a part has come', async () => {
    const { store } = await newStore();
    await expect(store.complete('upload-1', blobOf(BYTES))).rejects.toMatchObject({
      code: 'UPLOAD_INCOMPLETE',
    });
  });

  it('refuses a part of another size, and parts that do not make up the bytes', async () => {
    const { store, folder } = await newStore();
    const wrong = store.putPart('upload-1', { number: 1, size: 10 }, inPieces(BYTES));
    await expect(wrong).rejects.toMatchObject({ code: 'ARTIFACT_SIZE' });
    await store.putPart('upload-1', { number: 1, size: 100_000 }, inPieces(randomBytes(100_000)));
    await expect(store.complete('upload-1', blobOf(BYTES))).rejects.toMatchObject({ code: 'ARTIFACT_HASH' });
    expect(await files(folder)).toEqual([]);
  });

  it('sweeps what a crash has left, and neither bytes nor the parts of uploads that go on', async () => {
    const { store, folder } = await newStore();
    await store.put(blobOf(BYTES), inPieces(BYTES));
    await store.putPart('upload-1', { number: 1, size: 10 }, inPieces(BYTES.subarray(0, 10)));
    const [old, young] = ['old', 'young'].map((name) => join(folder, 'incoming', name));
    await writeFile(old!, 'x');
    await writeFile(young!, 'x');
    for (const [upload, number] of [
      ['crashed', 2],
      ['goes-on', 3],
    ] as const) {
      await store.putPart(upload, { number, size: 10 }, inPieces(BYTES.subarray(0, 10)));
      await utimes(join(folder, 'uploads', upload), 1_000, 1_000);
    }
    await utimes(old!, 1_000, 1_000);
    const asked: string[] = [];
    await store.sweep(2_000_000, async (uploads) => {
      asked.push(...uploads);
      return new Set(['goes-on']);
    });
    expect(asked.sort()).toEqual(['crashed', 'goes-on']);
    expect((await files(folder)).sort()).toEqual(['part-1', 'part-3', sha256(BYTES), 'young'].sort());
  });

  it('says that it cannot be used, and what is wrong', async () => {
    const { folder } = await newStore();
    const file = join(folder, 'a-file');
    await mkdir(folder, { recursive: true });
    await writeFile(file, 'x');
    const store = new FolderStore(file);
    const unusable = { code: 'ARTIFACT_STORE_UNAVAILABLE', message: expect.stringContaining('ENOTDIR') };
    await expect(store.probe()).rejects.toMatchObject(unusable);
    await expect(store.put(blobOf(BYTES), inPieces(BYTES))).rejects.toMatchObject(unusable);
    await expect(store.size(sha256(BYTES))).rejects.toMatchObject(unusable);
    await expect(new FolderStore(folder).probe()).resolves.toBeUndefined();
  });

  it('shows nothing to other users of the machine', async () => {
    const { store, folder } = await newStore();
    await chmod(folder, 0o755).catch(() => undefined);
    await store.put(blobOf(BYTES), inPieces(BYTES));
    const path = join(folder, 'blobs', sha256(BYTES).slice(0, 2), sha256(BYTES));
    expect((await stat(path)).mode & 0o077).toBe(0);
    expect((await stat(join(folder, 'blobs'))).mode & 0o077).toBe(0);
  });
});
