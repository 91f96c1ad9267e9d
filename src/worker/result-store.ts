import { mkdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { messageOf, PunctualError } from '../core/errors.js';
import type { AttemptResult, FencedJob, SessionKey } from '../core/wire.js';
import { type FolderHolder, lockFolder } from '../host/folder-lock.js';
import { attemptKey, encodeRecords, ResultFile, type ResultRecord } from './result-file.js';

const FILE = 'results';
/** The most that is kept, so that a scheduler that is away for days does not fill the disk. */
const MAX_BYTES = 256 * 1024 * 1024;
/** A file below this size is not rewritten. */
const SMALL_BYTES = 64 * 1024;

interface Kept {
  readonly result: AttemptResult;
  /** Its size in the file. */
  readonly bytes: number;
  /** Whether it is synced to the disk. */
  safe: boolean;
}

/** Another worker holds the folder; it may release it soon. */
export class FolderInUseError extends PunctualError {
  constructor(folder: string, { pid }: FolderHolder) {
    const who = pid === process.pid ? 'another worker of this process' : `the worker in process ${pid}`;
    super(
      'CONFIGURATION',
      `The folder ${folder} is in use by ${who}; results wait in memory until it is free. Each worker needs a folder of its own.`,
    );
    this.name = 'FolderInUseError';
  }
}

/**
 * Results on disk that no leader has answered yet, so that they survive the end of the process. One worker at a time
 * holds the folder. The file also names the session that the results belong to: the worker that opens the folder next
 * knows that this session is dead.
 */
export class ResultStore {
  /** The session of the previous holder of the folder; null when there was none, or when it left in order. */
  readonly previousSession: SessionKey | null;
  /** The results that the previous holder could not deliver. */
  readonly left: readonly AttemptResult[];
  readonly #file: ResultFile;
  readonly #unlock: () => void;
  readonly #maxBytes: number;
  readonly #kept = new Map<string, Kept>();
  #keptBytes = 0;
  /** Records that are not in the file yet. */
  #unwritten: ResultRecord[] = [];
  #session: SessionKey | null;

  private constructor(
    file: ResultFile,
    records: readonly ResultRecord[],
    unlock: () => void,
    maxBytes: number,
  ) {
    this.#file = file;
    this.#unlock = unlock;
    this.#maxBytes = maxBytes;
    let session: SessionKey | null = null;
    for (const record of records) {
      if (record.kind === 'session') session = { workerId: record.workerId, shard: record.shard ?? 0 };
      else if (record.kind === 'kept') this.#add(record.result, encodeRecords([record]).length, true);
      else this.#remove(record);
    }
    this.previousSession = session;
    this.#session = session;
    this.left = Array.from(this.#kept.values(), ({ result }) => result);
  }

  /** Opens a folder and creates it if necessary; throws when another worker holds it or it cannot be written. */
  static open(path: string, maxBytes = MAX_BYTES): ResultStore {
    const folder = resolve(path);
    let unlock: (() => void) | null = null;
    try {
      mkdirSync(folder, { recursive: true, mode: 0o700 });
      unlock = lockFolder(folder, 'lock.', (holder) => new FolderInUseError(folder, holder));
      const { file, records } = ResultFile.open(join(folder, FILE));
      return new ResultStore(file, records, unlock, maxBytes);
    } catch (error) {
      unlock?.();
      if (error instanceof PunctualError) throw error;
      const detail = `Results cannot be kept in ${folder}: ${messageOf(error)}. Name a folder that can be written.`;
      throw new PunctualError('CONFIGURATION', detail, { cause: error });
    }
  }

  /** How many results are synced to the disk. */
  get size(): number {
    let safe = 0;
    for (const kept of this.#kept.values()) if (kept.safe) safe += 1;
    return safe;
  }

  /** Sets the session that further results belong to; the next `tidy` writes it to the file. */
  noteSession(session: SessionKey): void {
    this.#session = session;
    this.#unwritten.push({ kind: 'session', ...session });
  }

  /** Drops a result that was answered; the next `tidy` writes that to the file. */
  release(attempt: FencedJob): void {
    if (this.#kept.size === 0 || !this.#remove(attempt)) return;
    this.#unwritten.push({ kind: 'answered', jobId: attempt.jobId, fence: attempt.fence });
  }

  /**
   * Writes which results were answered. If a crash loses that, a result is reported twice, which does no harm. Must
   * not run concurrently with itself or with `keep`.
   */
  async tidy(): Promise<void> {
    if (this.#unwritten.length === 0) return;
    const isMostlyOld = this.#file.bytes > SMALL_BYTES + 2 * this.#keptBytes;
    const isLastAnswered = this.#kept.size === 0 && this.#unwritten.at(-1)!.kind === 'answered';
    if (isMostlyOld || isLastAnswered) this.#rewrite();
    else await this.#file.append(encodeRecords(this.#unwritten.splice(0)));
  }

  /** Writes the results that are not kept yet; resolves when they are synced to the disk, and throws when they are not. */
  async keep(results: Iterable<AttemptResult>): Promise<void> {
    const { lines, added, refused } = this.#take(results);
    try {
      if (lines.length > 0) await this.#file.append(lines);
      for (const kept of added) kept.safe = true;
    } catch (error) {
      for (const { result } of added) this.#remove(result);
      throw error;
    }
    if (refused > 0) {
      throw new PunctualError(
        'INTERNAL',
        `${refused} results are kept in memory only: those on disk take up all the space they may use.`,
      );
    }
  }

  /** Writes and syncs everything before it returns, for use when the process exits. */
  keepNow(results: Iterable<AttemptResult>): void {
    const begun = [...this.#kept.values()].filter(({ safe }) => !safe);
    const { lines } = this.#take(results);
    const records = begun.map(({ result }): ResultRecord => ({ kind: 'kept', result }));
    const all = Buffer.concat([encodeRecords([...this.#unwritten, ...records]), lines]);
    if (all.length > 0) this.#file.appendNow(all);
  }

  /** Releases the folder. A worker that left in order leaves no session behind. */
  close(end: 'in-order' | 'at-once'): void {
    if (end === 'in-order' && this.#kept.size === 0) this.#session = null;
    this.#rewrite();
    this.#file.close();
    this.#unlock();
  }

  #rewrite(): void {
    const kept = Array.from(this.#kept.values(), ({ result }): ResultRecord => ({ kind: 'kept', result }));
    const session = this.#session;
    this.#unwritten = [];
    this.#file.replace(encodeRecords(session === null ? kept : [{ kind: 'session', ...session }, ...kept]));
  }

  #take(results: Iterable<AttemptResult>): { lines: Buffer; added: Kept[]; refused: number } {
    const lines: Buffer[] = [];
    const added: Kept[] = [];
    let refused = 0;
    for (const result of results) {
      if (this.#kept.has(attemptKey(result))) continue;
      const line = encodeRecords([{ kind: 'kept', result }]);
      if (this.#keptBytes + line.length > this.#maxBytes) refused += 1;
      else {
        added.push(this.#add(result, line.length, false));
        lines.push(line);
      }
    }
    return { lines: Buffer.concat(lines), added, refused };
  }

  #add(result: AttemptResult, bytes: number, safe: boolean): Kept {
    const kept = { result, bytes, safe };
    this.#kept.set(attemptKey(result), kept);
    this.#keptBytes += bytes;
    return kept;
  }

  #remove(attempt: FencedJob): boolean {
    const key = attemptKey(attempt);
    const found = this.#kept.get(key);
    if (!found) return false;
    this.#kept.delete(key);
    this.#keptBytes -= found.bytes;
    return true;
  }
}
