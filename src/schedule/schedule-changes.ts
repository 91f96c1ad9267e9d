import {
  type AuditAction,
  type AuditAuthor,
  type AuditChange,
  type AuditEntry,
  auditEntry,
  hashed,
  targetView,
} from '../core/audit.js';
import { invalid, PunctualError } from '../core/errors.js';
import type { Target } from '../core/job.js';
import { overQuota, type Quotas } from '../core/quotas.js';
import { rangeBetween } from '../core/schedule/catch-up.js';
import type { ScheduleDefinition } from '../core/schedule.js';
import {
  changed,
  checkComing,
  normalise,
  type ParsedSchedule,
  parseDefinition,
} from '../core/schedule-definition.js';
import { type SerialQueue, SerialQueues } from '../core/serial-queue.js';
import type { ParsedSubmission } from '../core/submission.js';
import { NO_TASKS, type TaskLookup } from '../core/task-defaults.js';
import { uuidv7 } from '../core/uuid.js';
import { addEntry } from '../store/audit.js';
import { auditedWork } from '../store/audited-work.js';
import {
  deleteSchedule,
  type ScheduleUpdate,
  skipWaiting,
  updateSchedule,
} from '../store/change-schedule.js';
import type { Queryable } from '../store/database.js';
import { recordOccurrences } from '../store/fire-occurrences.js';
import { type Keep, keepLast } from '../store/idempotency.js';
import type { PlacedRow } from '../store/job-places.js';
import { Names } from '../store/names.js';
import { countSchedules, createSchedule, findSchedule, type ScheduleRow } from '../store/schedules.js';
import { findTenant, quotasOfRow } from '../store/tenants.js';
import { type Backfill, type BackfillRange, backfill } from './backfill.js';
import type { OccurrenceFirer } from './occurrence-firer.js';
import {
  fireAtFor,
  type GoodRun,
  idsOf,
  passedOverRow,
  planRun,
  type RunIds,
  ranRow,
} from './plan-firing.js';
import type { ScheduleLeader } from './schedule-leader.js';
import { withdrawJobs } from './withdraw-jobs.js';

/** Who asks for a change, and of which schedule. */
export interface Request {
  readonly tenant: string;
  readonly actor: string;
  readonly name: string;
  /** Who asks, for the audit; missing for what is not recorded there. */
  readonly author?: AuditAuthor;
}

/** What the leader must do after a change. */
interface ChangeListener {
  onFireAt(at: number | null): void;
  onLatenessCheckAt(at: number | null): void;
  onWaiting(): void;
}

type Reason = 'changed' | 'paused' | 'deleted';

/**
 * The changes that users make to schedules; `keep` stores the answer to the request in the same transaction. A change first decides every occurrence that is due by now under the old
 * definition, then withdraws the jobs that were made ahead and have not started. From the next occurrence on the new
 * definition holds; no occurrence is lost and none runs twice.
 */
export class ScheduleChanges {
  private readonly names: Names;
  /** By tenant, so that none waits for another. */
  private readonly creating = new SerialQueues();

  constructor(
    private readonly leader: ScheduleLeader,
    private readonly firer: OccurrenceFirer,
    /** Everything that writes about schedules goes through this queue. */
    private readonly writes: SerialQueue,
    private readonly listener: ChangeListener,
  ) {
    this.names = new Names(leader.hot, leader.config);
  }

  async create(
    request: Request,
    input: Readonly<Record<string, unknown>>,
    paused: boolean,
    managedBy: string | null = null,
    keep?: Keep<void>,
  ): Promise<void> {
    const { leader } = this;
    const { tenant, actor, name } = request;
    const taken = new PunctualError('SCHEDULE_EXISTS', `There is a schedule ${name} already.`);
    // First of all: a repeated request may name a moment that has passed meanwhile, and must still hear that it exists.
    if (await findSchedule(leader.hot, tenant, name)) throw taken;
    const now = leader.clock.now();
    const definition = normalise(input);
    const parsed = this.parse(definition, now, now, await this.tasksOf(tenant, definition));
    await this.mustRun(tenant, parsed, now);
    const id = uuidv7(now);
    const fireAt = paused ? null : fireAtFor({ id }, parsed, now);
    const text = JSON.stringify(definition);
    const after = scheduleView({ definition: text, paused, managed_by: managedBy });
    const entry = this.entry(request, now, 'schedule.create', { after });
    const keepIt = keep && ((db: Queryable) => keep(db));
    // Those of a tenant one after the other, and by the leader alone, so that the quota is exact.
    const stored = await this.creating.run(tenant, async () => {
      await this.mustHaveRoom(tenant);
      return leader.writeRequested(entry, keepIt, (db, term) =>
        createSchedule(db, term, {
          ...{ id, tenant, name, paused, fireAt, createdAt: now, createdBy: actor, managedBy },
          definition: text,
        }),
      );
    });
    if (!stored) throw taken;
    if (leader.events.isHeard) leader.events.scheduleChanged(tenant, name, 'created');
    this.listener.onFireAt(fireAt);
  }

