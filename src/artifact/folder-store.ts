import { randomUUID } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { type FileHandle, mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import type { Readable } from 'node:stream';
import { messageOf, PunctualError } from '../core/errors.js';
import type { AreNeeded, ArtifactStore, Blob, ByteRange, StoredPart } from './artifact-store.js';
import { checkedBytes, sizedBytes } from './checked-bytes.js';

const PART = /^part-(\d{1,5})$/;
/** Leftovers that are looked at together. */
const SWEPT_AT_ONCE = 500;

/**
 * Artifacts in a folder that all nodes of the cluster have. Bytes are written beside their place and renamed into it when all
 * are there and on the disk, so that neither a crash nor a second node that receives the same can leave a part of them there.
 */
export class FolderStore implements ArtifactStore {
  readonly place: string;
  private readonly blobs: string;
  private readonly incoming: string;
  private readonly uploads: string;

  constructor(folder: string) {
    this.place = resolve(folder);
    this.blobs = join(this.place, 'blobs');
    this.incoming = join(this.place, 'incoming');
    this.uploads = join(this.place, 'uploads');
  }

  async probe(): Promise<void> {
    await this.guarded(async () => {
      await this.makeFolders();
      const path = join(this.incoming, `probe-${randomUUID()}`);
      await writeAll(path, [Buffer.from('punctual')]);
      await rm(path);
    });
  }

  async put(blob: Blob, pieces: AsyncIterable<Buffer>): Promise<void> {
    await this.receive(this.pathOf(blob.sha256), checkedBytes(blob, pieces));
  }

  async size(sha256: string): Promise<number | null> {
    return this.guarded(async () => (await statOf(this.pathOf(sha256)))?.size ?? null);
  }

  async open(sha256: string, range?: ByteRange): Promise<Readable | null> {
    const file = await this.guarded(() => open(this.pathOf(sha256)).catch(nullIfMissing));
    if (file === null) return null;
    return file.createReadStream(range ? { start: range.start, end: range.end - 1 } : {});
  }

  async remove(sha256: string): Promise<void> {
    await this.guarded(() => rm(this.pathOf(sha256), { force: true }));
  }

  async putPart(upload: string, part: StoredPart, pieces: AsyncIterable<Buffer>): Promise<void> {
    await this.receive(join(this.folderOf(upload), `part-${part.number}`), sizedBytes(part.size, pieces));
  }

  parts(upload: string): Promise<StoredPart[]> {
    return this.guarded(async () => {
      const folder = this.folderOf(upload);
      const parts: StoredPart[] = [];
      for (const name of (await readdir(folder).catch(nullIfMissing)) ?? []) {
        const number = Number(PART.exec(name)?.[1] ?? 0);
        const found = number > 0 && (await statOf(join(folder, name)));
        if (found) parts.push({ number, size: found.size });
      }
      return parts.sort((a, b) => a.number - b.number);
    });
  }

  async complete(upload: string, blob: Blob): Promise<void> {
    const parts = await this.parts(upload);
    if (parts.length === 0)
      throw new PunctualError('UPLOAD_INCOMPLETE', 'The bytes of the upload have not arrived.');
    try {
      await this.put(blob, this.readParts(upload, parts));
    } catch (error) {
      // What cannot be stored at the moment may be tried again with the same parts.
      if (!(error instanceof PunctualError) || error.code === 'ARTIFACT_STORE_UNAVAILABLE') throw error;
      await this.abandon(upload);
      throw error;
    }
    await this.abandon(upload);
  }

  async abandon(upload: string): Promise<void> {
    await this.guarded(() => rm(this.folderOf(upload), { recursive: true, force: true }));
  }

  async sweep(before: number, areNeeded: AreNeeded): Promise<void> {
    for await (const names of this.untouched(this.incoming, before)) {
      for (const name of names) await this.guarded(() => rm(join(this.incoming, name), { force: true }));
    }
    for await (const uploads of this.untouched(this.uploads, before)) {
      const needed = await areNeeded(uploads);
      for (const upload of uploads) if (!needed.has(upload)) await this.abandon(upload);
    }
  }

  /** What is in a folder and was not written to since the moment. */
  private async *untouched(folder: string, before: number): AsyncGenerator<string[]> {
    const names = (await this.guarded(() => readdir(folder).catch(nullIfMissing))) ?? [];
    for (let from = 0; from < names.length; from += SWEPT_AT_ONCE) {
      const old: string[] = [];
      for (const name of names.slice(from, from + SWEPT_AT_ONCE)) {
        const found = await this.guarded(() => statOf(join(folder, name)));
        if (found && found.mtimeMs < before) old.push(name);
      }
      yield old;
    }
  }

  async close(): Promise<void> {}

  directUpload(): Promise<null> {
    return Promise.resolve(null);
  }

  directDownload(): Promise<null> {
    return Promise.resolve(null);
  }

  private async *readParts(upload: string, parts: readonly StoredPart[]): AsyncGenerator<Buffer> {
    try {
      for (const { number } of parts) {
        yield* createReadStream(join(this.folderOf(upload), `part-${number}`)) as AsyncIterable<Buffer>;
      }
    } catch (error) {
      throw this.explained(error);
    }
  }

  /** Writes bytes beside their place, and puts them there when all have come. */
  private async receive(path: string, pieces: AsyncIterable<Buffer>): Promise<void> {
    const draft = join(this.incoming, randomUUID());
    try {
      await this.guarded(() => this.makeFolders());
      await writeAll(draft, guardedPieces(pieces));
      await this.guarded(async () => {
        await mkdir(dirname(path), { recursive: true, mode: 0o700 });
        await rename(draft, path);
        await syncFolder(dirname(path));
      });
    } catch (error) {
      await rm(draft, { force: true }).catch(() => undefined);
      if (error instanceof FromSource) throw error.cause;
      throw this.explained(error);
    }
  }

  private async makeFolders(): Promise<void> {
    for (const folder of [this.blobs, this.incoming, this.uploads]) {
      await mkdir(folder, { recursive: true, mode: 0o700 });
    }
  }

  private pathOf(sha256: string): string {
    return join(this.blobs, sha256.slice(0, 2), sha256);
  }

  private folderOf(upload: string): string {
    return join(this.uploads, upload);
  }

  private async guarded<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      throw this.explained(error);
    }
  }

  /** A folder that cannot be used is a fault of the node's place, not of the request. */
  private explained(error: unknown): unknown {
    if (error instanceof PunctualError) return error;
    const detail = `The folder for artifacts cannot be used: ${messageOf(error)}`;
    return new PunctualError('ARTIFACT_STORE_UNAVAILABLE', detail, { cause: error, retryAfter: 5 });
  }
}

/** An error of whoever sends the bytes, not of the folder. */
class FromSource extends Error {
  constructor(override readonly cause: unknown) {
    super('the source of the bytes failed');
  }
}

async function* guardedPieces(pieces: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  try {
    yield* pieces;
  } catch (error) {
    throw new FromSource(error);
  }
}

async function writeAll(path: string, pieces: AsyncIterable<Buffer> | readonly Buffer[]): Promise<void> {
  const file = await open(path, 'wx', 0o600);
  try {
    for await (const piece of pieces) await writeWhole(file, piece);
    await file.sync();
  } finally {
    await file.close();
  }
}

/** One write may take a part of a piece only. */
async function writeWhole(file: FileHandle, piece: Buffer): Promise<void> {
  for (let from = 0; from < piece.length; ) {
    from += (await file.write(piece, from)).bytesWritten;
  }
}

/** A rename is kept through a crash once its folder is on the disk. */
async function syncFolder(path: string): Promise<void> {
  const folder = await open(path);
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

async function statOf(path: string): Promise<{ readonly size: number; readonly mtimeMs: number } | null> {
  return stat(path).catch(nullIfMissing);
}

function nullIfMissing(error: unknown): null {
  if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
  throw error;
}
