import { PunctualError } from '../../core/errors.js';
import { parseMoment } from '../../core/moment.js';
import { Completion, Failure, LogReport, ProgressReport } from '../../core/schemas/attempt.js';
import { validate } from '../../core/schemas/validate.js';
import type { AttemptEnd } from '../../core/transition.js';
import type { AttemptResult } from '../../core/wire.js';
import type { Report } from '../../dispatch/dispatcher.js';
import { isMissingPartition } from '../../store/database.js';
import { addLogLines } from '../../store/job-logs.js';
import { makePartition } from '../../store/partitions.js';
import { readJob } from '../../store/read-job.js';
import type { NodeContext } from '../context.js';
import { cutError, cutProgress, resultText } from '../report-text.js';
import type { AttemptCredential, AttemptUseCases, Caller } from '../use-cases.js';

/** Reports about one attempt. What an old fence reports is refused with 409 and changes nothing. */
export class Attempts implements AttemptUseCases {
  /** The last write to each log that is under way. */
  private readonly writing = new Map<string, Promise<unknown>>();

  constructor(private readonly node: NodeContext) {}

  async complete(by: Caller | AttemptCredential, jobId: string, body: unknown): Promise<void> {
    const completion = validate(Completion, body);
    await this.report(by, { jobId, ...completion, outcome: 'succeeded' });
  }

  async fail(by: Caller | AttemptCredential, jobId: string, body: unknown): Promise<void> {
    const failure = validate(Failure, body);
    await this.report(by, { jobId, ...failure, outcome: 'failed' });
  }

  async progress(by: Caller | AttemptCredential, jobId: string, body: unknown): Promise<void> {
    const { fence, ...progress } = validate(ProgressReport, body);
    mustOwn(by, jobId, fence);
    const leader = await this.node.leader();
    const at = new Date(this.node.clock.now()).toISOString();
    if (!leader.progress(by.tenant, { jobId, fence }, { ...cutProgress(progress), at }))
      throw stale(jobId, fence);
  }

  async log(by: Caller | AttemptCredential, jobId: string, body: unknown): Promise<void> {
    const { fence, lines } = validate(LogReport, body);
    mustOwn(by, jobId, fence);
    const attempt = { tenant: by.tenant, job: jobId, fence };
    const texts = lines.map((line) => JSON.stringify(line));
    const { hot, config, clock } = this.node;
    const add = () => addLogLines(hot, attempt, texts, config.maxLog, clock.now());
    const running = await this.afterOthers(jobId, () =>
      add().catch(async (error: unknown) => {
        if (!isMissingPartition(error)) throw error;
        await makePartition(this.node.pool, 'job_logs', clock.now());
        return add();
      }),
    );
    if (running) return;
    if (!(await readJob(hot, by.tenant, jobId))) {
      throw new PunctualError('JOB_NOT_FOUND', `There is no job ${jobId}.`);
    }
    throw stale(jobId, fence);
  }

  /** Those who write to one log wait for each other here, so that they do not wait with a connection each. */
  private async afterOthers<T>(jobId: string, write: () => Promise<T>): Promise<T> {
    const mine = (this.writing.get(jobId) ?? Promise.resolve()).then(write, write);
    this.writing.set(jobId, mine);
    try {
      return await mine;
    } finally {
      if (this.writing.get(jobId) === mine) this.writing.delete(jobId);
    }
  }

  private async report(by: Caller | AttemptCredential, result: AttemptResult): Promise<void> {
    mustOwn(by, result.jobId, result.fence);
    const leader = await this.node.leader();
    const [accepted] = await leader.report([toReport(by.tenant, result, this.node)]);
    if (!accepted) throw stale(result.jobId, result.fence);
  }
}

/** A token is good for the attempt it names and for no other, not even a later one of the same job. */
function mustOwn(by: Caller | AttemptCredential, jobId: string, fence: number): void {
  if (!('jobId' in by)) return;
  if (by.jobId !== jobId) throw new PunctualError('FORBIDDEN', 'The token belongs to another job.');
  if (by.fence !== fence) throw stale(jobId, fence);
}

function stale(jobId: string, fence: number): PunctualError {
  return new PunctualError(
    'STALE_FENCE',
    `Fence ${fence} of job ${jobId} does not count any more; nothing was changed.`,
  );
}

/** A worker's result as the dispatcher takes it, cut to the limits. */
export function toReport(
  tenant: string,
  result: AttemptResult,
  node: NodeContext,
  /** Moments that were parsed before: results that come together mostly started together. */
  moments = new Map<string, number | null>(),
): Report {
  const startedAt = momentOf(result.startedAt, moments);
  return { tenant, jobId: result.jobId, fence: result.fence, startedAt, end: toEnd(result, node) };
}

function momentOf(text: string | undefined, known: Map<string, number | null>): number | null {
  if (text === undefined) return null;
  let moment = known.get(text);
  if (moment === undefined) {
    moment = parseMoment(text);
    known.set(text, moment);
  }
  return moment;
}

function toEnd(result: AttemptResult, { config }: NodeContext): AttemptEnd {
  switch (result.outcome) {
    case 'succeeded': {
      const text = resultText(result.result, config);
      if ('error' in text) return { outcome: 'failed', error: text.error, retryable: false };
      return { outcome: 'succeeded', result: text.json };
    }
    case 'failed':
      return {
        outcome: 'failed',
        error: cutError(result.error, config.maxError),
        retryable: result.retryable ?? true,
      };
    case 'timed-out': {
      const error = result.error ?? { code: 'TIMEOUT', message: 'The attempt took longer than its timeout.' };
      return { outcome: 'timed-out', error: cutError(error, config.maxError) };
    }
    case 'cancelled':
      return { outcome: 'cancelled', error: result.error ? cutError(result.error, config.maxError) : null };
  }
}
