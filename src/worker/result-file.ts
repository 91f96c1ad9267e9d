import {
  closeSync,
  fdatasync,
  fsyncSync,
  openSync,
  readFileSync,
  renameSync,
  writeSync,
  write as writeToFile,
} from 'node:fs';
import { promisify } from 'node:util';
import { crc32 } from 'node:zlib';
import type { AttemptResult, FencedJob, SessionKey } from '../core/wire.js';

/** One line of the file. */
export type ResultRecord =
  /** A program of an older version leaves the shard out, which means 0. */
  | ({ readonly kind: 'session' } & Pick<SessionKey, 'workerId'> & Partial<SessionKey>)
  | { readonly kind: 'kept'; readonly result: AttemptResult }
  | { readonly kind: 'answered'; readonly jobId: string; readonly fence: number };

/** The key of an attempt in maps. */
export function attemptKey({ jobId, fence }: FencedJob): string {
  return `${jobId}/${fence}`;
}

/** Encodes records as lines, each with a checksum. */
export function encodeRecords(records: readonly ResultRecord[]): Buffer {
  return Buffer.from(
    records
      .map((record) => {
        const json = JSON.stringify(record);
        return `${crc32(json).toString(16).padStart(8, '0')} ${json}\n`;
      })
      .join(''),
  );
}

/**
 * Decodes lines. A line that a crash cut off or a disk corrupted fails its checksum and is skipped; the lines after
 * it still count.
 */
export function decodeRecords(text: string): ResultRecord[] {
  return text.split('\n').flatMap((line) => {
    const json = line.slice(9);
    if (line[8] !== ' ' || Number.parseInt(line.slice(0, 8), 16) !== crc32(json)) return [];
    return [JSON.parse(json) as ResultRecord];
  });
}

/** A file to which lines are appended, and which is rewritten when most of it is outdated. */
export class ResultFile {
  readonly #path: string;
  #descriptor: number;
  #bytes: number;

  private constructor(path: string, descriptor: number, bytes: number) {
    this.#path = path;
    this.#descriptor = descriptor;
    this.#bytes = bytes;
  }

  /** Opens the file and reads its records. */
  static open(path: string): { file: ResultFile; records: ResultRecord[] } {
    const descriptor = openToAppend(path);
    const text = readFileSync(path, 'utf8');
    return { file: new ResultFile(path, descriptor, Buffer.byteLength(text)), records: decodeRecords(text) };
  }

  /** The size of the file. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Appends records; resolves when they are synced to the disk. */
  async append(lines: Buffer): Promise<void> {
    const bytes = afterNewline(lines);
    this.#bytes += bytes.length;
    for (let offset = 0; offset < bytes.length; ) {
      offset += (await write(this.#descriptor, bytes, offset)).bytesWritten;
    }
    await sync(this.#descriptor);
  }

  /** Appends and syncs records before it returns, for use when the process exits. */
  appendNow(lines: Buffer): void {
    writeAll(this.#descriptor, afterNewline(lines));
    fsyncSync(this.#descriptor);
  }

  /** Replaces the whole content; after a crash the file holds either the old or the new content. */
  replace(lines: Buffer): void {
    const draft = `${this.#path}.new`;
    const descriptor = openSync(draft, 'w', 0o600);
    try {
      writeAll(descriptor, lines);
      fsyncSync(descriptor);
    } finally {
      closeSync(descriptor);
    }
    renameSync(draft, this.#path);
    closeSync(this.#descriptor);
    this.#descriptor = openToAppend(this.#path);
    this.#bytes = lines.length;
  }

  close(): void {
    closeSync(this.#descriptor);
  }
}

const write = promisify(writeToFile);
const sync = promisify(fdatasync);

function openToAppend(path: string): number {
  return openSync(path, 'a', 0o600);
}

/** A newline ends a line that an earlier failure may have cut off, so that it cannot absorb the next one. */
function afterNewline(lines: Buffer): Buffer {
  return Buffer.concat([Buffer.from('\n'), lines]);
}

function writeAll(descriptor: number, bytes: Buffer): void {
  for (let offset = 0; offset < bytes.length; ) offset += writeSync(descriptor, bytes, offset);
}
