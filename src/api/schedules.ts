import type { Static } from 'typebox';
import { invalid, PunctualError } from '../core/errors.js';
import { parseMoment } from '../core/moment.js';
import { rangeBetween } from '../core/schedule/catch-up.js';
import type { ScheduleDefinition } from '../core/schedule.js';
import { parseTimetable } from '../core/schedule-definition.js';
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
import type * as wire from '../core/wire.js';
import { tryParseStored } from '../schedule/parsed-schedules.js';
import type { Request } from '../schedule/schedule-changes.js';
import { type LedgerPosition, readLedger } from '../store/occurrences.js';
import { readJob } from '../store/read-job.js';
import {
  findScheduleWithLedger,
  listSchedules,
  readSchedule,
  type ScheduleRow,
  type ScheduleWithLast,
} from '../store/schedules.js';
import type { Caller } from './caller.js';
import type { NodeContext } from './context.js';
import { JobView } from './job-view.js';
import { writePage } from './page-text.js';
import { forbidden, limitsOf, mayTouch, mustAllow, type Place } from './restrictions.js';
import { Answer, json, ONE_PAYLOAD, type Route, route } from './route.js';
import { ScheduleText, toOccurrenceView } from './schedule-view.js';

const PREVIEWED = 10;

/** Schedules that one statement reads; few, because Postgres has to parse their definitions. */
const PORTION = 50;

/** The first moment that a `Date` can hold. */
const FIRST_MOMENT = -8.64e15;