  private async mustHaveRoom(tenant: string): Promise<void> {
    const limit = (await this.quotasOf(tenant))?.schedules ?? null;
    if (limit === null || (await countSchedules(this.leader.hot, tenant, limit)) < limit) return;
    throw overQuota('schedules', limit, `Tenant ${tenant} may have ${limit} schedules.`);
  }

  private async mustFitPayload(tenant: string, run: GoodRun): Promise<void> {
    const limit = (await this.quotasOf(tenant))?.payloadBytes ?? null;
    if (limit === null) return;
    const large = submissionsOf(run).findIndex(({ payload }) => Buffer.byteLength(payload) > limit);
    if (large < 0) return;
    const pointer = run.kind === 'batch' ? `/batch/jobs/${large}/payload` : '/payload';
    const detail = `must be at most ${limit} bytes as JSON, by the quota of the tenant`;
    throw new PunctualError('PAYLOAD_TOO_LARGE', `${pointer}: ${detail}`, {
      errors: [{ pointer, detail }],
      quota: { name: 'payloadBytes', limit },
    });
  }

  /**
   * Checks what a schedule runs as it would run now, where the user can be told: the definition of a workflow and its input, the
   * members of a batch, the quotas of payloads and of label sets. Firing makes whatever names it needs.
   */
  private async mustRun(tenant: string, parsed: ParsedSchedule, now: number): Promise<void> {
    const run = await this.firer.runs.load(tenant, parsed.work);
    if (run.kind === 'refused') throw ofSchedule(run.error);
    await this.mustFitPayload(tenant, run);
    const kinds = submissionsOf(run).map(({ definition: { queue, needs } }) => ({ tenant, queue, needs }));
    await this.names.resolve(kinds, now);
  }

  private async quotasOf(tenant: string): Promise<Quotas | null> {
    const row = await findTenant(this.leader.hot, tenant);
    return row && quotasOfRow(row);
  }

  /** Changes the definition from the next occurrence on. A change that leaves it as it is writes nothing. */
  async change(request: Request, change: Readonly<Record<string, unknown>>): Promise<void> {
    await this.edit(request, (found) => changed(JSON.parse(found.definition), change));
  }

  /**
   * Makes a schedule what the code of `owner` says; answers whether it differed. One that is in the code of somebody else
   * stays as it is, and one that is in nobody's stays nobody's: whoever did not create it must not remove it.
   */
  replace(request: Request, input: Readonly<Record<string, unknown>>, owner: string): Promise<boolean> {
    return this.edit(request, (found) => {
      mustNotBeOfOthers(found, owner);
      return normalise(input);
    });
  }

  private edit(request: Request, edit: (found: ScheduleRow) => ScheduleDefinition): Promise<boolean> {
    return this.writes.run(async () => {
      const found = await this.mustFind(request);
      const now = this.leader.clock.now();
      const definition = edit(found);
      const text = JSON.stringify(definition);
      if (text === found.definition) return false;
      const tasks = await this.tasksOf(request.tenant, definition);
      const parsed = this.parse(definition, now, found.created_at, tasks);
      await this.mustRun(request.tenant, parsed, now);
      const schedule = await this.decideDue(found, now, false);
      const entry = this.entryOf(request, schedule, 'schedule.change', { definition: text });
      await this.writeChange(request, schedule, now, 'changed', entry, (watermark) => ({
        definition: text,
        paused: schedule.paused,
        watermark,
        fireAt: schedule.paused ? null : fireAtFor(schedule, parsed, watermark),
      }));
      return true;
    });
  }

  /** Pauses a schedule: occurrences from now on are skipped. */
  pause(request: Request, keep?: Keep<void>): Promise<void> {
    return this.writes.run(async () => {
      const found = await this.mustFind(request);
      if (found.paused)
        throw new PunctualError('ALREADY_PAUSED', `Schedule ${found.name} is paused already.`);
      await this.pauseNow(request, found, { keep });
    });
  }

