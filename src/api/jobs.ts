import type { Static } from 'typebox';
import { parseDuration } from '../core/duration.js';
import { PunctualError } from '../core/errors.js';
import { isEnded, type JobPart } from '../core/job.js';
import { mayReplace, NOT_REPEATED, type Repetition } from '../core/keys.js';
import { parseMoment } from '../core/moment.js';
import { conditionsOfQuery } from '../core/payload-filter.js';
import { countsJobs } from '../core/quotas.js';
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
  parsePayload,
  parseSubmission,
  parseSubmissions,
  type SubmissionContext,
  taskNamesOf,
} from '../core/submission.js';
import type { TaskLookup } from '../core/task-defaults.js';
import type { BulkRepetition, BulkAnswer as Stored } from '../core/wire.js';
import type { Change } from '../dispatch/job-control.js';
import { explainDatabaseError, type Queryable } from '../store/database.js';
import { type LogRow, readLogLines } from '../store/job-logs.js';
import type { PlacedRow } from '../store/job-places.js';
import { RolledBackError } from '../store/leader-statement.js';
import { readJob } from '../store/read-job.js';
import { type Relatives, readRelatives } from '../store/read-workflows.js';
import type { Caller } from './caller.js';
import type { NodeContext } from './context.js';
import { idRange } from './id-range.js';
import { type AnswerKeeper, answerOf, BulkText } from './idempotency.js';
import { searchOf } from './job-filter.js';
import { JobPageText, writeJobPage } from './job-page.js';
import { JobView, newlyPlaced } from './job-view.js';
import type { Answered } from './json-text.js';
import { writePage } from './page-text.js';
import { mustFitPayload, withinRate } from './quota-checks.js';
import {
  forbidden,
  keyGuardOf,
  limitsOf,
  mayTouchJob,
  mustAllow,
  narrowed,
  reachesWorkflowOf,
} from './restrictions.js';
import {
  Answer,
  type Call,
  json,
  jsonCheckedByRun,
  MANY_PAYLOADS,
  ONE_PAYLOAD,
  type Route,
  route,
} from './route.js';
import type { Shard } from './shard.js';
import type { Stored as OneStored, Owned } from './submitter.js';

/** Lines of a log that one statement reads. */
const PORTION = 50;

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
    idempotent: true,
    run: async ({ node, caller, body, call }) => submissionAnswer(await submitJob(node, caller, body, call)),
  }),
  route({
    id: 'submitJobs',
    method: 'POST',
    path: '/v1/jobs/bulk',
    tag: 'jobs',
    summary:
      'Submit many jobs, all or none. The ids are in the order of the jobs; `repetitions` names those whose keys had jobs.',
    scope: 'submit',
    body: jsonCheckedByRun(BulkSubmission, {
      ...{ maxBytes: MANY_PAYLOADS, text: 'payload', lists: ['jobs'] },
      mostItems: ({ maxBulkJobs }) => maxBulkJobs,
    }),
    answers: { 201: BulkAnswer },
    idempotent: true,
    run: ({ node, caller, body, call }) => submitJobs(node, caller, body, call),
  }),
  route({
    id: 'listJobs',
    method: 'GET',
    path: '/v1/jobs',
    tag: 'jobs',
    summary:
      'List jobs, newest first. What is large is left out of them, and named in `omitted`, unless `include` asks for it. ' +
      'A page may end early, even empty, while `next` says where to go on.',
    scope: 'read',
    query: JobListQuery,
    answers: { 200: JobPage },
    run: async ({ node, caller, query: { include, limit, after, payload, ...filter } }) => {
      const shard = node.shardOf(caller.tenant);
      const range = idRange(filter, after, shard.clock.now());
      const reached = narrowed(caller, filter);
      const search =
        reached &&
        (await searchOf(shard.reads, caller.tenant, reached, payload && conditionsOfQuery(payload)));
      if (search === null) return new JobPageText([], null, 0, true);
      const parts = include?.split(',') as JobPart[] | undefined;
      return writeJobPage(limit, {
        reads: shard.reads,
        tenant: caller.tenant,
        filter: { ...search, ...range, include: parts },
        write: (row) => viewOf(shard, row, undefined, null).text,
      });
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
        read: (last, size) =>
          shard.reads.read(caller.tenant, (db) =>
            readLogLines(db, caller.tenant, id, last?.seq ?? after, size),
          ),
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
      const row = await mustRead(shard, caller, params.id);
      const namesSteps = await reachesGraph(shard.hot, caller, row);
      return leader.why(row, { forOperator: caller.operator, namesSteps });
    },
  }),
  route({
    id: 'changeJob',
    audit: 'job.change',
    method: 'PATCH',
    path: '/v1/jobs/:id',
    tag: 'jobs',
    summary: 'Change a job that has not started.',
    scope: 'submit',
    params: IdPath,
    body: json(JobChange, { maxBytes: ONE_PAYLOAD, text: 'payload' }),
    answers: { 200: Job },
    run: async ({ node, caller, params: { id }, body, call }) => {
      const shard = node.shardOf(caller.tenant);
      const change = toChange(node, body);
      if (change.payload !== undefined) mustFitPayload(await shard.quotas.of(caller.tenant), change.payload);
      await mustReach(shard, caller, id);
      await (await shard.leader()).jobControl.change(caller.tenant, id, change, call.author);
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
    audit: `job.${verb}`,
    method: 'POST',
    path: `/v1/jobs/:id/${verb}`,
    tag: 'jobs',
    summary,
    scope: 'submit',
    params: IdPath,
    answers: { 200: Job },
    idempotent: true,
    run: async ({ node, caller, params: { id }, call }) => {
      const shard = node.shardOf(caller.tenant);
      await mustReach(shard, caller, id);
      if (verb === 'retry') await mustReachGraph(shard, caller, id);
      const { jobControl } = await shard.leader();
      return answerOf(
        shard,
        call,
        (requested) => jobControl[verb](caller.tenant, id, requested),
        (db) => viewJob(shard, caller, id, db),
      );
    },
  });
}

