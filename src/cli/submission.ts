import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { messageOf, PunctualError } from '../core/errors.js';
import type { Delivery, JobSubmission, Labels } from '../core/job.js';
import { readJsonText } from '../core/json-reader.js';
import type { Cli } from './cli.js';

/** From the options of `job submit` to what the API takes. */

/** Deeper than any server takes; how deep it may be is the server's to say. */
const MOST_DEPTH = 10_000;

export interface SubmitOptions {
  readonly task?: string;
  readonly payload?: string;
  readonly file?: string;
  readonly delay?: string;
  readonly runAt?: string;
  readonly queue?: string;
  readonly priority?: number;
  readonly key?: string;
  readonly timeout?: string;
  readonly maxAttempts?: number;
  readonly concurrencyKey?: string;
  readonly requires?: Labels;
  readonly startBefore?: string;
  readonly hold?: boolean;
  readonly delivery?: Delivery;
  readonly wait?: number | true;
}

/** One job from the options; what was not given is left to the server's defaults. */
export function submissionOf(options: SubmitOptions, payload: unknown): JobSubmission {
  if (options.task === undefined) {
    throw new PunctualError('USAGE', 'Name the task to run with --task, or jobs in a file with --file.');
  }
  const { task, delay, runAt, queue, priority, key, timeout, concurrencyKey } = options;
  const { requires, startBefore, delivery, hold, maxAttempts } = options;
  if (delay !== undefined && runAt !== undefined) {
    throw new PunctualError('USAGE', 'Give --delay or --run-at, not both.');
  }
  return {
    task,
    ...(payload !== undefined && { payload }),
    ...(delay !== undefined && { delay }),
    ...(runAt !== undefined && { runAt }),
    ...(queue !== undefined && { queue }),
    ...(priority !== undefined && { priority }),
    ...(key !== undefined && { key }),
    ...(timeout !== undefined && { timeout }),
    ...(maxAttempts !== undefined && { retry: { maxAttempts } }),
    ...(concurrencyKey !== undefined && { concurrencyKey }),
    ...(requires !== undefined && { requires }),
    ...(startBefore !== undefined && { startBefore }),
    ...(delivery !== undefined && { delivery }),
    ...(hold === true && { hold }),
  };
}

/** The payload: JSON as it stands, `@file`, or `-` for stdin. */
export async function readPayload(cli: Cli, value: string | undefined): Promise<unknown> {
  if (value === undefined) return undefined;
  const fromFile = value.startsWith('@') ? value.slice(1) : value === '-' ? '-' : null;
  const source = fromFile === null ? value : await readInput(cli, fromFile);
  try {
    return readOwnJson(source);
  } catch (error) {
    const where = fromFile === null ? '--payload' : fromFile === '-' ? 'stdin' : fromFile;
    throw new PunctualError(
      'MALFORMED_JSON',
      `The payload (${where}) is not valid JSON: ${messageOf(error)}.`,
    );
  }
}

/** Numbers that would reach the server as others are refused here, where they are known. */
function readOwnJson(source: string): unknown {
  return readJsonText(Buffer.from(source), { maxDepth: MOST_DEPTH, allowProto: true, anySize: true });
}

/** The text of a file, or of stdin for `-`. */
export async function readInput(cli: Cli, path: string): Promise<string> {
  if (path === '-') return text(cli.stdin);
  try {
    return await readFile(resolve(cli.folder, path), 'utf8');
  } catch (error) {
    throw new PunctualError('USAGE', `The file cannot be read: ${messageOf(error)}.`, { cause: error });
  }
}

/** Limits of one bulk call; the bytes stay below the server's so that the frame around the jobs fits too. */
export interface ChunkLimits {
  readonly jobs: number;
  readonly bytes: number;
}

export const BULK_LIMITS: ChunkLimits = { jobs: 10_000, bytes: 15 * 1024 * 1024 };

/** The jobs of a file with one JSON document per line; nothing is sent before every line has been read. */
export function parseJobLines(source: string): unknown[] {
  const jobs: unknown[] = [];
  for (const [index, line] of source.split('\n').entries()) {
    if (line.trim() === '') continue;
    try {
      jobs.push(readOwnJson(line));
    } catch (error) {
      throw new PunctualError('MALFORMED_JSON', `Line ${index + 1} is not valid JSON: ${messageOf(error)}.`);
    }
  }
  if (jobs.length === 0)
    throw new PunctualError('USAGE', 'The file holds no jobs: write one JSON document per line.');
  return jobs;
}

/** Jobs in as few bulk calls as the limits allow, in order. */
export function chunkJobs(jobs: readonly unknown[], limits: ChunkLimits): unknown[][] {
  const chunks: unknown[][] = [];
  let bytes = 0;
  for (const job of jobs) {
    const size = Buffer.byteLength(JSON.stringify(job)) + 1;
    const current = chunks.at(-1);
    if (!current || current.length >= limits.jobs || bytes + size > limits.bytes) {
      chunks.push([job]);
      bytes = size;
    } else {
      current.push(job);
      bytes += size;
    }
  }
  return chunks;
}
