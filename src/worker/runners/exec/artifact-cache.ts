import { createHash, randomUUID } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { type FileHandle, open, readdir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { ELF_HEAD_BYTES, elfProblem } from '../../../core/elf.js';
import { messageOf } from '../../../core/errors.js';
import type { ArtifactAnswer } from '../../../core/wire.js';
import { ExecError } from './exec-error.js';

/** Everybody may read and run a binary, and nobody may change it. */
const MODE = 0o555;
const HASH = /^[0-9a-f]{64}$/;
/** How long a download may bring nothing. */
const IDLE_MS = 30_000;

/** What is known of a file whose bytes were checked. A change of it, by whomever, changes its `ctime`. */
interface Checked {
  readonly size: number;
  readonly stamp: string;
  /** Whether its first bytes were found to be something that can be run here. */
  isRunnable?: boolean;
}

/** A binary in the cache, which stays there until it is given back. */
export interface CachedArtifact {
  readonly path: string;
  giveBack(): void;
}

/** Where bytes come from. */
export type FetchBytes = (
  artifact: ArtifactAnswer,
  signal: AbortSignal,
) => Promise<AsyncIterable<Uint8Array>>;

interface CacheParts {
  readonly folder: string;
  /** The most bytes that are kept of binaries that do not run. */
  readonly maxBytes: number;
  /** The processor, in the words of Node. */
  readonly architecture: string;
  /** Whether scripts may be run. */
  readonly allowScripts: boolean;
  readonly fetchBytes?: FetchBytes;
}

/**
 * Binaries by the hash of their bytes, so that each is downloaded once. Those that were not used for the longest time make room
 * for others. Bytes that are not those of the hash are never run: they are checked when they arrive, when a worker meets them for the first
 * time, and after every change of the file.
 */
export class ArtifactCache {
  readonly #parts: CacheParts;
  readonly #fetch: FetchBytes;
  readonly #checked = new Map<string, Checked>();
  /** In the order of their last use; with the number of runs that need them. */
  readonly #used = new Map<string, { readonly bytes: number; runs: number }>();
  readonly #coming = new Map<string, Promise<void>>();

  constructor(parts: CacheParts) {
    this.#parts = parts;
    this.#fetch = parts.fetchBytes ?? fetchOverHttp;
  }

  /** Learns what an earlier worker has left, and removes what it did not finish. */
  async open(): Promise<void> {
    const { folder } = this.#parts;
    const found: { name: string; bytes: number; at: number }[] = [];
    for (const name of await readdir(folder)) {
      if (!HASH.test(name)) await rm(join(folder, name), { force: true });
      else {
        const { size, atimeMs, mtimeMs } = await stat(join(folder, name));
        found.push({ name, bytes: size, at: Math.max(atimeMs, mtimeMs) });
      }
    }
    found.sort((a, b) => a.at - b.at);
    for (const { name, bytes } of found) this.#used.set(name, { bytes, runs: 0 });
    await this.#makeRoom();
  }

  /** The file of an artifact, downloaded if it is not there. Throws if it is not what it must be, or cannot be run here. */
  async take(artifact: ArtifactAnswer, signal: AbortSignal): Promise<CachedArtifact> {
    const { sha256 } = artifact;
    const { folder } = this.#parts;
    // Whoever comes while it is downloaded waits for that, and downloads it again only if that has failed.
    for (let coming = this.#coming.get(sha256); coming; coming = this.#coming.get(sha256)) {
      await coming.catch(() => undefined);
    }
    const path = join(folder, sha256);
    const work = this.#provide(path, artifact, signal);
    this.#coming.set(sha256, work);
    try {
      await work;
    } finally {
      this.#coming.delete(sha256);
    }
    const entry = this.#use(sha256, artifact.size);
    entry.runs += 1;
    try {
      await this.#mustRun(path, artifact);
      await this.#makeRoom();
    } catch (error) {
      entry.runs -= 1;
      throw error;
    }
    return { path, giveBack: () => this.#giveBack(entry) };
  }

  async #provide(path: string, artifact: ArtifactAnswer, signal: AbortSignal): Promise<void> {
    if (await this.#isGood(path, artifact)) return;
    await this.#download(path, artifact, signal);
  }

  /** Whether the file has the right bytes; one with others is removed. */
  async #isGood(path: string, { sha256, size }: ArtifactAnswer): Promise<boolean> {
    const stamp = await stampOf(path);
    if (stamp === null) return false;
    const known = this.#checked.get(sha256);
    if (known?.stamp === stamp && known.size === size) return true;
    const hash = createHash('sha256');
    for await (const piece of createReadStream(path)) hash.update(piece as Buffer);
    if (hash.digest('hex') === sha256) {
      this.#checked.set(sha256, { size, stamp });
      return true;
    }
    this.#checked.delete(sha256);
    await rm(path, { force: true });
    return false;
  }

  /** Beside its place, and into it when all bytes are there and are the right ones. */
  async #download(path: string, artifact: ArtifactAnswer, signal: AbortSignal): Promise<void> {
    const { sha256, size } = artifact;
    const draft = `${path}.${randomUUID()}`;
    try {
      const found = await writeBytes(draft, size, await this.#fetch(artifact, signal));
      if (found !== sha256) {
        const detail = `The bytes of artifact ${artifact.id} are others than were uploaded: their SHA-256 is ${found}, not ${sha256}.`;
        throw new ExecError('ARTIFACT_CORRUPT', detail);
      }
      await rename(draft, path);
    } catch (error) {
      await rm(draft, { force: true });
      if (error instanceof ExecError) throw error;
      throw new ExecError(
        'ARTIFACT_UNAVAILABLE',
        `Artifact ${artifact.id} cannot be read: ${messageOf(error)}.`,
      );
    }
    const stamp = await stampOf(path);
    if (stamp !== null) this.#checked.set(sha256, { size, stamp });
  }

  /** Looks at the first bytes before it is run, unless it has not changed since: a shell would run a file that the kernel refuses. */
  async #mustRun(path: string, { id, kind, size, sha256 }: ArtifactAnswer): Promise<void> {
    const checked = this.#checked.get(sha256);
    if (checked?.isRunnable) return;
    const { architecture, allowScripts } = this.#parts;
    const refuse = (why: string) => {
      throw new ExecError('NOT_RUNNABLE', `Artifact ${id} cannot be run: ${why}.`, { retryable: false });
    };
    if (kind === 'file') refuse('it is neither a program nor a script');
    const head = await readHead(path);
    if (kind === 'script') {
      if (!allowScripts) refuse('this worker runs no scripts');
      if (head[0] !== 0x23 || head[1] !== 0x21) refuse('it does not begin with #!');
    } else {
      const problem = elfProblem(head, size, architecture);
      if (problem !== null) refuse(problem);
    }
    if (checked) checked.isRunnable = true;
  }

  #use(sha256: string, bytes: number): { readonly bytes: number; runs: number } {
    const entry = this.#used.get(sha256) ?? { bytes, runs: 0 };
    this.#used.delete(sha256);
    this.#used.set(sha256, entry);
    return entry;
  }

  #giveBack(entry: { runs: number }): void {
    entry.runs -= 1;
    void this.#makeRoom().catch(() => undefined);
  }

  async #makeRoom(): Promise<void> {
    let bytes = 0;
    for (const entry of this.#used.values()) bytes += entry.bytes;
    for (const [sha256, entry] of this.#used) {
      if (bytes <= this.#parts.maxBytes) return;
      if (entry.runs > 0 || this.#coming.has(sha256)) continue;
      bytes -= entry.bytes;
      this.#used.delete(sha256);
      this.#checked.delete(sha256);
      await this.#remove(sha256);
    }
  }

  /** Whoever needs it meanwhile waits, and downloads it again: it must not find the file that is about to go. */
  async #remove(sha256: string): Promise<void> {
    const gone = rm(join(this.#parts.folder, sha256), { force: true });
    this.#coming.set(sha256, gone);
    try {
      await gone;
    } finally {
      this.#coming.delete(sha256);
    }
  }
}

/** What changes with every change of a file, and cannot be set by its user; null if there is none. */
async function stampOf(path: string): Promise<string | null> {
  const found = await stat(path, { bigint: true }).catch(() => null);
  return found && `${found.ino}/${found.size}/${found.mtimeNs}/${found.ctimeNs}`;
}

async function readHead(path: string): Promise<Buffer> {
  const file = await open(path, 'r');
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(ELF_HEAD_BYTES), 0, ELF_HEAD_BYTES, 0);
    return buffer.subarray(0, bytesRead);
  } finally {
    await file.close();
  }
}

