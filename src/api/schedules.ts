import Type, { type Static } from 'typebox';
import { invalid, PunctualError } from '../core/errors.js';
import { parseMoment } from '../core/moment.js';
import { rangeBetween } from '../core/schedule/catch-up.js';
import type { ScheduleDefinition } from '../core/schedule.js';
import { changed, parseTimetable } from '../core/schedule-definition.js';
import { Batch } from '../core/schemas/batch.js';
import { Job } from '../core/schemas/job.js';
import { LedgerQuery, NamePath, ScheduleListQuery } from '../core/schemas/query.js';
import {
  AppliedSchedules,
  BackfillAnswer,
  BackfillRequest,
  OccurrencePage,
  PreviewAnswer,
  PreviewRequest,
  ScheduleChange,
  ScheduleInput,
  SchedulePage,
  ScheduleSet,
  ScheduleView,
} from '../core/schemas/schedule.js';
import { WorkflowView } from '../core/schemas/workflow.js';
import { NO_TASKS, type TaskLookup } from '../core/task-defaults.js';
import type * as wire from '../core/wire.js';
import { allSteps } from '../core/workflow/parse-workflow.js';
import { readSteps } from '../core/workflow/stored-graph.js';
import type { WorkflowStep } from '../core/workflow.js';
import type { Backfill } from '../schedule/backfill.js';
import { tasksOfStored, tryParseStored } from '../schedule/parsed-schedules.js';
import type { RunIds } from '../schedule/plan-firing.js';
import type { Request } from '../schedule/schedule-changes.js';
import type { Queryable } from '../store/database.js';
import { type LedgerPosition, readLedger } from '../store/occurrences.js';
import { readJob } from '../store/read-job.js';
import {
  findScheduleWithLedger,
  listSchedules,
  readSchedule,
  type ScheduleRow,
  type ScheduleWithLast,
} from '../store/schedules.js';
import { readDefinition } from '../store/workflow-definitions.js';
import { viewBatch } from './batches.js';
import type { Caller } from './caller.js';
import type { NodeContext } from './context.js';
import { wrongCursor } from './id-range.js';
import { answerOf } from './idempotency.js';
import { JobView } from './job-view.js';
import { writePage } from './page-text.js';
import { forbidden, limitsOf, mayTouch, mustAllow, type Place } from './restrictions.js';
import { Answer, type Call, json, ONE_PAYLOAD, type Route, route } from './route.js';
import { ScheduleText, toLastJob, toOccurrenceView } from './schedule-view.js';
import type { Shard } from './shard.js';
import { viewWorkflow } from './workflows.js';

const PREVIEWED = 10;

/** Schedules that one statement reads; few, because Postgres has to parse their definitions. */
const PORTION = 50;

/** The first moment that a `Date` can hold. */
const FIRST_MOMENT = -8.64e15;

