import { type Command, Option } from 'commander';
import { repeatableWith } from '../client/idempotency-key.js';
import { inChunks, isRepeatable } from '../client/task-submission.js';
import { type Duration, humanDuration } from '../core/duration.js';
import { messageOf, PunctualError } from '../core/errors.js';
import type { Delivery, ExecTarget, HttpTarget, JobSubmission, Labels, SubmittedJob } from '../core/job.js';
import { KEY_MODES, type KeyMode } from '../core/keys.js';
import { addAll } from '../core/long-lists.js';
import type { BulkAnswer } from '../core/wire.js';
import { callsServer, flagOf, type ServerCall, tenantFlag } from './call.js';
import type { Cli } from './cli.js';
import { addExecOptions, type ExecOptions, execTargetOf } from './exec-options.js';
import { addHttpOptions, type HttpOptions, httpTargetOf } from './http-options.js';
import { nameInputs } from './input-names.js';
import { requireSuccess, waitForEnd } from './job-follow.js';
import { readProgram } from './job-program.js';
import { jobDetails } from './job-text.js';
import { isMalformed, mustHaveOneStdin, notJson, readInput, readJson, readPayload } from './json-input.js';
import { likelyTask } from './likely-task.js';
import { durationMs, durationText, given, label, moment, wholeNumber } from './option-values.js';
import { type Output, plural } from './output.js';
import { Progress, progressBar } from './progress-line.js';

/** `punctual job submit`: one job from options, or many from a file. */
export function addSubmitCommand(job: Command, cli: Cli): void {
  const command = job
    .command('submit')
    .description('submit one job, or many with --file; prints the id of each')
    .option('--task <name>', 'the task to run')
    .option('--payload <json>', 'its input: JSON, @file, or - for stdin');
  addHttpOptions(command);
  addExecOptions(command);
  command
    .option('--delay <duration>', 'start after this time, such as 30s', durationText)
    .option('--run-at <moment>', 'start at this moment, such as 2026-12-24T18:00:00Z', moment)
    .option('--queue <name>', 'the queue to wait in')
    .option('--priority <n>', 'from 1 to 9, 9 first', wholeNumber(1, 9))
    .option('--key <key>', 'the same key again gives the same job')
    .addOption(
      new Option('--key-mode <mode>', 'what happens if the key has a job already').choices(KEY_MODES),
    )
    .option('--key-window <duration>', 'the window of the modes debounce and throttle', durationText)
    .option('--timeout <duration>', 'the longest time an attempt may take', durationText)
    .option('--max-attempts <n>', 'attempts in all, the first one included', wholeNumber(1, 1_000))
    .option(
      '--concurrency-key <key>',
      'jobs of the same key run one after another, or as many at once as the queue allows',
    )
    .option('--requires <label>', 'a label the worker must have, such as region=eu; repeatable', label)
    .option('--start-before <moment>', 'fail if it has not started by then', moment)
    .option('--hold', 'do not start it before it is released')
    .addOption(
      new Option('--delivery <rule>', 'whether a lost attempt is repeated').choices([
        'at-least-once',
        'at-most-once',
      ]),
    )
    .option(
      '--idempotency-key <key>',
      'the same command with the same key within 24 hours submits nothing more, and prints the same ids',
    )
    .option('--wait [duration]', 'wait until it has ended, at most this long', durationMs)
    .option('--file <path>', 'submit the jobs of a file with one JSON document per line; - for stdin');
  callsServer<SubmitOptions>(cli, command, async (call) => {
    if (call.options.file === undefined) return submitOne(call);
    refuseBesideFile(call.options);
    return submitFile(call, call.options.file);
  });
}