  /**
   * Pauses the schedule that made a job, because the URL of the job is gone; answers whether it did. A schedule that is paused,
   * deleted, or calls something else by now stays as it is.
   */
  pauseGone(tenant: string, name: string, job: Pick<PlacedRow, 'task' | 'target'>): Promise<boolean> {
    return this.writes.run(async () => {
      const found = await findSchedule(this.leader.hot, tenant, name);
      if (!found || found.paused || !isSameCall(found, job)) return false;
      await this.pauseNow({ tenant, name, actor: SYSTEM.keyName, author: SYSTEM }, found, { why: 'gone' });
      return true;
    });
  }

  private async pauseNow(
    request: Request,
    found: ScheduleRow,
    { keep, why }: { readonly keep?: Keep<void> | undefined; readonly why?: 'gone' },
  ): Promise<void> {
    const now = this.leader.clock.now();
    const schedule = await this.decideDue(found, now, true);
    const entry = this.entryOf(request, schedule, 'schedule.pause', { paused: true }, why);
    const update = (watermark: number) => ({
      ...{ definition: schedule.definition, paused: true, watermark, fireAt: null },
    });
    await this.writeChange(request, schedule, now, 'paused', entry, update, { keep, why });
  }

  /** Resumes a schedule with its next occurrence. */
  resume(request: Request, keep?: Keep<void>): Promise<void> {
    return this.writes.run(async () => {
      const found = await this.mustFind(request);
      if (!found.paused) throw new PunctualError('NOT_PAUSED', `Schedule ${found.name} is not paused.`);
      const now = this.leader.clock.now();
      const schedule = await this.decideDue(found, now, true);
      const parsed = this.firer.parsedSchedules.parse(schedule);
      const entry = this.entryOf(request, schedule, 'schedule.resume', { paused: false });
      const update = (watermark: number) => ({
        ...{ definition: schedule.definition, paused: false, watermark },
        fireAt: fireAtFor(schedule, parsed, watermark),
      });
      await this.writeChange(request, schedule, now, 'changed', entry, update, { keep });
      this.listener.onWaiting();
    });
  }

  /** Deletes a schedule. Jobs that are due or have started go on, and the ledger stays. */
  remove(request: Request): Promise<void> {
    return this.writes.run(async () =>
      this.removeNow(request, await this.mustFind(request), 'schedule.delete'),
    );
  }

  /** Deletes a schedule if it is in the code of `owner`; answers whether it was. */
  removeManaged(request: Request, owner: string): Promise<boolean> {
    return this.writes.run(async () => {
      const found = await findSchedule(this.leader.hot, request.tenant, request.name);
      if (found?.managed_by !== owner) return false;
      await this.removeNow(request, found, 'schedule.prune');
      return true;
    });
  }

  private async removeNow(
    request: Request,
    found: ScheduleRow,
    action: 'schedule.delete' | 'schedule.prune',
  ): Promise<void> {
    const now = this.leader.clock.now();
    const schedule = await this.decideDue(found, now, true);
    const entry = this.entryOf(request, schedule, action, null);
    await this.writeChange(request, schedule, now, 'deleted', entry, null);
  }

  /** Makes a run now, independent of the timetable; answers with its ids. */
  run(request: Request, keep?: Keep<RunIds>): Promise<RunIds> {
    return this.writes.run(async () => {
      const { leader, firer } = this;
      const schedule = await this.mustFind(request);
      const parsed = await firer.parse(schedule);
      const run = await firer.runs.load(schedule.tenant, parsed.work);
      if (run.kind === 'refused') throw run.error;
      const now = leader.clock.now();
      // Occurrences are unique by their moment: two runs in one millisecond take different ones.
      for (let at = now; ; at++) {
        const planned = planRun(run, at, now, now);
        const ids = idsOf(planned);
        const row = ranRow(schedule, parsed, planned, now, { byHand: true, reason: 'manual' });
        const entry = this.entry(request, now, 'schedule.run', { after: told(ids) });
        const making = [{ schedule, planned, byHandOf: request.actor }];
        const stored = await firer.write(making, async (db, made) => {
          const recorded = await recordOccurrences(db, [row], now);
          if (!recorded.has(planned.id)) return null;
          const inserted = await firer.insert(db, made, recorded, now);
          if (entry) await addEntry(db, entry, leader.term.epoch);
          await keepLast(db, keep, ids);
          return inserted;
        });
        if (!stored) continue;
        if (entry) leader.noteEntry();
        await firer.stored(stored);
        this.listener.onLatenessCheckAt(row.judgeAt);
        return ids;
      }
    });
  }