/** The job of a submission, and whether it is new. */
interface Submission {
  readonly created: boolean;
  readonly job: JobView;
}

function submissionAnswer({ created, job }: Submission): Answer {
  return new Answer(created ? 201 : 200, job, { location: `/v1/jobs/${job.id}` });
}

/** What a submission takes from its request beside the body. */
type SubmissionCall = Partial<Pick<Call, 'traceparent' | 'keeper'>>;

/** Stores a job, or finds the earlier one with the same key. */
export async function submitJob(
  node: NodeContext,
  caller: Caller,
  body: unknown,
  { traceparent, keeper }: SubmissionCall = {},
): Promise<Submission> {
  const { tenant, actor } = caller;
  const shard = node.shardOf(tenant);
  // Mostly both are known. After a pause both are read, at the same time.
  const [known, found] = [shard.quotas.of(tenant), findTasks(shard, tenant, [body])];
  const isKnown = !(known instanceof Promise || found instanceof Promise);
  const [quotas, tasks] = isKnown ? [known, found] : await Promise.all([known, found]);
  const context = submissionContext(node, shard, tasks);
  const submission = parseSubmission(body, context);
  mustFitPayload(quotas, submission.payload);
  mustAllow(caller, submission.definition);
  // Throws before anything was done if the leader is elsewhere; then the whole request is made there.
  if (mayReplace(submission.definition.keyRule)) await shard.leader();
  const isCounted = quotas !== null && countsJobs(quotas);
  const guard = submission.definition.key === null ? undefined : keyGuardOf(caller);
  const owned = { owner: { tenant, createdBy: actor, traceparent, isCounted, guard }, submission };
  for (let tries = 1; ; tries += 1) {
    const submitted = await withinRate(shard, tenant, quotas, 1, async () =>
      keeper
        ? submitOnce(shard, owned, keeper)
        : viewSubmitted(shard, shard.hot, owned, await shard.submitter.submit(owned)),
    );
    // Nothing is found when its history was removed just now: then its key is free again.
    if (submitted) return submitted;
    if (tries === KEY_TRIES) {
      throw new PunctualError('DATABASE_UNAVAILABLE', 'The job of this key cannot be read; try again.', {
        retryAfter: 1,
      });
    }
  }
}

/** The job of a submission; null if it is an earlier one that cannot be found any more. */
function viewSubmitted(
  shard: Shard,
  db: Queryable,
  { owner: { tenant }, submission }: Owned,
  { id, row, repetition }: OneStored,
): Submission | Promise<Submission | null> {
  // A new job is as it was stored, whatever has become of it since; reading it again would cost a statement.
  if (row) {
    const { queue, hold } = submission.definition;
    return { created: true, job: new JobView(newlyPlaced(row, queue, hold), null, NOT_REPEATED) };
  }
  return readJob(db, tenant, id).then(
    (found) => found && { created: false, job: viewOf(shard, found, repetition ?? undefined) },
  );
}

/** Stores a job and the answer in one transaction; null as above. */
async function submitOnce(shard: Shard, owned: Owned, keeper: AnswerKeeper): Promise<Submission | null> {
  let submitted: Submission | null = null;
  try {
    await shard.submitter.submitAll([owned], async (db, [stored]) => {
      submitted = await viewSubmitted(shard, db, owned, stored!);
      if (!submitted) throw new UnreadableError();
      if (hasEffect(stored!)) await keeper.keep(db, submissionAnswer(submitted));
    });
  } catch (error) {
    if (error instanceof UnreadableError) return null;
    throw error;
  }
  return submitted;
}

/** Whether a job was stored or changed; of a mere repetition nothing is kept. */
function hasEffect({ repetition }: OneStored): boolean {
  return repetition === null || repetition.replaced;
}

/** The job of a key is gone; what was to be stored is rolled back and tried again. */
class UnreadableError extends RolledBackError {}