/** Making, reading and changing schedules. Changes go through the leader; any node answers reads. */
export const scheduleRoutes: readonly Route[] = [
  route({
    id: 'createSchedule',
    audit: 'schedule.create',
    method: 'POST',
    path: '/v1/schedules',
    tag: 'schedules',
    summary: 'Make a schedule. A name that is taken: 409.',
    scope: 'admin',
    body: json(ScheduleInput, { maxBytes: ONE_PAYLOAD }),
    answers: { 201: ScheduleView },
    idempotent: true,
    run: async ({ node, caller, body, call }) => {
      const shard = node.shardOf(caller.tenant);
      const { changes } = (await shard.leader()).schedules;
      const { name, paused = false, ...definition } = body;
      if (limitsOf(caller)) mustAllowAll(caller, await findPlaces(node, caller, definition));
      return answerOf(
        shard,
        call,
        ({ keep }) => changes.create(by(caller, name, call), definition, paused, null, keep),
        async (db) => {
          const schedule = await viewSchedule(node, caller, name, db);
          return new Answer(201, schedule, { location: `/v1/schedules/${encodeURIComponent(name)}` });
        },
      );
    },
  }),
  route({
    id: 'applySchedules',
    audit: ['schedule.create', 'schedule.change', 'schedule.prune'],
    method: 'PUT',
    path: '/v1/schedules',
    tag: 'schedules',
    summary:
      'Make the schedules of a program what its code says; with `dryRun`, tell what would be done. One that another program manages: 409, and nothing is done.',
    scope: 'admin',
    body: json(ScheduleSet, { lists: ['schedules'] }),
    answers: { 200: AppliedSchedules },
    repeatable: true,
    run: async ({ node, caller, body: { managedBy, schedules, prune = false, dryRun = false }, call }) => {
      // It may remove schedules that the request does not name.
      if (limitsOf(caller)) throw forbidden('The key is restricted: it changes schedules one by one.');
      const leader = await node.shardOf(caller.tenant).leader();
      const owner = by(caller, managedBy, call);
      return leader.schedules.manage(owner, schedules, { prune, dryRun });
    },
  }),
  route({
    id: 'changeSchedule',
    audit: 'schedule.change',
    method: 'PATCH',
    path: '/v1/schedules/:name',
    tag: 'schedules',
    summary: 'Change a schedule from its next occurrence on; null takes a field back to its default.',
    scope: 'admin',
    params: NamePath,
    body: json(ScheduleChange, { maxBytes: ONE_PAYLOAD }),
    answers: { 200: ScheduleView },
    run: async ({ node, caller, params: { name }, body, call }) => {
      const definition = await mustReach(node, caller, name);
      if (definition) mustAllowAll(caller, await findPlaces(node, caller, changed(definition, body)));
      const { changes } = (await node.shardOf(caller.tenant).leader()).schedules;
      await changes.change(by(caller, name, call), body);
      return viewSchedule(node, caller, name);
    },
  }),
  route({
    id: 'deleteSchedule',
    audit: 'schedule.delete',
    method: 'DELETE',
    path: '/v1/schedules/:name',
    tag: 'schedules',
    summary: 'Delete a schedule. Jobs that are due or have started go on, and its ledger stays.',
    scope: 'admin',
    params: NamePath,
    answers: { 204: 'The schedule is gone.' },
    run: async ({ node, caller, params, call }) => {
      await mustReach(node, caller, params.name);
      const { changes } = (await node.shardOf(caller.tenant).leader()).schedules;
      await changes.remove(by(caller, params.name, call));
    },
  }),
  route({
    id: 'listSchedules',
    method: 'GET',
    path: '/v1/schedules',
    tag: 'schedules',
    summary: 'List schedules by name.',
    scope: 'read',
    query: ScheduleListQuery,
    answers: { 200: SchedulePage },
    run: ({ node, caller, query: { include, limit, after = '' } }) => {
      const { tenant } = caller;
      const { reads, clock, tasks } = node.shardOf(tenant);
      const now = clock.now();
      const withPayloads = include !== undefined;
      let lookup = NO_TASKS;
      let reached: ReadonlySet<string> | null = null;
      return writePage<ScheduleWithLast>(limit, {
        portion: PORTION,
        read: async (last, size) => {
          const filter = { after: last?.name ?? after, withPayloads };
          const portion = await reads.read(tenant, (db) => listSchedules(db, tenant, filter, size, now));
          lookup = await tasks.find(tenant, () => tasksOfStored(portion.rows));
          reached = limitsOf(caller) ? await reachedOf(node, caller, portion.rows) : null;
          return portion;
        },
        isShown: ({ name }) => reached?.has(name) ?? true,
        write: (row) => new ScheduleText(row, node.config, now, lookup).text,
        cursor: (row) => row.name,
      });
    },
  }),
  route({
    id: 'getSchedule',
    method: 'GET',
    path: '/v1/schedules/:name',
    tag: 'schedules',
    summary: 'Read a schedule.',
    scope: 'read',
    params: NamePath,
    answers: { 200: ScheduleView },
    run: ({ node, caller, params }) => viewSchedule(node, caller, params.name),
  }),
  route({
    id: 'listOccurrences',
    method: 'GET',
    path: '/v1/schedules/:name/occurrences',
    tag: 'schedules',
    summary: 'Read the ledger of a schedule, newest first. It outlives the schedule.',
    scope: 'read',
    params: NamePath,
    query: LedgerQuery,
    answers: { 200: OccurrencePage },
    run: async ({ node, caller, params, query }) => {
      await mustReach(node, caller, params.name);
      return pageOfLedger(node, caller, params.name, query);
    },
  }),
  route({
    id: 'previewSchedule',
    audit: { none: 'It changes nothing.' },
    method: 'POST',
    path: '/v1/schedules/preview',
    tag: 'schedules',
    summary: 'The next moments of an expression, without making a schedule.',
    scope: 'read',
    body: json(PreviewRequest),
    answers: { 200: PreviewAnswer },
    idempotent: 'it changes nothing',
    run: ({ node, caller, body }) => preview(body, node.shardOf(caller.tenant).clock.now()),
  }),
  steering('pause', 'Skip the occurrences of a schedule until it is resumed.'),
  steering('resume', 'Go on with the next occurrence.'),
  route({
    id: 'runSchedule',
    audit: 'schedule.run',
    method: 'POST',
    path: '/v1/schedules/:name/run',
    tag: 'schedules',
    summary: 'Make a job, a workflow or a batch of the schedule now, beside its timetable.',
    scope: 'submit',
    params: NamePath,
    answers: { 201: Type.Union([Job, WorkflowView, Batch], { title: 'ScheduledRun' }) },
    idempotent: true,
    run: async ({ node, caller, params: { name }, call }) => {
      await mustReach(node, caller, name);
      const shard = node.shardOf(caller.tenant);
      const { changes } = (await shard.leader()).schedules;
      return answerOf<RunIds, Answer>(
        shard,
        call,
        ({ keep }) => changes.run(by(caller, name, call), keep),
        (db, ids) => viewRun(shard, caller, ids, db),
      );
    },
  }),
  route({
    id: 'backfillSchedule',
    audit: 'schedule.backfill',
    method: 'POST',
    path: '/v1/schedules/:name/backfill',
    tag: 'schedules',
    summary: 'Run the occurrences of a past time that have no run on record.',
    scope: 'submit',
    params: NamePath,
    body: json(BackfillRequest),
    answers: { 200: BackfillAnswer },
    idempotent: true,
    run: async ({ node, caller, params: { name }, body, call }) => {
      await mustReach(node, caller, name);
      const shard = node.shardOf(caller.tenant);
      const { changes } = (await shard.leader()).schedules;
      const range = toRange(body);
      return answerOf<Backfill, unknown>(
        shard,
        call,
        ({ keep }) => changes.backfill(by(caller, name, call), range, keep),
        (_, { occurrences }) => ({
          matched: occurrences.length,
          started: range.dryRun ? 0 : occurrences.length,
          dryRun: range.dryRun,
          occurrences: occurrences.map((at) => new Date(at).toISOString()),
        }),
      );
    },
  }),
];