async function submitOne(call: ServerCall<SubmitOptions>): Promise<void> {
  const { cli, api, output, options } = call;
  mustHaveOneStdin(options.payload, options.data);
  const payload = await readPayload(cli, options.payload);
  const target = (await httpTargetOf(cli, options)) ?? execTargetOf(options);
  const body = submissionOf(options, payload, target);
  // If the answer is lost, the job may exist; with a key that its job keeps the request can be repeated safely.
  const retry = isRepeatable(body);
  const submitted = await api.request<SubmittedJob>('POST', '/v1/jobs', {
    body,
    signal: cli.interrupted,
    retry,
    ...repeatableWith(options.idempotencyKey, undefined),
  });
  noteRepetition(output, submitted);
  if (options.wait === undefined) {
    output.document(submitted, () => `${submitted.id}\n`);
    return noteUnknownTask(call, submitted);
  }
  const limit = options.wait === true ? null : options.wait;
  if (!output.json) output.note(`submitted ${submitted.id}`);
  await noteUnknownTask(call, submitted);
  const { job, timedOut, reason } = await waitForEnd(cli, api, submitted, limit).catch((error) => {
    if (cli.interrupted.aborted)
      output.note(`The job goes on: punctual job watch ${submitted.id}${tenantFlag(options)}`);
    throw error;
  });
  const facts = output.json ? null : await readProgram(api, job, cli.interrupted);
  output.document(job, () => jobDetails(output, job, facts));
  if (timedOut) {
    throw new PunctualError(
      'TIMED_OUT',
      `Job ${job.id} has not ended within ${humanDuration(limit ?? 0)}; it is ${job.state}${reason === null ? '.' : `: ${reason}`}`,
    );
  }
  requireSuccess(job);
}

/** Tells a person whose job may wait for ever that its task is probably misspelt. The job is stored all the same. */
async function noteUnknownTask(
  { cli, api, output }: ServerCall<SubmitOptions>,
  { task, state }: SubmittedJob,
): Promise<void> {
  if (output.json || !cli.stderr.isTTY || task === null || state !== 'pending') return;
  const meant = await likelyTask(api, task, cli.interrupted);
  if (meant === null) return;
  output.note(`No live worker has the task ${task}, and it is not defined. Did you mean ${meant}?`);
}

/** Says what became of a submission whose key had a job already; with --json the fields of the answer say it. */
function noteRepetition(output: Output, { key, id, repeated, replaced, differs }: SubmittedJob): void {
  if (output.json || !repeated) return;
  const fields = differs.join(', ') || 'nothing';
  const became = replaced
    ? `it took from this submission: ${fields}`
    : `this submission differs in: ${fields}`;
  output.note(`Job ${id} has the key ${key} already; ${became}.`);
}

/** The lines of a file hold all options of their jobs, so other options beside `--file` are a mistake. */
function refuseBesideFile(options: SubmitOptions): void {
  const {
    file: _file,
    url: _url,
    apiKey: _key,
    tenant: _tenant,
    json: _json,
    idempotencyKey: _idempotencyKey,
    ...rest
  } = options as SubmitOptions & Record<string, unknown>;
  const other = Object.keys(rest)[0];
  if (other === undefined) return;
  const flag = flagOf(other);
  throw new PunctualError(
    'USAGE',
    flag === '--wait'
      ? '--wait cannot be combined with --file: submit first, then follow the jobs with `punctual job watch`.'
      : `${flag} cannot be combined with --file: write it into the lines of the file.`,
  );
}

async function submitFile(
  { cli, api, output, options }: ServerCall<SubmitOptions>,
  path: string,
): Promise<void> {
  const source = await readInput(cli, path);
  const jobs = parseJobLines(source);
  const ranges = [...inChunks(jobs.map((job) => Buffer.byteLength(JSON.stringify(job)) + 1))];
  const progress = new Progress({ screen: cli.stderr, now: cli.now });
  const ids: string[] = [];
  let repetitions = 0;
  try {
    for (const [part, [from, to]] of ranges.entries()) {
      if (ranges.length > 1) {
        const count = `${ids.length} of ${plural(jobs.length, 'job')} submitted`;
        progress.show(`${progressBar(ids.length / jobs.length, 30)} ${count}`, count);
      }
      const request = {
        ...{ body: { jobs: jobs.slice(from, to) }, signal: cli.interrupted },
        ...repeatableWith(options.idempotencyKey, undefined, part),
      };
      const answer = await api.request<BulkAnswer>('POST', '/v1/jobs/bulk', request).catch((error) => {
        throw nameInputs(error, (pointer) => lineOf(source, from, pointer));
      });
      addAll(ids, answer.ids);
      // A node of an older version says nothing about repetitions.
      repetitions += answer.repetitions?.length ?? 0;
    }
  } catch (error) {
    progress.clear();
    // Each request is stored as a whole or not at all, so these ids are the jobs that exist.
    if (ids.length > 0) {
      output.document({ ids }, () => ids.map((id) => `${id}\n`).join(''));
      output.note(
        `The first ${ids.length} of ${jobs.length} jobs were submitted before this error: ${messageOf(error)}`,
      );
    }
    throw error;
  }
  progress.clear();
  output.document({ ids }, () => ids.map((id) => `${id}\n`).join(''));
  if (repetitions > 0) output.note(`${repetitions} of ${jobs.length} had keys that have jobs already.`);
}