/** Stores many jobs, all or none. */
export async function submitJobs(
  node: NodeContext,
  caller: Caller,
  body: unknown,
  { traceparent, keeper }: SubmissionCall = {},
): Promise<Answered<Stored>> {
  const { tenant, actor } = caller;
  const { jobs } = validate(envelopeOf(node.config.maxBulkJobs), body);
  const shard = node.shardOf(tenant);
  const tasks = await findTasks(shard, tenant, jobs);
  const submissions = await parseSubmissions(jobs, submissionContext(node, shard, tasks));
  if (limitsOf(caller)) for (const { definition } of submissions) mustAllow(caller, definition);
  if (submissions.some(({ definition }) => mayReplace(definition.keyRule))) await shard.leader();
  const quotas = await shard.quotas.of(tenant);
  if (quotas)
    submissions.forEach(({ payload }, i) => {
      mustFitPayload(quotas, payload, `/jobs/${i}/payload`);
    });
  const isCounted = quotas !== null && countsJobs(quotas);
  const owner = { tenant, createdBy: actor, traceparent, isCounted, guard: keyGuardOf(caller) };
  const owned = submissions.map((submission) => ({ owner, submission }));
  return withinRate(shard, tenant, quotas, owned.length, async () => {
    if (!keeper) return bulkAnswer(await shard.submitter.submitAll(owned));
    return answerOf<readonly OneStored[], BulkText>(
      shard,
      { keeper },
      ({ keep }) =>
        shard.submitter.submitAll(owned, async (db, stored) => {
          if (stored.some(hasEffect)) await keep!(db, stored);
        }),
      (_, stored) => {
        const { ids, repetitions } = bulkAnswer(stored);
        return new BulkText(ids, JSON.stringify({ repetitions }));
      },
    );
  });
}

function bulkAnswer(stored: readonly OneStored[]): Stored {
  const repetitions: BulkRepetition[] = [];
  for (const [index, { repetition }] of stored.entries()) {
    if (repetition !== null)
      repetitions.push({ index, replaced: repetition.replaced, differs: repetition.differs });
  }
  return { ids: stored.map(({ id }) => id), repetitions };
}

/** The definitions of the tasks that submissions name; at once where they are known, so that most wait for nothing. */
export function findTasks(
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

const envelopes = new Map<number, ReturnType<typeof bulkEnvelope>>();

/** The schema around the jobs of a bulk, cached by its limit so that it is compiled once. */
function envelopeOf(maxBulkJobs: number): ReturnType<typeof bulkEnvelope> {
  const known = envelopes.get(maxBulkJobs) ?? bulkEnvelope(maxBulkJobs);
  envelopes.set(maxBulkJobs, known);
  return known;
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

async function viewJob(
  shard: Shard,
  caller: Caller,
  id: string,
  db: Queryable = shard.hot,
): Promise<JobView> {
  const row = await mustRead(shard, caller, id, db);
  const hasGraph = row.workflow !== null && (await reachesGraph(db, caller, row));
  return viewOf(shard, row, undefined, hasGraph ? await readRelatives(db, id) : undefined);
}

/** A job that the caller reaches; throws JOB_NOT_FOUND. */
export async function mustRead(
  shard: Shard,
  caller: Caller,
  id: string,
  db: Queryable = shard.hot,
): Promise<PlacedRow> {
  const row = await readJob(db, caller.tenant, id);
  if (!row || !(await mayTouchJob(db, caller, row)))
    throw new PunctualError('JOB_NOT_FOUND', `There is no job ${id}.`);
  return row;
}

/** Jobs that a restricted key does not reach are not found; queue and task of a job never change. */
async function mustReach(shard: Shard, caller: Caller, id: string): Promise<void> {
  if (limitsOf(caller)) await mustRead(shard, caller, id);
}

/** Whether the caller may know the other steps of the job's workflow. */
function reachesGraph(db: Queryable, caller: Caller, row: PlacedRow): Promise<boolean> {
  return reachesWorkflowOf(db, caller, row);
}

/** A step that runs again lets others run, too. */
async function mustReachGraph(shard: Shard, caller: Caller, id: string): Promise<void> {
  if (!limitsOf(caller) || (await reachesGraph(shard.hot, caller, await mustRead(shard, caller, id)))) return;
  throw forbidden('The job is a step of a workflow that your key does not reach as a whole.');
}

function viewOf(
  shard: Shard,
  row: PlacedRow,
  repetition?: Repetition,
  relatives?: Relatives | null,
): JobView {
  const progress = row.state === 'running' ? shard.currentLeader()?.progressOf(row.id) : undefined;
  return new JobView(row, progress ?? null, repetition, relatives);
}

export function submissionContext(
  { config }: NodeContext,
  { clock }: Shard,
  tasks: TaskLookup,
): SubmissionContext {
  return { ...config, now: clock.now(), tasks };
}

function toChange({ config }: NodeContext, { runAt, priority, payload }: Static<typeof JobChange>): Change {
  return {
    ...(runAt !== undefined && { runAt: parseMoment(runAt)! }),
    ...(priority !== undefined && { priority }),
    ...(payload !== undefined && { payload: parsePayload(payload, config) }),
  };
}