/** Making, reading and changing schedules. Changes go through the leader; any node answers reads. */
export const scheduleRoutes: readonly Route[] = [
  route({
    id: 'createSchedule',
    method: 'POST',
    path: '/v1/schedules',
    tag: 'schedules',
    summary: 'Make a schedule. A name that is taken: 409.',
    scope: 'admin',
    body: json(ScheduleInput, { maxBytes: ONE_PAYLOAD }),
    answers: { 201: ScheduleView },
    run: async ({ node, caller, body }) => {
      const { changes } = (await node.shardOf(caller.tenant).leader()).schedules;
      const { name, paused = false, ...definition } = body;
      mustAllow(caller, placeOf(definition));
      await changes.create(by(caller, name), definition, paused);
      const schedule = await viewSchedule(node, caller, name);
      return new Answer(201, schedule, { location: `/v1/schedules/${encodeURIComponent(name)}` });
    },
  }),
  route({
    id: 'applySchedules',
    method: 'PUT',
    path: '/v1/schedules',
    tag: 'schedules',
    summary:
      'Make the schedules of a program what its code says; with `dryRun`, tell what would be done. One that another program manages: 409, and nothing is done.',
    scope: 'admin',
    body: json(ScheduleSet, { lists: ['schedules'] }),
    answers: { 200: AppliedSchedules },
    repeatable: true,
    run: async ({ node, caller, body: { managedBy, schedules, prune = false, dryRun = false } }) => {
      // It may remove schedules that the request does not name.
      if (limitsOf(caller)) throw forbidden('The key is restricted: it changes schedules one by one.');
      const leader = await node.shardOf(caller.tenant).leader();
      const owner = { tenant: caller.tenant, actor: caller.actor, name: managedBy };
      return leader.schedules.manage(owner, schedules, { prune, dryRun });
    },
  }),
  route({
    id: 'changeSchedule',
    method: 'PATCH',
    path: '/v1/schedules/:name',
    tag: 'schedules',
    summary: 'Change a schedule from its next occurrence on; null takes a field back to its default.',
    scope: 'admin',
    params: NamePath,
    body: json(ScheduleChange, { maxBytes: ONE_PAYLOAD }),
    answers: { 200: ScheduleView },
    run: async ({ node, caller, params: { name }, body }) => {
      const definition = await mustReach(node, caller, name);
      if (definition) mustAllow(caller, placeOf({ ...definition, ...body }));
      const { changes } = (await node.shardOf(caller.tenant).leader()).schedules;
      await changes.change(by(caller, name), body);
      return viewSchedule(node, caller, name);
    },
  }),
  route({
    id: 'deleteSchedule',
    method: 'DELETE',
    path: '/v1/schedules/:name',
    tag: 'schedules',
    summary: 'Delete a schedule. Jobs that have started go on, and its ledger stays.',
    scope: 'admin',
    params: NamePath,
    answers: { 204: 'The schedule is gone.' },
    run: async ({ node, caller, params }) => {
      await mustReach(node, caller, params.name);
      const { changes } = (await node.shardOf(caller.tenant).leader()).schedules;
      await changes.remove(by(caller, params.name));
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
      const { pool, clock } = node.shardOf(tenant);
      const now = clock.now();
      const withPayloads = include !== undefined;
      return writePage<ScheduleWithLast>(limit, {
        portion: PORTION,
        read: (last, size) =>
          listSchedules(pool, tenant, { after: last?.name ?? after, withPayloads }, size, now),
        isShown: (row) => !limitsOf(caller) || mayTouch(caller, placeOf(JSON.parse(row.definition))),
        write: (row) => new ScheduleText(row, node.config, now).text,
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
    method: 'POST',
    path: '/v1/schedules/preview',
    tag: 'schedules',
    summary: 'The next moments of an expression, without making a schedule.',
    scope: 'read',
    body: json(PreviewRequest),
    answers: { 200: PreviewAnswer },
    run: ({ node, caller, body }) => preview(body, node.shardOf(caller.tenant).clock.now()),
  }),
  steering('pause', 'Skip the occurrences of a schedule until it is resumed.'),
  steering('resume', 'Go on with the next occurrence.'),
  route({
    id: 'runSchedule',
    method: 'POST',
    path: '/v1/schedules/:name/run',
    tag: 'schedules',
    summary: 'Make a job of the schedule now, beside its timetable.',
    scope: 'submit',
    params: NamePath,
    answers: { 201: Job },
    run: async ({ node, caller, params: { name } }) => {
      await mustReach(node, caller, name);
      const shard = node.shardOf(caller.tenant);
      const id = await (await shard.leader()).schedules.changes.run(by(caller, name));
      const row = await readJob(shard.hot, caller.tenant, id);
      if (!row) throw new PunctualError('JOB_NOT_FOUND', `There is no job ${id}.`);
      return new Answer(201, new JobView(row, null), { location: `/v1/jobs/${id}` });
    },
  }),
  route({
    id: 'backfillSchedule',
    method: 'POST',
    path: '/v1/schedules/:name/backfill',
    tag: 'schedules',
    summary: 'Run the occurrences of a past time that have no run on record.',
    scope: 'submit',
    params: NamePath,
    body: json(BackfillRequest),
    answers: { 200: BackfillAnswer },
    run: async ({ node, caller, params: { name }, body }) => {
      await mustReach(node, caller, name);
      const { changes } = (await node.shardOf(caller.tenant).leader()).schedules;
      const range = toRange(body);
      const { occurrences } = await changes.backfill(by(caller, name), range);
      return {
        matched: occurrences.length,
        started: range.dryRun ? 0 : occurrences.length,
        dryRun: range.dryRun,
        occurrences: occurrences.map((at) => new Date(at).toISOString()),
      };
    },
  }),
];

function steering(verb: 'pause' | 'resume', summary: string): Route {
  return route({
    id: `${verb}Schedule`,
    method: 'POST',
    path: `/v1/schedules/:name/${verb}`,
    tag: 'schedules',
    summary: `${summary} Already so: 409.`,
    scope: 'admin',
    params: NamePath,
    answers: { 200: ScheduleView },
    run: async ({ node, caller, params: { name } }) => {
      await mustReach(node, caller, name);
      const { changes } = (await node.shardOf(caller.tenant).leader()).schedules;
      await changes[verb](by(caller, name));
      return viewSchedule(node, caller, name);
    },
  });
}

function toRange({ dryRun = false, ...range }: Static<typeof BackfillRequest>) {
  const from = parseMoment(range.from)!;
  const to = parseMoment(range.to)!;
  if (to < from) throw invalid([{ pointer: '/to', detail: 'lies before from' }]);
  return { from, to, dryRun };
}

async function viewSchedule(node: NodeContext, caller: Caller, name: string): Promise<ScheduleText> {
  const { tenant } = caller;
  const { hot, clock } = node.shardOf(tenant);
  const now = clock.now();
  const row = await readSchedule(hot, tenant, name, now);
  if (!row || (limitsOf(caller) && !mayTouch(caller, placeOf(JSON.parse(row.definition)))))
    throw notFound(name);
  return new ScheduleText(row, node.config, now);
}

/** The queue and task of a definition. */
function placeOf({ queue, task }: { queue?: string | null; task?: string | null }): Place {
  return { queue: queue ?? 'default', task: task ?? null };
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
  const definition = row && (JSON.parse(row.definition) as ScheduleDefinition);
  if (!definition || !mayTouch(caller, placeOf(definition))) throw notFound(name);
  return definition;
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
  const { pool, clock } = node.shardOf(caller.tenant);
  const now = clock.now();
  const schedule = await findScheduleWithLedger(pool, caller.tenant, name);
  if (!schedule) throw notFound(name);
  const from = filter.from === undefined ? FIRST_MOMENT : parseMoment(filter.from)!;
  // Future occurrences are not shown unless they are requested.
  const to = filter.to === undefined ? now : parseMoment(filter.to)!;
  const before = parsePosition(filter.after) ?? { at: to + 1, byHand: false };
  const rows = await readLedger(pool, schedule.id, { from, to, before, limit: filter.limit + 1 }, now);
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

function by({ tenant, actor }: Caller, name: string): Request {
  return { tenant, actor, name };
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
  if (!match) throw invalid([{ pointer: '/after', detail: 'must be the "next" of an earlier page' }]);
  return { at: Number(match[1]), byHand: match[2] === 'h' };
}
