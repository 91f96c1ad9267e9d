import type { Config } from '../core/config.js';
import { PunctualError } from '../core/errors.js';
import { withinBounds } from '../core/execution.js';
import { parseMoment } from '../core/moment.js';
import { Completion, Failure, LogReport, ProgressReport } from '../core/schemas/attempt.js';
import { IdPath } from '../core/schemas/query.js';
import type { AttemptEnd } from '../core/transition.js';
import type * as wire from '../core/wire.js';
import type { Report } from '../dispatch/dispatcher.js';
import { readJob } from '../store/read-job.js';
import type { AttemptCredential, Caller } from './caller.js';
import type { NodeContext } from './context.js';
import { cutError, cutProgress, resultText } from './report-text.js';
import { limitsOf, mayReport } from './restrictions.js';
import { type HttpLimits, json, ONE_PAYLOAD, type Route, route } from './route.js';
import type { Shard } from './shard.js';

/** The most bytes of a body with one result, one error or some lines of a log; longer values in it are cut. */
const REPORT_BYTES = 1024 * 1024 + 64 * 1024;
const ONE_REPORT = (limits: HttpLimits) => Math.max(REPORT_BYTES, ONE_PAYLOAD(limits));

const RESULT = { maxBytes: ONE_REPORT, text: 'result' } as const;

/** Reports about one attempt, by a key or by the attempt's token. An old fence is refused and changes nothing. */
export const attemptRoutes: readonly Route[] = [
  route({
    id: 'completeAttempt',
    method: 'POST',
    path: '/v1/jobs/:id/complete',
    tag: 'attempts',
    summary: 'Report that an attempt succeeded. An old fence is a 409 and changes nothing.',
    scope: 'attempt',
    params: IdPath,
    body: json(Completion, RESULT),
    answers: { 204: 'The report was accepted.' },
    idempotent: 'the fence decides: a result that is on record is accepted again',
    run: ({ node, caller, params, body }) =>
      reportOne(node, caller, { jobId: params.id, ...body, outcome: 'succeeded' }),
  }),
  route({
    id: 'failAttempt',
    method: 'POST',
    path: '/v1/jobs/:id/fail',
    tag: 'attempts',
    summary: 'Report that an attempt failed. An old fence is a 409 and changes nothing.',
    scope: 'attempt',
    params: IdPath,
    body: json(Failure, RESULT),
    answers: { 204: 'The report was accepted.' },
    idempotent: 'the fence decides: a result that is on record is accepted again',
    run: ({ node, caller, params, body }) =>
      reportOne(node, caller, { jobId: params.id, ...body, outcome: 'failed' }),
  }),
  route({
    id: 'reportProgress',
    method: 'POST',
    path: '/v1/jobs/:id/progress',
    tag: 'attempts',
    summary: 'Report how far a running attempt has come.',
    scope: 'attempt',
    params: IdPath,
    body: json(ProgressReport, RESULT),
    answers: { 204: 'The report was accepted.' },
    idempotent: 'newer progress replaces older',
    run: ({ node, caller, params, body }) => reportProgress(node, caller, params.id, body),
  }),
  route({
    id: 'appendLogs',
    method: 'POST',
    path: '/v1/jobs/:id/logs',
    tag: 'attempts',
    summary: 'Append lines to the log of a running attempt.',
    scope: 'attempt',
    params: IdPath,
    body: json(LogReport, { maxBytes: ONE_REPORT, lists: ['lines'] }),
    answers: { 204: 'The report was accepted.' },
    idempotent: 'a line of a log that comes twice does no harm',
    run: ({ node, caller, params, body }) => appendLogs(node, caller, params.id, body),
  }),
];

/** Records the progress of a running attempt. */
export async function reportProgress(
  node: NodeContext,
  by: Caller | AttemptCredential,
  jobId: string,
  { fence, ...progress }: wire.ProgressReport,
): Promise<void> {
  mustOwn(by, jobId, fence);
  const shard = node.shardOf(by.tenant);
  await mustReachAttempt(shard, by, jobId);
  const leader = await shard.leader();
  const at = new Date(shard.clock.now()).toISOString();
  if (!leader.progress(by.tenant, { jobId, fence }, { ...cutProgress(progress), at }))
    throw stale(jobId, fence);
}

/** Appends to the log of a running attempt. */
export async function appendLogs(
  node: NodeContext,
  by: Caller | AttemptCredential,
  jobId: string,
  { fence, lines }: wire.LogReport,
): Promise<void> {
  mustOwn(by, jobId, fence);
  const { tenant } = by;
  const shard = node.shardOf(tenant);
  await mustReachAttempt(shard, by, jobId);
  const texts = lines.map((line) => JSON.stringify(line));
  if (await shard.logs.append({ tenant, job: jobId, fence }, texts)) return;
  if (!(await readJob(shard.hot, tenant, jobId))) {
    throw new PunctualError('JOB_NOT_FOUND', `There is no job ${jobId}.`);
  }
  throw stale(jobId, fence);
}

async function reportOne(
  node: NodeContext,
  by: Caller | AttemptCredential,
  result: wire.AttemptResult,
): Promise<void> {
  mustOwn(by, result.jobId, result.fence);
  const leader = await node.shardOf(by.tenant).leader();
  const [accepted] = await leader.report([toReport(by.tenant, result, node.config)], limitsOf(by));
  if (!accepted) throw stale(result.jobId, result.fence);
}

/** A token is valid only for the attempt it names, not for a later one of the same job. */
export function mustOwn(by: Caller | AttemptCredential, jobId: string, fence: number): void {
  if (!('jobId' in by)) return;
  if (by.jobId !== jobId) throw new PunctualError('FORBIDDEN', 'The token belongs to another job.');
  if (by.fence !== fence) throw stale(jobId, fence);
}

/** A worker's key that is restricted does not find jobs that its workers could not have been given. */
export async function mustReachAttempt(
  shard: Shard,
  by: Caller | AttemptCredential,
  jobId: string,
): Promise<void> {
  if (!limitsOf(by)) return;
  const job = await readJob(shard.hot, by.tenant, jobId);
  if (!job || !mayReport(by, job)) throw new PunctualError('JOB_NOT_FOUND', `There is no job ${jobId}.`);
}

/** The error for an attempt that does not count any more. */
export function stale(jobId: string, fence: number): PunctualError {
  return new PunctualError(
    'STALE_FENCE',
    `Fence ${fence} of job ${jobId} does not count any more; nothing was changed.`,
  );
}

/** A worker's result in the form of the dispatcher, cut to the limits. */
export function toReport(tenant: string, result: wire.AttemptResult, config: Config): Report {
  const { jobId, fence, startedAt } = result;
  const started = startedAt === undefined ? null : parseMoment(startedAt);
  const end = toEnd(result, config);
  const { execution } = result;
  return {
    ...{ tenant, jobId, fence, startedAt: started },
    end: execution === undefined ? end : { ...end, execution: JSON.stringify(withinBounds(execution)) },
  };
}

function toEnd(result: wire.AttemptResult, config: Config): AttemptEnd {
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
        ...(result.retryAfterMs !== undefined && { retryAfterMs: result.retryAfterMs }),
        ...(result.origin && { origin: result.origin }),
      };
    case 'handed-on':
      return { outcome: 'handed-on' };
    case 'timed-out': {
      const error = result.error ?? {
        code: 'TIMED_OUT',
        message: 'The attempt took longer than its timeout.',
      };
      return { outcome: 'timed-out', error: cutError(error, config.maxError) };
    }
    case 'cancelled':
      return { outcome: 'cancelled', error: result.error ? cutError(result.error, config.maxError) : null };
  }
}
