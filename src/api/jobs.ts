import type { Static } from 'typebox';
import { parseDuration } from '../core/duration.js';
import { invalid, PunctualError } from '../core/errors.js';
import { isEnded, type JobError, type JobPart } from '../core/job.js';
import { mayReplace, NOT_REPEATED, type Repetition } from '../core/keys.js';
import { parseMoment } from '../core/moment.js';
import { Job, JobPage, LogPage, SubmittedJob, Why } from '../core/schemas/job.js';
import { IdPath, JobListQuery, LogQuery, WaitQuery } from '../core/schemas/query.js';
import {
  BulkAnswer,
  BulkSubmission,
  bulkEnvelope,
  JobChange,
  JobSubmission,
} from '../core/schemas/submission.js';
import { validate } from '../core/schemas/validate.js';
import {
  type JobDefinition,
  parsePayload,
  parseSubmission,
  parseSubmissions,
  type SubmissionContext,
  taskNamesOf,
} from '../core/submission.js';
import type { TaskLookup } from '../core/task-defaults.js';
import { isUuid } from '../core/uuid.js';
import type { BulkRepetition, BulkAnswer as Stored } from '../core/wire.js';
import type { Change } from '../dispatch/job-control.js';
import { explainDatabaseError } from '../store/database.js';
import { type LogRow, readLogLines } from '../store/job-logs.js';
import type { PlacedRow } from '../store/job-places.js';
import { type ListFilter, listJobs } from '../store/list-jobs.js';
import { findKey, readJob } from '../store/read-job.js';
import type { Caller } from './caller.js';
import type { NodeContext } from './context.js';
import { idRange } from './id-range.js';
import { JobView, newlyPlaced } from './job-view.js';
import { PageText, writePage } from './page-text.js';
import { forbidden, limitsOf, mayTouch, mustAllow, narrowed } from './restrictions.js';
import { Answer, json, jsonCheckedByRun, MANY_PAYLOADS, ONE_PAYLOAD, type Route, route } from './route.js';
import type { Shard } from './shard.js';

/** Jobs of a list that one statement reads. */
const PORTION = 50;
/** The same with large parts, which Postgres has to decompress to see how many fit. */
const LARGE_PORTION = 16;

/** How often a submission is tried whose key belongs to a job that is removed before it can be read. */
const KEY_TRIES = 5;
/** The signal of a call that does not wait. */
const NEVER = new AbortController().signal;

