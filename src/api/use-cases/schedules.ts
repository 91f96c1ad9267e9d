import { type FieldError, invalid, PunctualError } from '../../core/errors.js';
import { FieldReader, isPlainObject, parseMoment } from '../../core/fields.js';
import { rangeBetween } from '../../core/schedule/catch-up.js';
import { timetable } from '../../core/schedule/timetable.js';
import { DEFINITION_FIELDS, readWhen, TIMING_FIELDS } from '../../core/schedule-definition.js';
import type {
  BackfillAnswer,
  ListedSchedule,
  OccurrenceView,
  Page,
  PreviewAnswer,
  ScheduleView,
} from '../../core/wire.js';
import { tryParseStored } from '../../schedule/parsed-schedules.js';
import type { Request, ScheduleChanges } from '../../schedule/schedule-changes.js';
import { type LedgerPosition, readLedger } from '../../store/occurrences.js';
import { readJob } from '../../store/read-job.js';
import {
  findScheduleWithLedger,
  listSchedules,
  readSchedule,
  type ScheduleRow,
  type ScheduleWithLast,
} from '../../store/schedules.js';
import type { NodeContext } from '../context.js';
import { JobView } from '../job-view.js';
import type { Answered } from '../json-text.js';
import { writePage } from '../page-text.js';
import { ScheduleText, toOccurrenceView } from '../schedule-view.js';
import type { Caller, LedgerFilter, ScheduleFilter, ScheduleUseCases } from '../use-cases.js';

const PREVIEW_FIELDS = [...TIMING_FIELDS, 'timezone', 'dst', 'startAt', 'endAt', 'from', 'count'];
const PREVIEWED = 10;
const MOST_PREVIEWED = 1_000;

/** Schedules that are read at once: Postgres has to look through their definitions. */
const PORTION = 50;

/** The first moment that a date can say. */
const FIRST_MOMENT = -8.64e15;

/** Making, reading and steering schedules. Changes go through the leader; everything else any node can answer. */
export class Schedules implements ScheduleUseCases {
  constructor(private readonly node: NodeContext) {}

  async create(caller: Caller, body: unknown): Promise<{ name: string; schedule: Answered<ScheduleView> }> {
    const { changes } = (await this.node.leader()).schedules;
    const fields = new FieldReader(body, '', ['name', 'paused', ...DEFINITION_FIELDS]);
    if (isPlainObject(body)) fields.require('name');
    const name = fields.name('name');
    const paused = fields.boolean('paused') ?? false;
    if (fields.errors.length > 0) throw invalid(fields.errors);
    const { name: _name, paused: _paused, ...definition } = body as Record<string, unknown>;
    await changes.create(by(caller, name!), definition, paused);
    return { name: name!, schedule: await this.get(caller, name!) };
  }

  async list(caller: Caller, filter: ScheduleFilter): Promise<Answered<Page<ListedSchedule>>> {
    const { pool, config, clock } = this.node;
    const now = clock.now();
    const withPayloads = filter.include?.includes('payload') ?? false;
    return writePage<ScheduleWithLast>(filter.limit, {
      portion: PORTION,
      read: (last, size) =>
        listSchedules(
          pool,
          caller.tenant,
          { after: last?.name ?? filter.after ?? '', withPayloads },
          size,
          now,
        ),
      write: (row) => new ScheduleText(row, config, now).text,
      cursor: (row) => row.name,
    });
  }

  async get(caller: Caller, name: string): Promise<Answered<ScheduleView>> {
    const { hot, config, clock } = this.node;
    const now = clock.now();
    const row = await readSchedule(hot, caller.tenant, name, now);
    if (!row) throw notFound(name);
    return new ScheduleText(row, config, now);
  }

  async change(caller: Caller, name: string, body: unknown): Promise<Answered<ScheduleView>> {
    const { changes } = (await this.node.leader()).schedules;
    const { errors } = new FieldReader(body, '', DEFINITION_FIELDS);
    if (isPlainObject(body) && Object.keys(body).length === 0) {
      errors.push({ pointer: '', detail: 'must have at least one field' });
    }
    if (errors.length > 0) throw invalid(errors);
    await changes.change(by(caller, name), body as Record<string, unknown>);
    return this.get(caller, name);
  }

  async remove(caller: Caller, name: string): Promise<void> {
    await (await this.node.leader()).schedules.changes.remove(by(caller, name));
  }

