import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { chmod, open, rename, rm } from 'node:fs/promises';
import { Readable, Transform } from 'node:stream';
import {
  type AnnouncedArtifact,
  type ArtifactState,
  type ArtifactView,
  type ArtifactWithUses,
  PART_BYTES,
  partBytes,
  readReference,
} from '../core/artifact.js';
import { type ErrorCode, PunctualError } from '../core/errors.js';
import { checkOptions, type OptionNames } from '../core/known-options.js';
import type { Transport } from '../transport/transport.js';
import { eachItem, PAGE_OPTIONS, type PageOptions } from './pages.js';

/** How long the upload of one piece may take; what stalls is given up by the node long before. */
const UPLOAD_TIMEOUT_MS = 30 * 60_000;
/** Putting parts together and checking them takes as long as reading all of them. */
const COMPLETE_TIMEOUT_MS = 10 * 60_000;

/** Bytes that came and were refused: to send the same again makes no sense. */
const REFUSED: readonly ErrorCode[] = ['ARTIFACT_NOT_RUNNABLE', 'ARTIFACT_HASH', 'ARTIFACT_SIZE'];

/** How bytes are uploaded. */
export interface PushOptions {
  /** With a version; without both, only the id finds the artifact. */
  readonly name?: string;
  readonly version?: string;
  /** False for bytes that no worker is to run; default true. */
  readonly runnable?: boolean;
  /** Called as bytes are sent. Those that had arrived before count as sent. */
  readonly onProgress?: (sent: number, size: number) => void;
  readonly signal?: AbortSignal;
}

const PUSH_OPTIONS: OptionNames<PushOptions> = {
  name: true,
  version: true,
  runnable: true,
  onProgress: true,
  signal: true,
};

/** How bytes are downloaded into a file. */
export interface PullOptions {
  /** Called as bytes arrive. */
  readonly onProgress?: (received: number, size: number) => void;
  readonly signal?: AbortSignal;
}

const PULL_OPTIONS: OptionNames<PullOptions> = { onProgress: true, signal: true };

/** Which artifacts to list, and how the list is read. */
export interface ArtifactListOptions extends PageOptions {
  readonly name?: string;
  readonly version?: string;
  /** The job that left them in its folder `output`. */
  readonly job?: string;
  readonly state?: ArtifactState;
}

const LIST_OPTIONS: OptionNames<ArtifactListOptions> = {
  ...PAGE_OPTIONS,
  name: true,
  version: true,
  job: true,
  state: true,
};