/** Submitting, reading, cancelling and changing jobs. */
export const jobRoutes: readonly Route[] = [
  route({
    id: 'submitJob',
    method: 'POST',
    path: '/v1/jobs',
    tag: 'jobs',
    summary:
      'Submit one job. The same key again answers 200 with the job that has it, and says whether the submission differs; ' +
      '`keyMode` says what else becomes of that job.',
    scope: 'submit',
    body: jsonCheckedByRun(JobSubmission, { maxBytes: ONE_PAYLOAD, text: 'payload' }),
    answers: { 201: SubmittedJob, 200: SubmittedJob },
    run: async ({ node, caller, body }) => {
      const { created, job } = await submitJob(node, caller, body);
      return new Answer(created ? 201 : 200, job, { location: `/v1/jobs/${job.id}` });
    },
  }),
  route({
    id: 'submitJobs',
    method: 'POST',
    path: '/v1/jobs/bulk',
    tag: 'jobs',
    summary:
      'Submit many jobs, all or none. The ids are in the order of the jobs; `repetitions` names those whose keys had jobs.',
    scope: 'submit',
    body: jsonCheckedByRun(BulkSubmission, { maxBytes: MANY_PAYLOADS, text: 'payload', lists: ['jobs'] }),
    answers: { 201: BulkAnswer },
    run: ({ node, caller, body }) => submitJobs(node, caller, body),
  }),
  route({
    id: 'listJobs',
    method: 'GET',
    path: '/v1/jobs',
    tag: 'jobs',
    summary:
      'List jobs, newest first. What is large is left out of them, and named in `omitted`, unless `include` asks for it.',
    scope: 'read',
    query: JobListQuery,
    answers: { 200: JobPage },
    run: ({ node, caller, query: { include, limit, after, since, until, ...filter } }) => {
      const parts = include === undefined ? {} : { include: include.split(',') as JobPart[] };
      const shard = node.shardOf(caller.tenant);
      const range = idRange({ since, until }, after, shard.clock.now());
      const reached = narrowed(caller, filter);
      if (reached === null) return new PageText([], null);
      return pageOfJobs(shard, caller, { ...reached, ...parts, ...range }, limit);
    },
  }),
  route({
    id: 'getJob',
    method: 'GET',
    path: '/v1/jobs/:id',
    tag: 'jobs',
    summary: 'Read a job. With `wait`, the answer comes when the job ends or the time is up.',
    scope: 'read',
    params: IdPath,
    query: WaitQuery,
    answers: { 200: Job },
    run: ({ node, caller, params: { id }, query: { wait = '0s' }, call }) => {
      const leftMs = Math.max(0, (parseDuration(wait) ?? 0) - call.waitedMs);
      const shard = node.shardOf(caller.tenant);
      const get = (signal: AbortSignal) => awaitJob(shard, caller, id, leftMs, signal);
      return leftMs === 0 ? get(NEVER) : call.wait('results', get);
    },
  }),
  route({
    id: 'readLogs',
    method: 'GET',
    path: '/v1/jobs/:id/logs',
    tag: 'jobs',
    summary: 'Read the log of a job.',
    scope: 'read',
    params: IdPath,
    query: LogQuery,
    answers: { 200: LogPage },
    run: async ({ node, caller, params: { id }, query: { after, limit } }) => {
      const shard = node.shardOf(caller.tenant);
      await mustRead(shard, caller, id);
      return writePage<LogRow>(limit, {
        portion: PORTION,
        read: (last, size) => readLogLines(shard.pool, caller.tenant, id, last?.seq ?? after, size),
        write: ({ line, fence }) => `${line.slice(0, line.lastIndexOf('}'))},"fence":${fence}}`,
        cursor: (row) => String(row.seq),
      });
    },
  }),
  route({
    id: 'whyJob',
    method: 'GET',
    path: '/v1/jobs/:id/why',
    tag: 'jobs',
    summary: 'Why is it not running?',
    scope: 'read',
    params: IdPath,
    answers: { 200: Why },
    run: async ({ node, caller, params }) => {
      const shard = node.shardOf(caller.tenant);
      const leader = await shard.leader();
      return leader.why(await mustRead(shard, caller, params.id), caller.operator);
    },
  }),
  route({
    id: 'changeJob',
    method: 'PATCH',
    path: '/v1/jobs/:id',
    tag: 'jobs',
    summary: 'Change a job that has not started.',
    scope: 'submit',
    params: IdPath,
    body: json(JobChange, { maxBytes: ONE_PAYLOAD, text: 'payload' }),
    answers: { 200: Job },
    run: async ({ node, caller, params: { id }, body }) => {
      const shard = node.shardOf(caller.tenant);
      const change = toChange(node, body);
      await mustReach(shard, caller, id);
      await (await shard.leader()).jobControl.change(caller.tenant, id, change);
      return viewJob(shard, caller, id);
    },
  }),
  steering('cancel', 'Cancel a job, waiting or running.'),
  steering('retry', 'Send a dead letter round again.'),
  steering('hold', 'Keep a job from starting.'),
  steering('release', 'Let a job on hold start.'),
];

function steering(verb: 'cancel' | 'retry' | 'hold' | 'release', summary: string): Route {
  return route({
    id: `${verb}Job`,
    method: 'POST',
    path: `/v1/jobs/:id/${verb}`,
    tag: 'jobs',
    summary,
    scope: 'submit',
    params: IdPath,
    answers: { 200: Job },
    run: async ({ node, caller, params: { id } }) => {
      const shard = node.shardOf(caller.tenant);
      await mustReach(shard, caller, id);
      await (await shard.leader()).jobControl[verb](caller.tenant, id);
      return viewJob(shard, caller, id);
    },
  });
}