  pause(caller: Caller, name: string): Promise<Answered<ScheduleView>> {
    return this.steer(caller, name, (changes) => changes.pause(by(caller, name)));
  }

  resume(caller: Caller, name: string): Promise<Answered<ScheduleView>> {
    return this.steer(caller, name, (changes) => changes.resume(by(caller, name)));
  }

  async run(caller: Caller, name: string): Promise<JobView> {
    const id = await (await this.node.leader()).schedules.changes.run(by(caller, name));
    const row = await readJob(this.node.hot, caller.tenant, id);
    if (!row) throw new PunctualError('JOB_NOT_FOUND', `There is no job ${id}.`);
    return new JobView(row, null);
  }

  async backfill(caller: Caller, name: string, body: unknown): Promise<BackfillAnswer> {
    const { changes } = (await this.node.leader()).schedules;
    const fields = new FieldReader(body, '', ['from', 'to', 'dryRun']);
    if (isPlainObject(body)) fields.require('from', 'to');
    const from = fields.moment('from') ?? 0;
    const to = fields.moment('to') ?? 0;
    const dryRun = fields.boolean('dryRun') ?? false;
    if (fields.errors.length === 0 && to < from) fields.wrong('to', 'lies before from');
    if (fields.errors.length > 0) throw invalid(fields.errors);
    const { occurrences } = await changes.backfill(by(caller, name), { from, to, dryRun });
    return {
      matched: occurrences.length,
      started: dryRun ? 0 : occurrences.length,
      dryRun,
      occurrences: occurrences.map((at) => new Date(at).toISOString()),
    };
  }

  async occurrences(caller: Caller, name: string, filter: LedgerFilter): Promise<Page<OccurrenceView>> {
    const { pool, clock } = this.node;
    const now = clock.now();
    const schedule = await findScheduleWithLedger(pool, caller.tenant, name);
    if (!schedule) throw notFound(name);
    const from = filter.from === undefined ? FIRST_MOMENT : parseMoment(filter.from)!;
    // What lies ahead is not yet part of the ledger, unless it is asked for.
    const to = filter.to === undefined ? now : parseMoment(filter.to)!;
    const before = parsePosition(filter.after) ?? { at: to + 1, byHand: false };
    const rows = await readLedger(pool, schedule.id, { from, to, before, limit: filter.limit + 1 }, now);
    const page = rows.slice(0, filter.limit);
    const open = filter.after === undefined ? this.skippedByNow(schedule, from, Math.min(to, now)) : null;
    return {
      data: [...(open ? [open] : []), ...page.map(toOccurrenceView)],
      next: rows.length > filter.limit ? writePosition(page.at(-1)!) : null,
    };
  }

  async preview(_caller: Caller, body: unknown): Promise<PreviewAnswer> {
    const errors: FieldError[] = [];
    const fields = new FieldReader(body, '', PREVIEW_FIELDS, errors);
    const from = fields.moment('from') ?? this.node.clock.now();
    const count = fields.integer('count', 1, MOST_PREVIEWED) ?? PREVIEWED;
    const { timing, startAt, endAt } = readWhen(fields, body, from);
    if (errors.length > 0 || !timing) throw invalid(errors);
    const table = timetable(timing, { startAt, endAt });
    const data: { at: string; note?: string }[] = [];
    let at = table.next(from - 1);
    for (; at !== null && data.length < count; at = table.next(at)) {
      const note = table.note(at);
      data.push({ at: new Date(at).toISOString(), ...(note !== undefined && { note }) });
    }
    return { data };
  }

  private async steer(
    caller: Caller,
    name: string,
    steer: (changes: ScheduleChanges) => Promise<void>,
  ): Promise<Answered<ScheduleView>> {
    await steer((await this.node.leader()).schedules.changes);
    return this.get(caller, name);
  }

  /** What a paused schedule has skipped so far; it is recorded when the pause ends. */
  private skippedByNow(schedule: ScheduleRow, from: number, to: number): OccurrenceView | null {
    if (!schedule.paused || schedule.deleted_at !== null) return null;
    const since = Math.max(schedule.watermark, from - 1);
    const parsed = tryParseStored(schedule, this.node.config);
    const range = parsed && rangeBetween(parsed, since, to);
    if (range === null) return null;
    return {
      at: new Date(range.from).toISOString(),
      state: 'skipped',
      reason: 'paused',
      ...(range.count > 1 && { count: range.count, until: new Date(range.until).toISOString() }),
    };
  }
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