/** The artifacts of the tenant: programs and files that jobs run, and what jobs left behind. */
export class Artifacts {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /**
   * Uploads a file, by its path, or bytes. What broke off is resumed: large ones go in parts, and those that have arrived are not
   * sent again. Bytes that are there already are not sent at all; bytes that are refused leave nothing behind.
   */
  async push(source: string | Uint8Array, options: PushOptions = {}): Promise<ArtifactView> {
    checkOptions('artifacts.push()', options, PUSH_OPTIONS);
    const { onProgress, signal, ...fields } = options;
    const bytes = typeof source === 'string' ? new FileBytes(source) : new MemoryBytes(source);
    const { sha256, size } = await measure(bytes, signal);
    if (size === 0) {
      const what = typeof source === 'string' ? source : 'The artifact';
      throw new PunctualError('INVALID_REQUEST', `${what} is empty; an artifact has at least one byte.`);
    }
    const announced = await this.#transport.request<AnnouncedArtifact>('POST', '/v1/artifacts', {
      ...{ body: { ...fields, sha256, size }, retry: true },
      ...(signal && { signal }),
    });
    const { id, isNew, uploadUrl, parts } = announced;
    if (uploadUrl === null) return this.#plain(id);
    const address = uploadUrl.slice(uploadUrl.indexOf('/v1/artifacts/'));
    const progress = new Counter(size, onProgress);
    try {
      if (parts === null) await this.#send(address, bytes, { from: 0, to: size }, progress, signal);
      else await this.#sendParts(id, address, bytes, size, parts, progress, signal);
    } catch (error) {
      const code = error instanceof PunctualError ? error.code : null;
      // An earlier try has arrived, and its answer was lost.
      if (code === 'UPLOAD_DONE') return this.#plain(id);
      if (isNew && code !== null && REFUSED.includes(code)) await this.#withdraw(id);
      throw error;
    }
    return this.#plain(id);
  }

  /** The artifacts, newest first, read page by page. */
  list(options: ArtifactListOptions = {}): AsyncGenerator<ArtifactView, void, undefined> {
    checkOptions('artifacts.list()', options, LIST_OPTIONS);
    const { name, version, job, state, ...page } = options;
    return eachItem(this.#transport, '/v1/artifacts', { name, version, job, state }, page);
  }

  /** An artifact by its id, by `name@version`, or by a name for its newest version; with what names it. */
  async get(artifact: string): Promise<ArtifactWithUses> {
    return this.#transport.request('GET', pathOf(await this.#idOf(artifact)));
  }

  /** Downloads the bytes into a file, which is there only when all of them are and fit their hash. */
  async pull(artifact: string, path: string, options: PullOptions = {}): Promise<ArtifactView> {
    checkOptions('artifacts.pull()', options, PULL_OPTIONS);
    const { onProgress, signal } = options;
    const view = await this.get(artifact);
    const draft = `${path}.part-${process.pid}`;
    const progress = new Counter(view.size, onProgress);
    const hash = createHash('sha256');
    try {
      const file = await open(draft, 'wx', 0o600);
      try {
        for await (const piece of await this.read(view.id, signal)) {
          hash.update(piece);
          await file.writeFile(piece);
          progress.add(piece.length);
        }
        await file.sync();
      } finally {
        await file.close();
      }
      if (hash.digest('hex') !== view.sha256)
        throw new PunctualError('ARTIFACT_HASH', `The bytes of artifact ${view.id} came damaged; try again.`);
      await chmod(draft, view.kind === 'elf' || view.kind === 'script' ? 0o755 : 0o644);
      await rename(draft, path);
    } catch (error) {
      await rm(draft, { force: true });
      throw error;
    }
    const { usedBy: _, ...plain } = view;
    return plain;
  }

  /** The bytes of an artifact as they arrive; they are not compared with its hash. */
  async read(artifact: string, signal?: AbortSignal): Promise<AsyncIterable<Uint8Array>> {
    const { read } = this.#transport;
    if (!read) throw new Error('this transport reads no bytes');
    const path = `${pathOf(await this.#idOf(artifact))}/content`;
    return read.call(this.#transport, path, signal ? { signal } : {});
  }

  /** Removes an artifact that no job, schedule, task or definition names. */
  async delete(artifact: string): Promise<void> {
    await this.#transport.request('DELETE', pathOf(await this.#idOf(artifact)));
  }

  async #sendParts(
    id: string,
    address: string,
    bytes: Bytes,
    size: number,
    { count, arrived }: NonNullable<AnnouncedArtifact['parts']>,
    progress: Counter,
    signal: AbortSignal | undefined,
  ): Promise<void> {
    const known = new Set(arrived);
    for (const number of known) progress.add(partBytes(size, number));
    for (let number = 1; number <= count; number += 1) {
      if (known.has(number)) continue;
      const from = (number - 1) * PART_BYTES;
      const part = { from, to: from + partBytes(size, number) };
      await this.#send(`${address}&part=${number}`, bytes, part, progress, signal);
    }
    await this.#transport.request('POST', `${pathOf(id)}/complete`, {
      ...{ retry: true, timeoutMs: COMPLETE_TIMEOUT_MS, longPoll: true },
      ...(signal && { signal }),
    });
  }

  async #send(
    address: string,
    bytes: Bytes,
    { from, to }: Range,
    progress: Counter,
    signal: AbortSignal | undefined,
  ): Promise<void> {
    const sent = progress.sent;
    const open = () => {
      // Another try sends all of it again.
      progress.restart(sent);
      return counted(bytes.open(from, to), progress);
    };
    await this.#transport.request('PUT', address, {
      ...{ bytes: { open, size: to - from }, retry: true, timeoutMs: UPLOAD_TIMEOUT_MS, longPoll: true },
      ...(signal && { signal }),
    });
  }

  /** Removes what was announced in vain. It stays if a job waits for it; then it expires. */
  async #withdraw(id: string): Promise<void> {
    try {
      // Another program may have uploaded the right bytes meanwhile, and then it is refused.
      await this.#transport.request('DELETE', `${pathOf(id)}/announcement`);
    } catch (error) {
      if (!(error instanceof PunctualError)) throw error;
    }
  }

  async #plain(id: string): Promise<ArtifactView> {
    const { usedBy: _, ...plain } = await this.get(id);
    return plain;
  }

  async #idOf(artifact: string): Promise<string> {
    const reference = readReference(artifact);
    if (reference === null) throw notFound(artifact);
    if ('id' in reference) return reference.id;
    const { name, version } = reference;
    const which = version === null ? ({ state: 'ready' } as const) : { version };
    let newest: ArtifactView | undefined;
    // The newest is the one whose bytes came last, whenever it was announced.
    for await (const each of this.list({ name, ...which }))
      if (!newest || (each.readyAt ?? '') > (newest.readyAt ?? '')) newest = each;
    if (!newest) throw notFound(artifact);
    return newest.id;
  }
}