function steering(verb: 'pause' | 'resume', summary: string): Route {
  return route({
    id: `${verb}Schedule`,
    audit: `schedule.${verb}`,
    method: 'POST',
    path: `/v1/schedules/:name/${verb}`,
    tag: 'schedules',
    summary: `${summary} Already so: 409.`,
    scope: 'admin',
    params: NamePath,
    answers: { 200: ScheduleView },
    idempotent: true,
    run: async ({ node, caller, params: { name }, call }) => {
      await mustReach(node, caller, name);
      const shard = node.shardOf(caller.tenant);
      const { changes } = (await shard.leader()).schedules;
      return answerOf(
        shard,
        call,
        ({ keep }) => changes[verb](by(caller, name, call), keep),
        (db) => viewSchedule(node, caller, name, db),
      );
    },
  });
}

/** What was run by hand. */
async function viewRun(
  shard: Shard,
  caller: Caller,
  { job, workflow, batch }: RunIds,
  db: Queryable,
): Promise<Answer> {
  if (workflow !== null) {
    const view = await viewWorkflow(shard, caller, workflow, db);
    return new Answer(201, view, { location: `/v1/workflows/${workflow}` });
  }
  if (batch !== null) {
    return new Answer(201, await viewBatch(shard, caller, batch, db), { location: `/v1/batches/${batch}` });
  }
  const row = await readJob(db, caller.tenant, job);
  if (!row) throw new PunctualError('JOB_NOT_FOUND', `There is no job ${job}.`);
  return new Answer(201, new JobView(row, null), { location: `/v1/jobs/${job}` });
}

