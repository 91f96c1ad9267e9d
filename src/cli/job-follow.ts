import type { Command } from 'commander';
import type { ApiClient } from '../client/api-client.js';
import { formatDuration, humanDuration } from '../core/duration.js';
import { PunctualError } from '../core/errors.js';
import { isEnded, type Job } from '../core/job.js';
import { printable, type Style } from '../core/paint.js';
import type { LogLevel, Page, StoredLogLine, Why } from '../core/wire.js';
import { callsServer } from './call.js';
import type { Cli } from './cli.js';
import { EventNews } from './event-news.js';
import { errorText, progressText, workOf } from './job-text.js';
import type { Output } from './output.js';
import { Progress, progressBar } from './progress-line.js';

/** How long one request waits for the end of the job; progress is shown after each. */
const STEP_MS = 500;
const PLAIN_EVERY_MS = 10_000;

/** Yields the job whenever something happens to it, or every half second if nobody tells that, until it has ended. */
export async function* followJob(api: ApiClient, first: Job, signal: AbortSignal): AsyncGenerator<Job> {
  let job = first;
  yield job;
  if (isEnded(job.state)) return;
  const news = new EventNews(api, { job: job.id }, signal);
  try {
    while (!isEnded(job.state)) {
      const waitMs = (await news.next()) ? 0 : STEP_MS;
      job = await readJob(api, job.id, signal, waitMs);
      yield job;
    }
  } finally {
    news.close();
  }
}

/** Reads one job, after waiting up to `waitMs` for its end. */
export async function readJob(api: ApiClient, id: string, signal: AbortSignal, waitMs = 0): Promise<Job> {
  const query = waitMs > 0 ? `?wait=${formatDuration(waitMs)}` : '';
  return api.request<Job>('GET', `/v1/jobs/${encodeURIComponent(id)}${query}`, {
    signal,
    longPoll: waitMs > 0,
  });
}

/** Throws if the job did not succeed, which gives the command an exit code of its own. */
export function requireSuccess(job: Job): void {
  if (job.state === 'succeeded') return;
  const reason = job.error ? `: ${errorText(job)}` : '';
  throw new PunctualError('JOB_UNSUCCESSFUL', `Job ${job.id} ended as ${job.state}${reason}`);
}

/**
 * Waits for the end of a job and shows its progress on stderr. When the time is up, the job is returned as it is.
 */
export async function waitForEnd(
  cli: Cli,
  api: ApiClient,
  first: Job,
  timeoutMs: number | null,
): Promise<{ readonly job: Job; readonly timedOut: boolean; readonly reason: string | null }> {
  const progress = new Progress({ screen: cli.stderr, now: cli.now, plainEveryMs: PLAIN_EVERY_MS });
  const waiting = new WaitingReason(api, cli);
  const startedAt = cli.now();
  const remaining = () => (timeoutMs === null ? Number.POSITIVE_INFINITY : startedAt + timeoutMs - cli.now());
  let job = first;
  let told: string | null = null;
  try {
    while (!isEnded(job.state)) {
      const isOver = remaining() <= 0;
      const reason = await waiting.of(job, isOver);
      if (isOver) return { job, timedOut: true, reason };
      const state = reason === null ? stateText(job) : `${stateText(job)}: ${reason}`;
      if (!progress.live && reason !== null && reason !== told)
        progress.line(printable(`${job.id} ${state}`));
      told = reason;
      progress.show(barOf(cli, job, state, startedAt), printable(`${job.id} ${state}`));
      job = await readJob(
        api,
        job.id,
        cli.interrupted,
        Math.max(1, Math.min(STEP_MS, Math.ceil(remaining()))),
      );
    }
    return { job, timedOut: false, reason: null };
  } finally {
    progress.clear();
  }
}

/** The state of a job with the details that matter in that state. */
export function stateText(job: Job): string {
  const progress = progressText(job);
  switch (job.state) {
    case 'running':
      return `running, attempt ${job.attempt}${job.handedOnAt === null ? '' : ', handed on'}${progress ? `, ${progress}` : ''}`;
    case 'pending':
      if (job.hold) return 'pending, on hold';
      return job.attempt > 0 ? `pending, attempt ${job.attempt} did not succeed` : 'pending';
    case 'succeeded':
    case 'failed':
    case 'cancelled':
    case 'skipped':
    case 'blocked':
      return job.error ? `${job.state}: ${errorText(job)}` : job.state;
  }
}

