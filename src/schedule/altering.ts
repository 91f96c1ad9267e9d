import { invalid, PunctualError } from '../core/errors.js';
import type { ScheduleDefinition } from '../core/schedule.js';
import {
  changed,
  checkComing,
  normalise,
  type ParsedSchedule,
  parseDefinition,
} from '../core/schedule-definition.js';
import { uuidv7 } from '../core/uuid.js';
import {
  deleteSchedule,
  type ScheduleUpdate,
  skipWaiting,
  updateSchedule,
} from '../store/change-schedule.js';
import { insertScheduledJobs, recordOccurrences } from '../store/fire-occurrences.js';
import { leaderTransaction } from '../store/leader-statement.js';
import { toWaiting } from '../store/new-waiting.js';
import { createSchedule, findSchedule, type ScheduleRow } from '../store/schedules.js';
import { type Backfill, type BackfillRange, backfill } from './backfilling.js';
import type { Firing } from './firing.js';
import type { InTurn } from './in-turn.js';
import type { Leader } from './leader.js';
import { fireAtFor, passedOverRow, planJob, rangeBetween, ranRow } from './plan-firing.js';
import { withdrawAhead } from './withdrawing.js';

/** Who asks, and about which schedule. */
export interface Request {
  readonly tenant: string;
  readonly actor: string;
  readonly name: string;
}

/** Whom a change concerns besides the table. */
export interface AlteringParts {
  onFireAt(at: number | null): void;
  onJudgeAt(at: number | null): void;
  onWaiting(): void;
}

type Reason = 'changed' | 'paused' | 'deleted';

/**
 * What people do to schedules. A change first decides everything that is due by now under the old definition,
 * then takes back what was made ahead and has not started: from the next occurrence on the new definition holds,
 * without a gap and without a double.
 */
export class Altering {
  constructor(
    private readonly leader: Leader,
    private readonly firing: Firing,
    private readonly inTurn: InTurn,
    private readonly parts: AlteringParts,
  ) {}

  async create(
    { tenant, actor, name }: Request,
    input: Readonly<Record<string, unknown>>,
    paused: boolean,
  ): Promise<void> {
    const { leader } = this;
    const taken = new PunctualError('SCHEDULE_EXISTS', `There is a schedule ${name} already.`);
    // Before anything else: whoever makes it again may name a moment that has passed meanwhile.
    if (await findSchedule(leader.hot, tenant, name)) throw taken;
    const now = leader.clock.now();
    const definition = normalise(input);
    const parsed = this.parse(definition, now, now);
    const id = uuidv7(now);
    const fireAt = paused ? null : fireAtFor({ id }, parsed, now);
    const stored = await leader.write(() =>
      createSchedule(leader.hot, leader.term, {
        ...{ id, tenant, name, paused, fireAt, createdAt: now, createdBy: actor },
        definition: JSON.stringify(definition),
      }),
    );
    if (!stored) throw taken;
    this.parts.onFireAt(fireAt);
  }

  /** Changes the definition, from the next occurrence on. A change to what is there already changes nothing. */
  change(request: Request, change: Readonly<Record<string, unknown>>): Promise<void> {
    return this.inTurn.run(async () => {
      const found = await this.mustFind(request);
      const now = this.leader.clock.now();
      const definition = changed(JSON.parse(found.definition), change);
      const text = JSON.stringify(definition);
      if (text === found.definition) return;
      const parsed = this.parse(definition, now, found.created_at);
      const schedule = await this.settle(found, now, false);
      await this.alter(request, schedule, now, 'changed', (watermark) => ({
        definition: text,
        paused: schedule.paused,
        watermark,
        fireAt: schedule.paused ? null : fireAtFor(schedule, parsed, watermark),
      }));
    });
  }

  /** Makes no more jobs; occurrences from now on are skipped. */
  pause(request: Request): Promise<void> {
    return this.inTurn.run(async () => {
      const found = await this.mustFind(request);
      if (found.paused)
        throw new PunctualError('ALREADY_PAUSED', `Schedule ${found.name} is paused already.`);
      const now = this.leader.clock.now();
      const schedule = await this.settle(found, now, true);
      await this.alter(request, schedule, now, 'paused', (watermark) => ({
        ...{ definition: schedule.definition, paused: true, watermark, fireAt: null },
      }));
    });
  }

  /** Goes on with the next occurrence. */
  resume(request: Request): Promise<void> {
    return this.inTurn.run(async () => {
      const found = await this.mustFind(request);
      if (!found.paused) throw new PunctualError('NOT_PAUSED', `Schedule ${found.name} is not paused.`);
      const now = this.leader.clock.now();
      const schedule = await this.settle(found, now, true);
      const parsed = this.firing.parsing.parse(schedule);
      await this.alter(request, schedule, now, 'changed', (watermark) => ({
        ...{ definition: schedule.definition, paused: false, watermark },
        fireAt: fireAtFor(schedule, parsed, watermark),
      }));
      this.parts.onWaiting();
    });
  }