/** Writes at most so many bytes as there must be, and answers with their hash. */
async function writeBytes(path: string, size: number, pieces: AsyncIterable<Uint8Array>): Promise<string> {
  const hash = createHash('sha256');
  const file = await open(path, 'wx', MODE);
  let bytes = 0;
  try {
    for await (const piece of pieces) {
      bytes += piece.length;
      if (bytes > size) throw new Error(`more than its ${size} bytes came`);
      hash.update(piece);
      await writeWhole(file, piece);
    }
    if (bytes < size) throw new Error(`only ${bytes} of its ${size} bytes came`);
    await file.chmod(MODE);
  } finally {
    await file.close();
  }
  return hash.digest('hex');
}

async function writeWhole(file: FileHandle, piece: Uint8Array): Promise<void> {
  for (let from = 0; from < piece.length; ) from += (await file.write(piece, from)).bytesWritten;
}

async function fetchOverHttp(
  { url, headers }: ArtifactAnswer,
  signal: AbortSignal,
): Promise<AsyncIterable<Uint8Array>> {
  const idle = new AbortController();
  const answer = await fetch(url, { headers, signal: AbortSignal.any([signal, idle.signal]) });
  if (!answer.ok || !answer.body) {
    await answer.body?.cancel();
    throw new Error(`the answer has the status ${answer.status}`);
  }
  return unlessIdle(answer.body as unknown as AsyncIterable<Uint8Array>, idle);
}

async function* unlessIdle(
  pieces: AsyncIterable<Uint8Array>,
  idle: AbortController,
): AsyncGenerator<Uint8Array> {
  const again = () => setTimeout(() => idle.abort(new Error(`nothing came for ${IDLE_MS} ms`)), IDLE_MS);
  let timer = again();
  try {
    for await (const piece of pieces) {
      clearTimeout(timer);
      yield piece;
      timer = again();
    }
  } finally {
    clearTimeout(timer);
  }
}