function toRange({ dryRun = false, ...range }: Static<typeof BackfillRequest>) {
  const from = parseMoment(range.from)!;
  const to = parseMoment(range.to)!;
  if (to < from) throw invalid([{ pointer: '/to', detail: 'lies before from' }]);
  return { from, to, dryRun };
}

async function viewSchedule(
  node: NodeContext,
  caller: Caller,
  name: string,
  db?: Queryable,
): Promise<ScheduleText> {
  const { tenant } = caller;
  const { reads, hot, clock, tasks } = node.shardOf(tenant);
  const now = clock.now();
  const read = (from: Queryable) => readSchedule(from, tenant, name, now);
  const row = db ? await read(db) : await reads.read(tenant, read);
  if (!row) throw notFound(name);
  const lookup = await tasks.find(tenant, () => tasksOfStored([row]));
  if (limitsOf(caller) && !(await reachedOf(node, caller, [row])).has(name)) throw notFound(name);
  // Jobs are created ahead of time, so that of the newest occurrence that was due tells more than the newest of all. If
  // that occurrence has none, e.g. because the job before it still runs, the newest of all is the one of interest.
  const newest = row.last_run ?? row.last_job;
  const lastJob = newest === null ? null : toLastJob(await readJob(db ?? hot, tenant, newest));
  return new ScheduleText(row, node.config, now, lookup, lastJob);
}

/** What a definition says of the places of its jobs. */
type Placed = Pick<ScheduleDefinition, 'queue' | 'task' | 'workflow' | 'batch'>;

/**
 * The queues and tasks of what a schedule would run now; the definition of a task may name the queue. Null if there are none:
 * a workflow is not defined, or only waits.
 */
async function findPlaces(
  node: NodeContext,
  { tenant }: Caller,
  placed: Placed,
): Promise<readonly Place[] | null> {
  const { tasks, pool } = node.shardOf(tenant);
  if (placed.workflow !== undefined) {
    const row = await readDefinition(pool, tenant, placed.workflow);
    // The queues that are stored with it are those that its tasks named when it was put.
    const runs = row ? runsOf(await allSteps(await readSteps(row.jobs), node.config)) : [];
    return runs.length === 0 ? null : placesOf(await tasks.find(tenant, () => tasksIn(runs)), runs);
  }
  const jobs = placed.batch?.jobs ?? [placed];
  return placesOf(await tasks.find(tenant, () => tasksIn(jobs)), jobs);
}

type Named = Pick<ScheduleDefinition, 'queue' | 'task'>;

/** The steps of a definition, and of the workflows inside it, that run something. */
function runsOf(steps: readonly unknown[]): Named[] {
  return (steps as WorkflowStep[]).filter(
    ({ wait, workflow }) => wait === undefined && workflow === undefined,
  );
}

function tasksIn(jobs: readonly Named[]): string[] {
  return [...new Set(jobs.flatMap(({ task }) => task ?? []))];
}

function placesOf(lookup: TaskLookup, jobs: readonly Named[]): Place[] {
  return jobs.map(({ queue, task }) => {
    const ofTask = task ? lookup.get(task)?.definition.queue : undefined;
    return { queue: queue ?? ofTask ?? 'default', task: task ?? null };
  });
}

function mustAllowAll(caller: Caller, places: readonly Place[] | null): void {
  if (places === null)
    throw forbidden('The key is restricted, and does not reach all that the schedule runs.');
  for (const place of places) mustAllow(caller, place);
}

/** The names of those of the schedules that a restricted key reaches. */
async function reachedOf(
  node: NodeContext,
  caller: Caller,
  rows: readonly Pick<ScheduleRow, 'name' | 'definition'>[],
): Promise<ReadonlySet<string>> {
  const reached = new Set<string>();
  for (const { name, definition } of rows) {
    const places = await findPlaces(node, caller, JSON.parse(definition) as ScheduleDefinition);
    if (places?.every((place) => mayTouch(caller, place))) reached.add(name);
  }
  return reached;
}