  /**
   * Runs the occurrences of a past range that have no run in the ledger. The answer is kept with the last of them: the
   * ledger makes sure that none runs twice if the request is repeated before that.
   */
  backfill(request: Request, range: BackfillRange, keep?: Keep<Backfill>): Promise<Backfill> {
    return this.writes.run(async () => {
      const now = this.leader.clock.now();
      if (range.to > now) throw invalid([{ pointer: '/to', detail: 'must not lie in the future' }]);
      const schedule = await this.decideDue(await this.mustFind(request), now, true);
      const asked = { from: new Date(range.from).toISOString(), to: new Date(range.to).toISOString() };
      const change = { before: asked, outcome: 'unknown' } as const;
      return auditedWork(
        this.leader,
        range.dryRun ? undefined : this.entry(request, now, 'schedule.backfill', change),
        () => backfill(this.leader, this.firer, schedule, range, keep),
        ({ occurrences }) => ({ started: occurrences.length }),
      );
    });
  }

  /** Checks a definition that is to be stored. */
  async check(tenant: string, definition: ScheduleDefinition): Promise<void> {
    const now = this.leader.clock.now();
    const { work } = this.parse(definition, now, now);
    const run = await this.firer.runs.load(tenant, work);
    if (run.kind === 'refused') throw ofSchedule(run.error);
  }

  /** The task of a definition as it is now: what does not fit it is refused here, where the user can be told. */
  private async tasksOf(tenant: string, { task }: ScheduleDefinition): Promise<TaskLookup> {
    return this.leader.tasks.find(tenant, () => (task === undefined ? [] : [task]));
  }

  private parse(
    definition: ScheduleDefinition,
    now: number,
    createdAt: number,
    tasks: TaskLookup = NO_TASKS,
  ): ParsedSchedule {
    const parsed = parseDefinition(definition, { ...this.leader.config, now, createdAt, tasks });
    checkComing(parsed, definition, now);
    return parsed;
  }

  private async mustFind({ tenant, name }: Pick<Request, 'tenant' | 'name'>): Promise<ScheduleRow> {
    const found = await findSchedule(this.leader.hot, tenant, name);
    if (!found) throw new PunctualError('SCHEDULE_NOT_FOUND', `There is no schedule ${name}.`);
    return found;
  }

  /** Decides every occurrence that is due by now; answers with the schedule as it is then. */
  private async decideDue(schedule: ScheduleRow, now: number, heedJitter: boolean): Promise<ScheduleRow> {
    const { firer, listener } = this;
    if (schedule.paused) {
      const parsed = this.tryParse(schedule);
      const range = parsed && rangeBetween(parsed, schedule.watermark, now);
      const { id, version, watermark: from } = schedule;
      const rows = range === null ? [] : [passedOverRow(schedule, range, 'skipped', 'paused')];
      // A job that was made ahead and could not be withdrawn when the pause began is decided already: never move back.
      const move = { id, version, from, watermark: Math.max(from, now), fireAt: null, lastRun: null };
      await firer.store([{ schedule, move, rows, runs: [], cancel: null }]);
      return this.mustFind(schedule);
    }
    for (let before = schedule; ; ) {
      const fired = await firer.fire([before], { aheadMs: 0, heedJitter });
      listener.onLatenessCheckAt(fired.checkAt);
      if (fired.waiting) listener.onWaiting();
      const after = await this.mustFind(schedule);
      // One transaction catches up with a part of a long downtime. If the watermark stays, the rest waits for its
      // jitter.
      if (after.watermark >= now || after.watermark === before.watermark) return after;
      before = after;
    }
  }

  /** Null for a definition that this version does not understand: the schedule can still be changed and deleted. */
  private tryParse(schedule: ScheduleRow): ParsedSchedule | null {
    try {
      return this.firer.parsedSchedules.parse(schedule);
    } catch {
      return null;
    }
  }