/** Stores a job, or finds the earlier one with the same key. */
export async function submitJob(
  node: NodeContext,
  caller: Caller,
  body: unknown,
): Promise<{ created: boolean; job: JobView }> {
  const { tenant, actor } = caller;
  const shard = node.shardOf(tenant);
  const tasks = findTasks(shard, tenant, [body]);
  const context = submissionContext(node, shard, tasks instanceof Promise ? await tasks : tasks);
  const submission = parseSubmission(body, context);
  const { queue, hold, keyRule } = submission.definition;
  mustAllow(caller, submission.definition);
  await mustReachKey(shard, caller, submission.definition.key);
  // Throws before anything was done if the leader is elsewhere; then the whole request is made there.
  if (mayReplace(keyRule)) await shard.leader();
  for (let tries = 1; ; tries += 1) {
    const { id, row, repetition } = await shard.submitter.submit({ tenant, createdBy: actor, submission });
    // A new job is as it was stored, whatever has become of it since; reading it again would cost a statement.
    if (row) {
      const job = new JobView(newlyPlaced(row, queue, hold), null, NOT_REPEATED);
      return { created: true, job };
    }
    const found = await readJob(shard.hot, tenant, id);
    // Nothing is found when its history was removed just now: then its key is free again.
    if (found) return { created: false, job: viewOf(shard, found, repetition ?? undefined) };
    if (tries === KEY_TRIES) {
      throw new PunctualError('DATABASE_UNAVAILABLE', 'The job of this key cannot be read; try again.', {
        retryAfter: 1,
      });
    }
  }
}

/** Stores many jobs, all or none. */
export async function submitJobs(node: NodeContext, caller: Caller, body: unknown): Promise<Stored> {
  const { tenant, actor } = caller;
  const { jobs } = validate(envelopeOf(node.config.maxBulkJobs), body);
  const shard = node.shardOf(tenant);
  const tasks = await findTasks(shard, tenant, jobs);
  const submissions = await parseSubmissions(jobs, submissionContext(node, shard, tasks));
  if (limitsOf(caller)) for (const { definition } of submissions) mustAllowInBulk(caller, definition);
  if (submissions.some(({ definition }) => mayReplace(definition.keyRule))) await shard.leader();
  const owned = submissions.map((submission) => ({ tenant, createdBy: actor, submission }));
  const stored = await shard.submitter.submitAll(owned);
  const repetitions: BulkRepetition[] = [];
  for (const [index, { repetition }] of stored.entries()) {
    if (repetition !== null)
      repetitions.push({ index, replaced: repetition.replaced, differs: repetition.differs });
  }
  return { ids: stored.map(({ id }) => id), repetitions };
}

/** The definitions of the tasks that submissions name; at once where they are known, so that most wait for nothing. */
function findTasks(
  { tasks }: Shard,
  tenant: string,
  inputs: readonly unknown[],
): TaskLookup | Promise<TaskLookup> {
  const found = tasks.find(tenant, () => taskNamesOf(inputs));
  if (!(found instanceof Promise)) return found;
  return found.catch((error: unknown) => {
    throw explainDatabaseError(error);
  });
}

/** A job that a restricted key does not reach can be neither found nor replaced by its key. */
async function mustReachKey(shard: Shard, caller: Caller, key: string | null): Promise<void> {
  if (key === null || !limitsOf(caller)) return;
  const id = await findKey(shard.hot, caller.tenant, key);
  const row = id === null ? null : await readJob(shard.hot, caller.tenant, id);
  if (row && !mayTouch(caller, row))
    throw forbidden('The key of the job belongs to a job that your key does not reach.');
}

/** Whom each of many keys belongs to is not looked up, so a restricted key may replace nothing in a bulk. */
function mustAllowInBulk(caller: Caller, definition: JobDefinition): void {
  mustAllow(caller, definition);
  if (mayReplace(definition.keyRule))
    throw forbidden('The key is restricted: it may replace jobs one by one only.');
}

const envelopes = new Map<number, ReturnType<typeof bulkEnvelope>>();