/** A restricted key does not find schedules outside; answers with the definition if the key is restricted, else null. */
async function mustReach(
  node: NodeContext,
  caller: Caller,
  name: string,
): Promise<ScheduleDefinition | null> {
  if (!limitsOf(caller)) return null;
  const { pool } = node.shardOf(caller.tenant);
  const row = await findScheduleWithLedger(pool, caller.tenant, name);
  if (!row || !(await reachedOf(node, caller, [row])).has(name)) throw notFound(name);
  return JSON.parse(row.definition) as ScheduleDefinition;
}

/** The part of a ledger to read. */
interface LedgerFilter {
  readonly from?: string;
  readonly to?: string;
  readonly limit: number;
  readonly after?: string;
}

async function pageOfLedger(
  node: NodeContext,
  caller: Caller,
  name: string,
  filter: LedgerFilter,
): Promise<wire.Page<wire.OccurrenceView>> {
  const { reads, clock } = node.shardOf(caller.tenant);
  const now = clock.now();
  const from = filter.from === undefined ? FIRST_MOMENT : parseMoment(filter.from)!;
  // Future occurrences are not shown unless they are requested.
  const to = filter.to === undefined ? now : parseMoment(filter.to)!;
  const before = parsePosition(filter.after) ?? { at: to + 1, byHand: false };
  const part = { from, to, before, limit: filter.limit + 1 };
  const found = await reads.read(caller.tenant, async (db) => {
    const schedule = await findScheduleWithLedger(db, caller.tenant, name);
    return schedule && { schedule, rows: await readLedger(db, schedule.id, part, now) };
  });
  if (!found) throw notFound(name);
  const { schedule, rows } = found;
  const page = rows.slice(0, filter.limit);
  const open = filter.after === undefined ? skippedByNow(node, schedule, from, Math.min(to, now)) : null;
  return {
    data: [...(open ? [open] : []), ...page.map(toOccurrenceView)],
    next: rows.length > filter.limit ? writePosition(page.at(-1)!) : null,
  };
}

function preview(body: Static<typeof PreviewRequest>, now: number): wire.PreviewAnswer {
  const { from: since, count = PREVIEWED, ...when } = body;
  const from = since === undefined ? now : parseMoment(since)!;
  const table = parseTimetable(when, from);
  const data: { at: string; note?: string }[] = [];
  let at = table.next(from - 1);
  for (; at !== null && data.length < count; at = table.next(at)) {
    const note = table.note(at);
    data.push({ at: new Date(at).toISOString(), ...(note !== undefined && { note }) });
  }
  return { data };
}

/** The occurrences that a paused schedule has skipped so far; they are recorded when the pause ends. */
function skippedByNow(
  node: NodeContext,
  schedule: ScheduleRow,
  from: number,
  to: number,
): wire.OccurrenceView | null {
  if (!schedule.paused || schedule.deleted_at !== null) return null;
  const since = Math.max(schedule.watermark, from - 1);
  const parsed = tryParseStored(schedule, node.config);
  const range = parsed && rangeBetween(parsed, since, to);
  if (range === null) return null;
  return {
    at: new Date(range.from).toISOString(),
    state: 'skipped',
    reason: 'paused',
    ...(range.count > 1 && { count: range.count, until: new Date(range.until).toISOString() }),
  };
}

function by({ tenant, actor }: Caller, name: string, { author }: Call): Request {
  return { tenant, actor, name, author };
}

function notFound(name: string): PunctualError {
  return new PunctualError('SCHEDULE_NOT_FOUND', `There is no schedule ${name}.`);
}

function writePosition({ at, byHand }: LedgerPosition): string {
  return `${at}${byHand ? 'h' : ''}`;
}

function parsePosition(text: string | undefined): LedgerPosition | null {
  if (text === undefined) return null;
  const match = /^(-?\d{1,15})(h?)$/.exec(text);
  if (!match) throw wrongCursor();
  return { at: Number(match[1]), byHand: match[2] === 'h' };
}