/** From the first byte on, up to the one that is not read any more. */
interface Range {
  readonly from: number;
  readonly to: number;
}

/** Bytes that can be read again and again. */
interface Bytes {
  open(from: number, to: number): Readable;
  all(): AsyncIterable<Uint8Array>;
}

class FileBytes implements Bytes {
  constructor(private readonly path: string) {}

  open(from: number, to: number): Readable {
    return createReadStream(this.path, { start: from, end: to - 1 });
  }

  all(): AsyncIterable<Uint8Array> {
    return createReadStream(this.path);
  }
}

class MemoryBytes implements Bytes {
  constructor(private readonly bytes: Uint8Array) {}

  open(from: number, to: number): Readable {
    return Readable.from([this.bytes.subarray(from, to)]);
  }

  all(): AsyncIterable<Uint8Array> {
    return Readable.from([this.bytes]);
  }
}

async function measure(
  bytes: Bytes,
  signal: AbortSignal | undefined,
): Promise<{ readonly sha256: string; readonly size: number }> {
  const hash = createHash('sha256');
  let size = 0;
  for await (const piece of bytes.all()) {
    signal?.throwIfAborted();
    hash.update(piece);
    size += piece.length;
  }
  return { sha256: hash.digest('hex'), size };
}

/** How many bytes have gone. */
class Counter {
  sent = 0;

  constructor(
    private readonly size: number,
    private readonly tell: ((sent: number, size: number) => void) | undefined,
  ) {}

  add(bytes: number): void {
    this.sent += bytes;
    this.tell?.(this.sent, this.size);
  }

  restart(sent: number): void {
    this.sent = sent;
  }
}

function counted(stream: Readable, progress: Counter): Readable {
  const counting = new Transform({
    transform(piece: Uint8Array, _encoding, done) {
      progress.add(piece.length);
      done(null, piece);
    },
  });
  stream.once('error', (error) => counting.destroy(error));
  counting.once('close', () => stream.destroy());
  return stream.pipe(counting);
}

function pathOf(id: string): string {
  return `/v1/artifacts/${encodeURIComponent(id)}`;
}

function notFound(artifact: string): PunctualError {
  return new PunctualError('ARTIFACT_NOT_FOUND', `There is no artifact ${artifact}.`);
}
