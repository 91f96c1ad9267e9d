import { randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';
import { PunctualError } from '../core/errors.js';
import type {
  AreNeeded,
  ArtifactStore,
  Blob,
  ByteRange,
  DirectRequest,
  StoredPart,
} from './artifact-store.js';
import { UNSIGNED_PAYLOAD } from './aws-signature.js';
import { checkedBytes, sizedBytes } from './checked-bytes.js';
import {
  type BucketOptions,
  LISTED_AT_ONCE,
  S3Bucket,
  type StoredObject,
  type TaggedObject,
} from './s3-bucket.js';

/** An object may be written by one request only up to this size. */
export const MOST_BUCKET_BYTES = 5 * 1024 ** 3;
const PART = /\/part-(\d{1,5})$/;

/**
 * Artifacts in a bucket. An object appears under its hash when all of it was sent and fits: the bytes are hashed here on their way, a
 * request that breaks off stores nothing, and the server compares the hash, too. Parts of uploads are objects of their own. When all
 * have come they are read once, for their hash, and the server joins those that were read.
 */
export class S3Store implements ArtifactStore {
  readonly place: string;
  private readonly bucket: S3Bucket;

  constructor(
    options: BucketOptions,
    /** What all keys begin with; empty, or ending with a slash. */
    private readonly prefix: string,
  ) {
    this.place = `s3://${options.bucket}/${prefix}`;
    this.bucket = new S3Bucket(options);
  }

  async probe(): Promise<void> {
    const key = `${this.prefix}probe-${randomUUID()}`;
    const bytes = Buffer.from('punctual');
    await this.bucket.put(key, bytes.length, { stream: Readable.from([bytes]), hash: UNSIGNED_PAYLOAD });
    const there = await this.bucket.size(key);
    await this.bucket.remove(key);
    if (there !== bytes.length)
      throw new PunctualError(
        'ARTIFACT_STORE_UNAVAILABLE',
        `${this.place} does not keep what is stored there.`,
      );
  }

  async put(blob: Blob, pieces: AsyncIterable<Buffer>): Promise<void> {
    const stream = checkedBytes(blob, pieces);
    await this.bucket.put(this.keyOf(blob.sha256), blob.size, { stream, hash: blob.sha256 });
  }

  size(sha256: string, signal?: AbortSignal): Promise<number | null> {
    return this.bucket.size(this.keyOf(sha256), signal);
  }

  open(sha256: string, range?: ByteRange): Promise<Readable | null> {
    return this.bucket.get(this.keyOf(sha256), range);
  }

  remove(sha256: string, signal?: AbortSignal): Promise<void> {
    return this.bucket.remove(this.keyOf(sha256), signal);
  }

  async putPart(upload: string, { number, size }: StoredPart, pieces: AsyncIterable<Buffer>): Promise<void> {
    const stream = sizedBytes(size, pieces);
    const key = `${this.folderOf(upload)}part-${number}`;
    await this.bucket.put(key, size, { stream, hash: UNSIGNED_PAYLOAD });
  }

  async parts(upload: string): Promise<StoredPart[]> {
    const objects = await this.bucket.list(this.folderOf(upload));
    return objects
      .flatMap(({ key, size }) => {
        const number = Number(PART.exec(key)?.[1] ?? 0);
        return number > 0 ? [{ number, size }] : [];
      })
      .sort((a, b) => a.number - b.number);
  }

  async complete(upload: string, blob: Blob): Promise<void> {
    const parts = await this.parts(upload);
    try {
      if (parts.length > 1) await this.join(upload, parts, blob);
      else await this.put(blob, this.readUpload(upload, parts));
    } catch (error) {
      // What cannot be stored at the moment may be tried again with the same parts.
      if (!(error instanceof PunctualError) || error.code === 'ARTIFACT_STORE_UNAVAILABLE') throw error;
      await this.abandon(upload);
      throw error;
    }
    await this.abandon(upload);
  }

  async abandon(upload: string): Promise<void> {
    for (const { key } of await this.bucket.list(this.folderOf(upload))) await this.bucket.remove(key);
  }

  /**
   * A request that breaks off leaves nothing in a bucket; but what was begun to be joined is there until somebody gives it up, and the
   * parts of an upload are objects.
   */
  async sweep(before: number, areNeeded: AreNeeded): Promise<void> {
    await this.bucket.giveUpUnfinished(`${this.prefix}blobs/`, before);
    const prefix = `${this.prefix}uploads/`;
    for (let after: string | undefined = prefix; after !== undefined; ) {
      const objects: StoredObject[] = await this.bucket.list(prefix, after);
      const writtenAt = new Map<string, number>();
      for (const { key, at } of objects) {
        const [upload = ''] = key.slice(prefix.length).split('/');
        writtenAt.set(upload, Math.max(at, writtenAt.get(upload) ?? 0));
      }
      const old = [...writtenAt].filter(([, at]) => at < before).map(([upload]) => upload);
      const needed = await areNeeded(old);
      for (const upload of old) if (!needed.has(upload)) await this.abandon(upload);
      after = objects.length < LISTED_AT_ONCE ? undefined : objects.at(-1)?.key;
    }
  }

  close(): Promise<void> {
    return this.bucket.close();
  }

  directUpload(upload: string, { size }: Blob, validForMs: number): Promise<DirectRequest> {
    const headers = { 'content-length': String(size) };
    const url = this.bucket.address('PUT', this.wholeOf(upload), headers, validForMs);
    return Promise.resolve({ url, method: 'PUT', headers });
  }

  directDownload(sha256: string, validForMs: number): Promise<DirectRequest> {
    const url = this.bucket.address('GET', this.keyOf(sha256), {}, validForMs);
    return Promise.resolve({ url, method: 'GET', headers: {} });
  }

  private async join(upload: string, parts: readonly StoredPart[], blob: Blob): Promise<void> {
    const read: TaggedObject[] = [];
    const { bucket } = this;
    const folder = this.folderOf(upload);
    async function* bytes(): AsyncGenerator<Buffer> {
      for (const { number } of parts) {
        const part = await bucket.getTagged(`${folder}part-${number}`);
        if (part === null) throw new PunctualError('UPLOAD_INCOMPLETE', `Part ${number} has not arrived.`);
        read.push(part);
        yield* bucket.explained(part.bytes);
      }
    }
    for await (const _ of checkedBytes(blob, bytes()));
    await bucket.join(this.keyOf(blob.sha256), read);
  }

  /** The bytes of a single part, or what was uploaded straight into the bucket. */
  private async *readUpload(upload: string, parts: readonly StoredPart[]): AsyncGenerator<Buffer> {
    const keys =
      parts.length > 0
        ? parts.map(({ number }) => `${this.folderOf(upload)}part-${number}`)
        : [this.wholeOf(upload)];
    for (const key of keys) {
      const bytes = await this.bucket.get(key);
      if (bytes === null)
        throw new PunctualError('UPLOAD_INCOMPLETE', 'The bytes of the upload have not arrived.');
      yield* this.bucket.explained(bytes);
    }
  }

  private keyOf(sha256: string): string {
    return `${this.prefix}blobs/${sha256.slice(0, 2)}/${sha256}`;
  }

  private folderOf(upload: string): string {
    return `${this.prefix}uploads/${upload}/`;
  }

  private wholeOf(upload: string): string {
    return `${this.folderOf(upload)}whole`;
  }
}