/** The line of the file that a JSON pointer into the request leads to; the request began with the job at `from`. */
function lineOf(source: string, from: number, pointer: string): string | null {
  const match = /^\/jobs\/(\d+)(.*)$/.exec(pointer);
  if (!match) return null;
  const lines = [...source.split('\n').entries()].filter(([, line]) => line.trim() !== '');
  const index = lines[from + Number(match[1])]?.[0];
  if (index === undefined) return null;
  return `line ${index + 1} of the file${match[2] === '' ? '' : ` (${match[2]})`}`;
}

export /** The options of `punctual job submit`. */
interface SubmitOptions extends HttpOptions, ExecOptions {
  readonly task?: string;
  readonly payload?: string;
  readonly file?: string;
  readonly delay?: Duration;
  readonly runAt?: string;
  readonly queue?: string;
  readonly priority?: number;
  readonly key?: string;
  readonly keyMode?: KeyMode;
  readonly keyWindow?: Duration;
  readonly timeout?: Duration;
  readonly maxAttempts?: number;
  readonly concurrencyKey?: string;
  readonly requires?: Labels;
  readonly startBefore?: string;
  readonly hold?: boolean;
  readonly delivery?: Delivery;
  readonly idempotencyKey?: string;
  readonly wait?: number | true;
}

/** The submission that the options describe. */
export function submissionOf(
  options: SubmitOptions,
  payload: unknown,
  target?: HttpTarget | ExecTarget,
): JobSubmission {
  if (options.task === undefined && target === undefined) {
    throw new PunctualError(
      'USAGE',
      'Name the task to run with --task, a URL to call with --http, a binary to run with --exec, or jobs in a file with --file.',
    );
  }
  const isProgram = options.exec !== undefined || options.command !== undefined;
  if ([options.task !== undefined, options.http !== undefined, isProgram].filter(Boolean).length > 1) {
    throw new PunctualError('USAGE', 'Give one of --task, --http, --exec and --command.');
  }
  if (options.delay !== undefined && options.runAt !== undefined) {
    throw new PunctualError('USAGE', 'Give --delay or --run-at, not both.');
  }
  return {
    ...given(options, ['task', 'delay', 'runAt', 'queue', 'priority', 'key', 'timeout', 'concurrencyKey']),
    ...given(options, ['requires', 'startBefore', 'delivery', 'hold', 'keyMode', 'keyWindow']),
    ...(options.maxAttempts !== undefined && { retry: { maxAttempts: options.maxAttempts } }),
    ...(payload !== undefined && { payload }),
    ...(target && { target }),
  };
}

/** The jobs of a file with one JSON document per line; nothing is sent before every line has been read. */
export function parseJobLines(source: string): unknown[] {
  const jobs: unknown[] = [];
  for (const [index, line] of source.split('\n').entries()) {
    if (line.trim() === '') continue;
    try {
      jobs.push(readJson(line));
    } catch (error) {
      if (isMalformed(error)) throw notJson(`Line ${index + 1}`, error);
      throw nameInputs(error, (pointer) => `line ${index + 1} of the file (${pointer})`);
    }
  }
  if (jobs.length === 0)
    throw new PunctualError('USAGE', 'The file holds no jobs: write one JSON document per line.');
  return jobs;
}