function barOf(cli: Cli, job: Job, state: string, startedAt: number): string {
  const bar = job.progress ? `${progressBar(job.progress.progress, 20)} ` : '';
  return printable(`${workOf(job)}  ${humanDuration(cli.now() - startedAt)}  ${bar}${state}`);
}

/** A job that starts soon needs no explanation, and the reason changes rarely. */
const FIRST_REASON_MS = 1_000;
const NEXT_REASON_MS = 5_000;

/** Why a job that somebody waits for has not started; asked for from time to time. */
class WaitingReason {
  readonly #api: ApiClient;
  readonly #cli: Cli;
  #askAt: number;
  #reason: string | null = null;

  constructor(api: ApiClient, cli: Cli) {
    this.#api = api;
    this.#cli = cli;
    this.#askAt = cli.now() + FIRST_REASON_MS;
  }

  /** The reason, null if it runs or nobody could say; `now` asks even if it was asked for lately. */
  async of(job: Job, now: boolean): Promise<string | null> {
    if (job.state !== 'pending') return null;
    if (!now && this.#cli.now() < this.#askAt) return this.#reason;
    this.#askAt = this.#cli.now() + NEXT_REASON_MS;
    const request = { signal: this.#cli.interrupted };
    try {
      const why = await this.#api.request<Why>('GET', `/v1/jobs/${job.id}/why`, request);
      // By now it may have started.
      this.#reason = why.state === 'pending' ? why.detail : null;
    } catch (error) {
      if (this.#cli.interrupted.aborted) throw error;
      this.#reason = null;
    }
    return this.#reason;
  }
}

const PAGE = 1_000;
const FOLLOW_STEP_MS = 1_000;

const LEVEL_STYLES: Readonly<Record<LogLevel, Style>> = {
  debug: 'dim',
  info: 'cyan',
  warn: 'yellow',
  error: 'red',
};

/** `punctual job logs ID`: the log of a job; one JSON document per line with `--json`. */
export function addLogsCommand(job: Command, cli: Cli): void {
  const command = job
    .command('logs')
    .description('show the log of a job')
    .argument('<id>', 'the id of the job')
    .option('-f, --follow', 'go on until the job has ended');
  callsServer<{ follow?: boolean }>(cli, command, async ({ api, output, options, args }) => {
    const id = args[0]!;
    const signal = AbortSignal.any([cli.interrupted, cli.readerGone]);
    const reader = new LogReader(api, id, signal);
    await reader.printNew(output);
    if (!options.follow) return;
    // The log is read once more after the job has ended, because its last lines may arrive with the end.
    for (let ended = false; !ended; ) {
      ended = isEnded((await readJob(api, id, signal, FOLLOW_STEP_MS)).state);
      await reader.printNew(output);
    }
  });
}

/** Reads a growing log: keeps the cursor of the last page and the number of its lines that are printed. */
class LogReader {
  readonly #api: ApiClient;
  readonly #id: string;
  readonly #signal: AbortSignal;
  #after: string | null = null;
  #printed = 0;

  constructor(api: ApiClient, id: string, signal: AbortSignal) {
    this.#api = api;
    this.#id = id;
    this.#signal = signal;
  }

  /** Prints every line that has not been printed yet. */
  async printNew(output: Output): Promise<void> {
    for (;;) {
      const query = new URLSearchParams({ limit: String(PAGE) });
      if (this.#after !== null) query.set('after', this.#after);
      const path = `/v1/jobs/${encodeURIComponent(this.#id)}/logs?${query}`;
      const page = await this.#api.request<Page<StoredLogLine>>('GET', path, { signal: this.#signal });
      for (const line of page.data.slice(this.#printed)) printLine(output, line);
      if (page.next === null) {
        this.#printed = page.data.length;
        return;
      }
      this.#after = page.next;
      this.#printed = 0;
    }
  }
}

function printLine(output: Output, line: StoredLogLine): void {
  output.document(line, () => {
    const level = output.paint(LEVEL_STYLES[line.level], line.level.padEnd(5));
    return `${output.paint('dim', line.at)} ${level} ${printable(line.message)}\n`;
  });
}
