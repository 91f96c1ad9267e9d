import { invalid, PunctualError } from '../../core/errors.js';
import { parseMoment } from '../../core/moment.js';
import { parseTimetable } from '../../core/schedule-definition.js';
import {
  BackfillRequest,
  PreviewRequest,
  ScheduleChange,
  ScheduleInput,
} from '../../core/schemas/schedule.js';
import { validate } from '../../core/schemas/validate.js';
import type {
  BackfillAnswer,
  ListedSchedule,
  OccurrenceView,
  Page,
  PreviewAnswer,
  ScheduleView,
} from '../../core/wire.js';
import type { Altering, Request } from '../../schedule/altering.js';
import { tryParseStored } from '../../schedule/parsing.js';
import { rangeBetween } from '../../schedule/plan-firing.js';
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

const PREVIEWED = 10;

/** Schedules that are read at once: Postgres has to look through their definitions. */
const PORTION = 50;

/** The first moment that a date can say. */
const FIRST_MOMENT = -8.64e15;

/** Making, reading and steering schedules. Changes go through the leader; everything else any node can answer. */
export class Schedules implements ScheduleUseCases {
  constructor(private readonly node: NodeContext) {}

  async create(caller: Caller, body: unknown): Promise<{ name: string; schedule: Answered<ScheduleView> }> {
    const { altering } = (await this.node.leader()).schedules;
    const { name, paused = false, ...definition } = validate(ScheduleInput, body);
    await altering.create(by(caller, name), definition, paused);
    return { name, schedule: await this.get(caller, name) };
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
    const { altering } = (await this.node.leader()).schedules;
    await altering.change(by(caller, name), validate(ScheduleChange, body));
    return this.get(caller, name);
  }

  async remove(caller: Caller, name: string): Promise<void> {
    await (await this.node.leader()).schedules.altering.remove(by(caller, name));
  }

  pause(caller: Caller, name: string): Promise<Answered<ScheduleView>> {
    return this.steer(caller, name, (altering) => altering.pause(by(caller, name)));
  }

  resume(caller: Caller, name: string): Promise<Answered<ScheduleView>> {
    return this.steer(caller, name, (altering) => altering.resume(by(caller, name)));
  }

  async run(caller: Caller, name: string): Promise<JobView> {
    const id = await (await this.node.leader()).schedules.altering.run(by(caller, name));
    const row = await readJob(this.node.hot, caller.tenant, id);
    if (!row) throw new PunctualError('JOB_NOT_FOUND', `There is no job ${id}.`);
    return new JobView(row, null);
  }

  async backfill(caller: Caller, name: string, body: unknown): Promise<BackfillAnswer> {
    const { altering } = (await this.node.leader()).schedules;
    const { dryRun = false, ...range } = validate(BackfillRequest, body);
    const from = parseMoment(range.from)!;
    const to = parseMoment(range.to)!;
    if (to < from) throw invalid([{ pointer: '/to', detail: 'lies before from' }]);
    const { occurrences } = await altering.backfill(by(caller, name), { from, to, dryRun });
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
    const { from: since, count = PREVIEWED, ...when } = validate(PreviewRequest, body);
    const from = since === undefined ? this.node.clock.now() : parseMoment(since)!;
    const table = parseTimetable(when, from);
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
    steer: (altering: Altering) => Promise<void>,
  ): Promise<Answered<ScheduleView>> {
    await steer((await this.node.leader()).schedules.altering);
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