  /** Withdraws the jobs that were made ahead, and updates the schedule, or deletes it when there is no update. */
  private async writeChange(
    { actor }: Request,
    schedule: ScheduleRow,
    now: number,
    reason: Reason,
    entry: AuditEntry | undefined,
    update: ((watermark: number) => ScheduleUpdate) | null,
    { keep, why }: { readonly keep?: Keep<void> | undefined; readonly why?: 'gone' | undefined } = {},
  ): Promise<void> {
    const { leader } = this;
    const parsed = this.tryParse(schedule);
    const left = reason === 'changed' || !parsed ? null : rangeBetween(parsed, schedule.watermark, now);
    let fireAt: number | null = null;
    const after = { paused: schedule.paused };
    const jitterMs = parsed?.jitterMs ?? 0;
    await withdrawJobs(leader, { schedule, parsed: { jitterMs }, now, reason }, async (db, lastKept) => {
      if (left !== null) await recordOccurrences(db, [passedOverRow(schedule, left, 'skipped', reason)], now);
      const decided = reason === 'changed' ? Math.min(now, schedule.watermark) : now;
      const next = update?.(Math.max(decided, lastKept)) ?? null;
      if (next === null) await skipWaiting(db, schedule.id, reason);
      const done =
        next === null
          ? await deleteSchedule(db, schedule, actor, now)
          : await updateSchedule(db, schedule, next, actor, now);
      if (!done) throw new Error(`schedule ${schedule.name} changed while it was being changed`);
      if (entry) await addEntry(db, entry, leader.term.epoch);
      fireAt = next?.fireAt ?? null;
      after.paused = next?.paused ?? schedule.paused;
      await keepLast(db, keep, undefined);
    });
    if (leader.events.isHeard) {
      const change = schedule.paused && !after.paused ? 'resumed' : reason;
      leader.events.scheduleChanged(schedule.tenant, schedule.name, change, why);
    }
    if (entry) leader.noteEntry();
    this.listener.onFireAt(fireAt);
  }

  private entry(
    { tenant, name, author }: Request,
    now: number,
    action: AuditAction,
    change: AuditChange,
  ): AuditEntry | undefined {
    return author && auditEntry(author, now, action, { kind: 'schedule', name, tenant }, change);
  }

  /** The entry of a change of what was read; null deletes it. */
  private entryOf(
    request: Request,
    schedule: ScheduleRow,
    action: AuditAction,
    changed: Partial<Viewed> | null,
    reason?: 'gone',
  ): AuditEntry | undefined {
    const view = changed && scheduleView({ ...schedule, ...changed });
    const after = reason === undefined ? view : { ...view, reason };
    const views = { before: scheduleView(schedule), after };
    return this.entry(request, this.leader.clock.now(), action, views);
  }
}

/** Who the leader is in the audit when it changes something by itself. */
const SYSTEM: AuditAuthor = { keyId: null, keyName: 'system', address: null, requestId: null };

/** Whether a schedule still runs what the job has run: its task, or a call of the same URL. */
function isSameCall({ definition }: ScheduleRow, job: Pick<PlacedRow, 'task' | 'target'>): boolean {
  const { task, target } = JSON.parse(definition) as ScheduleDefinition;
  if (task !== undefined) return task === job.task;
  const called = job.target === null ? null : (JSON.parse(job.target) as Target);
  return target?.type === 'http' && called?.type === 'http' && target.url === called.url;
}

type Viewed = Pick<ScheduleRow, 'definition' | 'paused' | 'managed_by'>;

/** What the audit shows of a schedule. */
function scheduleView({ definition, paused, managed_by: managedBy }: Viewed): object {
  const { payload, target, batch, ...rest } = JSON.parse(definition) as Record<string, unknown>;
  return {
    ...rest,
    ...(batch !== undefined && { batch: hashed(JSON.stringify(batch)) }),
    ...(target !== undefined && { target: targetView(target as { readonly type?: unknown }) }),
    ...(payload !== undefined && { payload: hashed(JSON.stringify(payload)) }),
    ...{ paused, managedBy },
  };
}

/** The jobs that a run has. */
function submissionsOf(run: GoodRun): readonly ParsedSubmission[] {
  if (run.kind === 'job') return [run.job];
  return run.kind === 'workflow' ? run.workflow.steps : run.batch.members;
}

/** The ids of a run, as the audit shows them. */
function told({ job, workflow, batch }: RunIds): object {
  return { job, ...(workflow !== null && { workflow }), ...(batch !== null && { batch }) };
}

/** What is wrong with a workflow, in the places that a schedule has for it. */
function ofSchedule(error: PunctualError): PunctualError {
  if (error.code === 'DEFINITION_NOT_FOUND')
    return invalid([{ pointer: '/workflow', detail: error.message }]);
  if (error.code !== 'INVALID_REQUEST') return error;
  return invalid(
    error.errors.map(({ pointer, detail }) => {
      if (pointer.startsWith('/input')) return { pointer: `/payload${pointer.slice(6)}`, detail };
      if (pointer.startsWith('/jobs')) return { pointer: '/workflow', detail: `${pointer}: ${detail}` };
      return { pointer, detail };
    }),
  );
}

/** Refuses to touch a schedule that is in the code of another program. */
export function mustNotBeOfOthers({ name, managed_by: other }: ScheduleRow, owner: string): void {
  if (other === null || other === owner) return;
  throw new PunctualError(
    'SCHEDULE_MANAGED',
    `The schedule ${name} is managed by ${other}, not by ${owner}; nothing was changed about it.`,
  );
}