  /** Ends a schedule; jobs that have started go on, and the ledger stays. */
  remove(request: Request): Promise<void> {
    return this.inTurn.run(async () => {
      const now = this.leader.clock.now();
      const schedule = await this.settle(await this.mustFind(request), now, true);
      await this.alter(request, schedule, now, 'deleted', null);
    });
  }

  /** Makes a job now, beside the timetable; answers with its id. */
  run(request: Request): Promise<string> {
    return this.inTurn.run(async () => {
      const { leader, firing } = this;
      const schedule = await this.mustFind(request);
      const parsed = firing.parsing.parse(schedule);
      const now = leader.clock.now();
      // Two runs in one millisecond must not be one.
      for (let at = now; ; at++) {
        const job = planJob(parsed, at, now, now);
        const jobs = await firing.makeJobs([{ schedule, job, byHandOf: request.actor }]);
        const row = ranRow(schedule, parsed, job, now, { byHand: true, reason: 'manual' });
        const made = await leader.write(() =>
          leaderTransaction(leader.hot, leader.term, async (db) => {
            if (!(await recordOccurrences(db, [row], now)).has(job.id)) return false;
            await insertScheduledJobs(db, jobs, now);
            return true;
          }),
        );
        if (!made) continue;
        await leader.admit(jobs.map((each) => toWaiting(each.row)));
        this.parts.onJudgeAt(row.judgeAt);
        return job.id;
      }
    });
  }

  /** Runs the occurrences of a past time that have no run on record. */
  backfill(request: Request, range: BackfillRange): Promise<Backfill> {
    return this.inTurn.run(async () => {
      const now = this.leader.clock.now();
      if (range.to > now) throw invalid([{ pointer: '/to', detail: 'must not lie in the future' }]);
      const schedule = await this.settle(await this.mustFind(request), now, true);
      return backfill(this.leader, this.firing, schedule, range);
    });
  }

  private parse(definition: ScheduleDefinition, now: number, createdAt: number): ParsedSchedule {
    const parsed = parseDefinition(definition, { ...this.leader.config, now, createdAt });
    checkComing(parsed, definition, now);
    return parsed;
  }

  private async mustFind({ tenant, name }: Pick<Request, 'tenant' | 'name'>): Promise<ScheduleRow> {
    const found = await findSchedule(this.leader.hot, tenant, name);
    if (!found) throw new PunctualError('SCHEDULE_NOT_FOUND', `There is no schedule ${name}.`);
    return found;
  }

  /** Decides every occurrence that is due by now. */
  private async settle(schedule: ScheduleRow, now: number, heedJitter: boolean): Promise<ScheduleRow> {
    const { firing, parts } = this;
    if (schedule.paused) {
      const parsed = this.tryParse(schedule);
      const range = parsed && rangeBetween(parsed, schedule.watermark, now);
      const { id, version, watermark: from } = schedule;
      const rows = range === null ? [] : [passedOverRow(schedule, range, 'skipped', 'paused')];
      // What was made ahead and had gone when the pause began is decided beyond now.
      const move = { id, version, from, watermark: Math.max(from, now), fireAt: null, lastJob: null };
      await firing.storeOne({ schedule, move, rows, jobs: [], cancel: null });
      return this.mustFind(schedule);
    }
    for (let before = schedule; ; ) {
      const fired = await firing.fire([before], { aheadMs: 0, heedJitter });
      parts.onJudgeAt(fired.judgeAt);
      if (fired.waiting) parts.onWaiting();
      const after = await this.mustFind(schedule);
      // One transaction takes a part of a long downtime; what does not move on waits for its jitter.
      if (after.watermark >= now || after.watermark === before.watermark) return after;
      before = after;
    }
  }

  /** Null for a definition that this program does not understand: it can still be changed and deleted. */
  private tryParse(schedule: ScheduleRow): ParsedSchedule | null {
    try {
      return this.firing.parsing.parse(schedule);
    } catch {
      return null;
    }
  }

  /** Takes back what was made ahead, and changes the schedule, or ends it when there is no update. */
  private async alter(
    { actor }: Request,
    schedule: ScheduleRow,
    now: number,
    reason: Reason,
    update: ((watermark: number) => ScheduleUpdate) | null,
  ): Promise<void> {
    const { leader } = this;
    const parsed = this.tryParse(schedule);
    const left = reason === 'changed' || !parsed ? null : rangeBetween(parsed, schedule.watermark, now);
    let fireAt: number | null = null;
    const jitterMs = parsed?.jitterMs ?? 0;
    await withdrawAhead(leader, { schedule, parsed: { jitterMs }, now, reason }, async (db, lastKept) => {
      if (left !== null) await recordOccurrences(db, [passedOverRow(schedule, left, 'skipped', reason)], now);
      const decided = reason === 'changed' ? Math.min(now, schedule.watermark) : now;
      const next = update?.(Math.max(decided, lastKept)) ?? null;
      if (next === null) await skipWaiting(db, schedule.id, reason);
      const done =
        next === null
          ? await deleteSchedule(db, schedule, actor, now)
          : await updateSchedule(db, schedule, next, actor, now);
      if (!done) throw new Error(`schedule ${schedule.name} changed while it was being changed`);
      fireAt = next?.fireAt ?? null;
    });
    this.parts.onFireAt(fireAt);
  }
}