/** The schema around the jobs of a bulk, cached by its limit so that it is compiled once. */
function envelopeOf(maxBulkJobs: number): ReturnType<typeof bulkEnvelope> {
  const known = envelopes.get(maxBulkJobs) ?? bulkEnvelope(maxBulkJobs);
  envelopes.set(maxBulkJobs, known);
  return known;
}

function pageOfJobs(
  shard: Shard,
  caller: Caller,
  filter: ListFilter & { readonly key?: string },
  limit: number,
): Promise<PageText> {
  const { key, after, worker, include } = filter;
  if (key !== undefined) return jobOfKey(shard, caller, key, filter);
  if (worker !== undefined && !isUuid(worker)) {
    throw invalid([{ pointer: '/worker', detail: 'must be the id of a worker' }]);
  }
  return writePage<PlacedRow>(limit, {
    portion: include ? LARGE_PORTION : PORTION,
    read: (last, size) => listJobs(shard.pool, caller.tenant, { ...filter, after: last?.id ?? after }, size),
    write: (row) => viewOf(shard, row).text,
    cursor: (row) => row.id,
  });
}

async function jobOfKey(shard: Shard, caller: Caller, key: string, filter: ListFilter): Promise<PageText> {
  const id = await findKey(shard.pool, caller.tenant, key);
  const row = id === null ? null : await readJob(shard.pool, caller.tenant, id);
  const fits =
    row !== null &&
    mayTouch(caller, row) &&
    (filter.state === undefined || row.state === filter.state) &&
    (filter.task === undefined || row.task === filter.task) &&
    (filter.queue === undefined || row.queue === filter.queue) &&
    (filter.worker === undefined || row.worker === filter.worker) &&
    (filter.schedule === undefined || row.schedule === filter.schedule) &&
    (filter.from === undefined || row.id >= filter.from) &&
    (filter.after === undefined || row.id < filter.after) &&
    (filter.errorCode === undefined || (row.error !== null && codeOf(row.error) === filter.errorCode));
  // It is one job at most, and so there is room for all of it.
  return new PageText(fits ? [viewOf(shard, row).text] : [], null);
}

function codeOf(error: string): string | undefined {
  return (JSON.parse(error) as JobError).code;
}

/** Waits for the end of the job up to `waitMs`; 0 answers at once. */
async function awaitJob(
  shard: Shard,
  caller: Caller,
  id: string,
  waitMs: number,
  signal: AbortSignal,
): Promise<JobView> {
  const deadline = performance.now() + waitMs;
  for (;;) {
    const job = await viewJob(shard, caller, id);
    const left = deadline - performance.now();
    if (isEnded(job.state) || left <= 0 || signal.aborted) return job;
    if (!(await shard.ends.wait({ tenant: caller.tenant, id }, left, signal)))
      return viewJob(shard, caller, id);
  }
}

async function viewJob(shard: Shard, caller: Caller, id: string): Promise<JobView> {
  return viewOf(shard, await mustRead(shard, caller, id));
}

async function mustRead(shard: Shard, caller: Caller, id: string): Promise<PlacedRow> {
  const row = await readJob(shard.hot, caller.tenant, id);
  if (!row || !mayTouch(caller, row)) throw new PunctualError('JOB_NOT_FOUND', `There is no job ${id}.`);
  return row;
}

/** Jobs that a restricted key does not reach are not found; queue and task of a job never change. */
async function mustReach(shard: Shard, caller: Caller, id: string): Promise<void> {
  if (limitsOf(caller)) await mustRead(shard, caller, id);
}

function viewOf(shard: Shard, row: PlacedRow, repetition?: Repetition): JobView {
  const progress = row.state === 'running' ? shard.currentLeader()?.progressOf(row.id) : undefined;
  return new JobView(row, progress ?? null, repetition);
}

function submissionContext({ config }: NodeContext, { clock }: Shard, tasks: TaskLookup): SubmissionContext {
  return { ...config, now: clock.now(), tasks };
}

function toChange({ config }: NodeContext, { runAt, priority, payload }: Static<typeof JobChange>): Change {
  return {
    ...(runAt !== undefined && { runAt: parseMoment(runAt)! }),
    ...(priority !== undefined && { priority }),
    ...(payload !== undefined && { payload: parsePayload(payload, config) }),
  };
}
