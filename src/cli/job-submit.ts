import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { type Command, Option } from 'commander';
import { humanDuration } from '../core/duration.js';
import { messageOf, PunctualError } from '../core/errors.js';
import type { Delivery, Job, JobSubmission, Labels } from '../core/job.js';
import { readJsonText } from '../core/json-reader.js';
import { addAll } from '../core/long-lists.js';
import { callsServer, type ServerCall } from './call.js';
import type { Cli } from './cli.js';
import { requireSuccess, waitForEnd } from './job-follow.js';
import { jobDetails } from './job-text.js';
import { durationMs, durationText, label, moment, wholeNumber } from './option-values.js';
import { Progress, progressBar } from './progress-line.js';

/** `punctual job submit`: one job from options, or many from a file. */
export function addSubmitCommand(job: Command, cli: Cli): void {
  const command = job
    .command('submit')
    .description('submit one job, or many with --file; prints the id of each')
    .option('--task <name>', 'the task to run')
    .option('--payload <json>', 'its input: JSON, @file, or - for stdin')
    .option('--delay <duration>', 'start after this time, such as 30s', durationText)
    .option('--run-at <moment>', 'start at this moment, such as 2026-12-24T18:00:00Z', moment)
    .option('--queue <name>', 'the queue to wait in')
    .option('--priority <n>', 'from 1 to 9, 9 first', wholeNumber(1, 9))
    .option('--key <key>', 'the same key again gives the same job')
    .option('--timeout <duration>', 'longest time of one attempt', durationText)
    .option('--max-attempts <n>', 'attempts in all, the first one included', wholeNumber(1, 1_000))
    .option(
      '--concurrency-key <key>',
      'runs one after another with jobs of the same key, or as many at once as the queue allows',
    )
    .option('--requires <label>', 'a label the worker must have, such as region=eu; repeatable', label)
    .option('--start-before <moment>', 'fail if it could not start by then', moment)
    .option('--hold', 'wait until it is released')
    .addOption(
      new Option('--delivery <rule>', 'what happens when a worker is lost').choices([
        'at-least-once',
        'at-most-once',
      ]),
    )
    .option('--wait [duration]', 'wait for its end, at most this long', durationMs)
    .option('--file <path>', 'submit the jobs of a file with one JSON document per line; - for stdin');
  callsServer<SubmitOptions>(cli, command, async (call) => {
    if (call.options.file === undefined) return submitOne(call);
    refuseBesideFile(call.options);
    return submitFile(call, call.options.file);
  });
}

async function submitOne({ cli, api, output, options }: ServerCall<SubmitOptions>): Promise<void> {
  const body = submissionOf(options, await readPayload(cli, options.payload));
  // A lost answer leaves open whether the job exists; only a key makes asking again harmless.
  const retry = body.key !== undefined;
  const submitted = await api.request<Job>('POST', '/v1/jobs', { body, signal: cli.interrupted, retry });
  if (options.wait === undefined) {
    output.document(submitted, () => `${submitted.id}\n`);
    return;
  }
  const limit = options.wait === true ? null : options.wait;
  if (!output.json) output.note(`submitted ${submitted.id}`);
  const { job, timedOut } = await waitForEnd(cli, api, submitted, limit).catch((error) => {
    if (cli.interrupted.aborted) output.note(`The job goes on: punctual job watch ${submitted.id}`);
    throw error;
  });
  output.document(job, () => jobDetails(output, job));
  if (timedOut) {
    throw new PunctualError(
      'TIMED_OUT',
      `Job ${job.id} has not ended within ${humanDuration(limit ?? 0)}; it is ${job.state}.`,
    );
  }
  requireSuccess(job);
}

/** A file says everything about its jobs, so an option about one job beside it is a mistake. */
function refuseBesideFile(options: SubmitOptions): void {
  const {
    file: _file,
    url: _url,
    apiKey: _key,
    tenant: _tenant,
    json: _json,
    ...rest
  } = options as SubmitOptions & Record<string, unknown>;
  const other = Object.keys(rest)[0];
  if (other === undefined) return;
  const flag = `--${other.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
  throw new PunctualError(
    'USAGE',
    flag === '--wait'
      ? '--wait cannot be combined with --file: submit first, then follow the jobs with `punctual job watch`.'
      : `${flag} cannot be combined with --file: write it into the lines of the file.`,
  );
}

async function submitFile({ cli, api, output }: ServerCall<SubmitOptions>, path: string): Promise<void> {
  const jobs = parseJobLines(await readInput(cli, path));
  const chunks = chunkJobs(jobs, BULK_LIMITS);
  const progress = new Progress({ screen: cli.stderr, now: cli.now });
  const ids: string[] = [];
  try {
    for (const chunk of chunks) {
      if (chunks.length > 1) {
        const count = `${ids.length} of ${jobs.length} jobs submitted`;
        progress.show(`${progressBar(ids.length / jobs.length, 30)} ${count}`, count);
      }
      const answer = await api.request<{ ids: string[] }>('POST', '/v1/jobs/bulk', {
        body: { jobs: chunk },
        signal: cli.interrupted,
      });
      addAll(ids, answer.ids);
    }
  } catch (error) {
    progress.clear();
    // Whole chunks are stored or not, so the ids so far are exactly the jobs that exist.
    if (ids.length > 0) {
      output.document({ ids }, () => ids.map((id) => `${id}\n`).join(''));
      output.note(
        `The first ${ids.length} of ${jobs.length} jobs were submitted before: ${messageOf(error)}`,
      );
    }
    throw error;
  }
  progress.clear();
  output.document({ ids }, () => ids.map((id) => `${id}\n`).join(''));
}

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
async function readInput(cli: Cli, path: string): Promise<string> {
  if (path === '-') return text(cli.stdin);
  try {
    return await readFile(resolve(cli.folder, path), 'utf8');
  } catch (error) {
    throw new PunctualError('USAGE', `The file cannot be read: ${messageOf(error)}.`, { cause: error });
  }
}

/** Limits of one bulk call; the bytes stay below the server's so that the frame around the jobs fits too. */
interface ChunkLimits {
  readonly jobs: number;
  readonly bytes: number;
}

const BULK_LIMITS: ChunkLimits = { jobs: 10_000, bytes: 15 * 1024 * 1024 };

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
