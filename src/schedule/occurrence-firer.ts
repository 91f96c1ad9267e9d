import { earlier } from '../core/clock.js';
import { messageOf } from '../core/errors.js';
import type { ParsedSchedule } from '../core/schedule-definition.js';
import type { TaskLookup } from '../core/task-defaults.js';
import { Batcher } from '../store/batcher.js';
import { bisect } from '../store/bisect.js';
import { isDatabaseBusy, type Queryable } from '../store/database.js';
import {
  insertScheduledJobs,
  moveSchedules,
  recordOccurrences,
  type ScheduledJob,
} from '../store/fire-occurrences.js';
import { awaitsArtifact, toRow } from '../store/job-row.js';
import { leaderTransaction } from '../store/leader-statement.js';
import { Names, StaleNamesError } from '../store/names.js';
import { toWaiting } from '../store/read-backlog.js';
import { readPrevious } from '../store/read-overlap.js';
import { readDueSchedules, type ScheduleRow } from '../store/schedules.js';
import { ParsedSchedules, tasksOfStored } from './parsed-schedules.js';
import {
  FIRE_AHEAD_MS,
  type FiringPlan,
  type GoodRun,
  NO_PREVIOUS,
  type PlannedRun,
  type Previous,
  planFiring,
  type RunIds,
} from './plan-firing.js';
import { type RunControl, type ScheduleLeader, tellFired } from './schedule-leader.js';
import { type MadeRun, type PlannedGraph, ScheduledRuns, sizeOf } from './scheduled-runs.js';

/** Schedules, and bytes of jobs, that one transaction fires: it must be short, however much is due. */
const LIMITS = { items: 1_000, bytes: 8 * 1024 * 1024 };
/** Occurrences that one transaction fires, as a multiple of its schedules. */
const RUNS_PER_SCHEDULE = 2;
/** Jobs of workflows and batches that one transaction stores; a single one may have as many. */
export const MAX_GRAPH_JOBS = 10_000;
/** Jobs that are cancelled at the same time (`overlap: cancel-previous`). */
const CANCELS = 50;
/** How long until a schedule that cannot be fired is tried again. */
const SET_ASIDE_MS = 60_000;

/** How schedules are fired; see `FiringRequest`. */
interface FireOptions {
  readonly aheadMs: number;
  readonly heedJitter: boolean;
}

/** What follows from firing. */
interface Fired {
  /** Whether occurrences now wait for the job before them. */
  readonly waiting: boolean;
  /** When the first lateness check is due. */
  readonly checkAt: number | null;
}

const IN_TIME: FireOptions = { aheadMs: FIRE_AHEAD_MS, heedJitter: true };

/**
 * Fires schedules: works out which occurrences are due and writes them, their jobs and the schedules' watermarks in
 * one fenced transaction. The caller makes sure that nothing else changes schedules meanwhile.
 */
export class OccurrenceFirer {
  readonly parsedSchedules: ParsedSchedules;
  readonly runs: ScheduledRuns;
  private readonly names: Names;
  private readonly batcher = new Batcher<ScheduleRow>(LIMITS, (schedule) => schedule.definition.length);

  constructor(
    private readonly leader: ScheduleLeader,
    private readonly control: RunControl,
  ) {
    this.parsedSchedules = new ParsedSchedules(leader.config);
    this.names = new Names(leader.hot, { maxOrigins: leader.config.maxOrigins });
    this.runs = new ScheduledRuns(leader, this.names);
  }

  /** Fires due schedules, as many as one transaction takes; null when none is due. */
  async fireDue(): Promise<Fired | null> {
    const { leader } = this;
    const { maxItems } = this.batcher;
    const due = await readDueSchedules(leader.hot, leader.clock.now(), maxItems, LIMITS.bytes);
    if (due.length === 0) return null;
    try {
      const fired = await this.fire(due, IN_TIME);
      this.batcher.worked(due);
      return fired;
    } catch (error) {
      // The batcher makes the next transactions smaller until they are fast enough.
      if (isDatabaseBusy(error)) this.batcher.failed(due);
      throw error;
    }
  }

  /** Fires the schedules, as far as one transaction goes. */
  async fire(schedules: readonly ScheduleRow[], options: FireOptions): Promise<Fired> {
    const plans = await this.plan(schedules, options);
    await this.cancelAll(plans.filter((plan) => plan.cancel !== null));
    await this.store(plans);
    const rows = plans.flatMap((plan) => plan.rows);
    return {
      waiting: rows.some((row) => row.state === 'waiting'),
      checkAt: rows.reduce<number | null>((first, row) => earlier(first, row.judgeAt), null),
    };
  }

  /** Makes what is to be stored for runs. */
  async make(planned: readonly Making[]): Promise<Made> {
    const jobs = await this.makeJobs(planned.filter((each) => each.planned.run.kind === 'job'));
    const graphs: MadeRun[] = [];
    for (const { schedule, planned: run, byHandOf } of planned) {
      if (run.run.kind !== 'job') graphs.push(await this.runs.make(schedule, run as PlannedGraph, byHandOf));
    }
    return { jobs, graphs };
  }

  /** Makes the rows of jobs, with the ids of their queues and needs. */
  private async makeJobs(made: readonly Making[]): Promise<ScheduledJob[]> {
    const now = this.leader.clock.now();
    const submissionOf = ({ planned: { run } }: Making) => (run as Extract<GoodRun, { kind: 'job' }>).job;
    const ids = await this.names.resolve(
      made.map((each) => {
        const { queue, needs } = submissionOf(each).definition;
        return { tenant: each.schedule.tenant, queue, needs };
      }),
      now,
    );
    return made.map((each, i) => {
      const { schedule, planned, byHandOf } = each;
      const { tenant, name, changed_by } = schedule;
      const { queue, needs } = ids[i]!;
      const origin = { queue, needs, tenant, createdAt: now, createdBy: byHandOf ?? changed_by };
      const { definition, payload } = submissionOf(each);
      const { id, runAt, at } = planned;
      const row = toRow(id, { definition: { ...definition, runAt }, payload }, origin);
      return {
        row: { ...row, schedule: name },
        schedule: name,
        occurrence: byHandOf === undefined ? at : null,
      };
    });
  }

  /** Stores those runs whose occurrences were recorded, in a transaction that begins with the fence; answers with them. */
  async insert(
    db: Queryable,
    { jobs, graphs }: Made,
    recorded: ReadonlySet<string>,
    now: number,
  ): Promise<Made> {
    const made = {
      jobs: jobs.filter(({ row }) => recorded.has(row.id)),
      graphs: graphs.filter(({ job }) => recorded.has(job)),
    };
    await insertScheduledJobs(db, made.jobs, now);
    await this.runs.insert(db, made.graphs, now);
    return made;
  }

  /** Makes runs and writes them; if the database no longer has names of theirs, does so again, once. */
  async write<T>(planned: readonly Making[], work: (db: Queryable, made: Made) => Promise<T>): Promise<T> {
    const { leader } = this;
    const write = (made: Made) =>
      leader.write(() => leaderTransaction(leader.hot, leader.term, (db) => work(db, made)));
    const made = await this.make(planned);
    try {
      return await write(made);
    } catch (error) {
      if (!(error instanceof StaleNamesError)) throw error;
      this.runs.forgetNames(made.graphs);
      return write(await this.make(planned));
    }
  }

  /** What follows the commit: events, and that memory knows the new jobs. */
  async stored({ jobs, graphs }: Made): Promise<void> {
    const { leader, control } = this;
    tellFired(leader, jobs);
    for (const { workflow, batch } of graphs) {
      const { tenant, id, scheduled } = workflow ?? batch!;
      const run = workflow ? { workflow: id } : { batch: id };
      if (leader.events.isHeard) leader.events.firedRun(tenant, scheduled!.schedule, run);
    }
    await leader.admitNew(jobs.filter(({ row }) => !awaitsArtifact(row)).map(({ row }) => toWaiting(row)));
    for (const run of graphs) {
      if (run.workflow) await control.workflowStored(run.workflow);
      else await control.batchStored(run.batch, run.members);
    }
  }

  private async plan(schedules: readonly ScheduleRow[], options: FireOptions): Promise<FiringPlan[]> {
    const { leader } = this;
    // If definitions cannot be read, nothing can be fired: that is no fault of a schedule.
    const tasks = await this.findTasks(schedules);
    const parsed = schedules.map((schedule) => this.tryParse(schedule, tasks.get(schedule.tenant)));
    const previous = await this.readPrevious(
      schedules.filter((schedule, i) => schedule.last_job !== null && parsed[i]?.overlap !== 'allow'),
    );
    const now = leader.clock.now();
    const plans: FiringPlan[] = [];
    const maxRuns = this.batcher.maxItems * RUNS_PER_SCHEDULE;
    let runs = 0;
    let bytes = 0;
    let jobsOfGraphs = 0;
    for (const [i, schedule] of schedules.entries()) {
      const each = parsed[i]!;
      if (each === null) {
        plans.push(setAside(schedule, now));
        continue;
      }
      const run = await this.runs.load(schedule.tenant, each.work);
      const { jobs, bytes: size } = sizeOf(run);
      const isGraph = run.kind === 'workflow' || run.kind === 'batch';
      // It stays due, and is among the first of the next transaction.
      if (isGraph && jobsOfGraphs > 0 && jobsOfGraphs + jobs > MAX_GRAPH_JOBS) break;
      const bytesLeft = Math.floor((LIMITS.bytes - bytes) / Math.max(1, size));
      const jobsLeft = isGraph ? Math.floor((MAX_GRAPH_JOBS - jobsOfGraphs) / jobs) : maxRuns;
      const max = Math.min(maxRuns - runs, Math.max(1, Math.min(bytesLeft, jobsLeft)));
      const plan = planFiring({
        ...{ schedule, parsed: each, run, now, max, ...options },
        previous: previous.get(schedule.id) ?? NO_PREVIOUS,
      });
      plans.push(plan);
      if (run.kind === 'refused' && plan.rows.length > 0) {
        const fields = { tenant: schedule.tenant, schedule: schedule.name, error: run.error.message };
        leader.log.warn(fields, 'what the schedule runs cannot be made');
      }
      runs += plan.rows.length;
      bytes += plan.runs.length * size;
      if (isGraph) jobsOfGraphs += plan.runs.length * jobs;
      if (runs >= maxRuns || bytes >= LIMITS.bytes || jobsOfGraphs >= MAX_GRAPH_JOBS) break;
    }
    return plans;
  }

  /** A schedule as it is fired now: its job takes what its task says at this moment. */
  async parse(schedule: ScheduleRow): Promise<ParsedSchedule> {
    const tasks = await this.findTasks([schedule]);
    return this.parsedSchedules.parse(schedule, tasks.get(schedule.tenant));
  }

  /** The definitions of the schedules' tasks, by tenant. */
  private async findTasks(schedules: readonly ScheduleRow[]): Promise<Map<string, TaskLookup>> {
    const byTenant = new Map<string, ScheduleRow[]>();
    for (const schedule of schedules) {
      const ofTenant = byTenant.get(schedule.tenant);
      if (ofTenant) ofTenant.push(schedule);
      else byTenant.set(schedule.tenant, [schedule]);
    }
    const tasks = new Map<string, TaskLookup>();
    for (const [tenant, ofTenant] of byTenant)
      tasks.set(tenant, await this.leader.tasks.find(tenant, () => tasksOfStored(ofTenant)));
    return tasks;
  }

  private tryParse(schedule: ScheduleRow, tasks: TaskLookup | undefined): ParsedSchedule | null {
    try {
      return this.parsedSchedules.parse(schedule, tasks);
    } catch (error) {
      this.logFailure(schedule, error);
      return null;
    }
  }

  private async readPrevious(schedules: readonly ScheduleRow[]): Promise<Map<string, Previous>> {
    if (schedules.length === 0) return new Map();
    const rows = await readPrevious(
      this.leader.hot,
      schedules.map((schedule) => schedule.id),
    );
    return new Map(rows.map((row) => [row.id, row]));
  }

  /** Cancels many at the same time, because the other schedules wait meanwhile. */
  private async cancelAll(plans: readonly FiringPlan[]): Promise<void> {
    for (let from = 0; from < plans.length; from += CANCELS) {
      const some = plans.slice(from, from + CANCELS);
      await Promise.all(some.map((plan) => this.cancelPrevious(plan, plan.cancel!)));
    }
  }

  private async cancelPrevious({ schedule }: FiringPlan, { job, workflow, batch }: RunIds): Promise<void> {
    const { leader, control } = this;
    const { tenant, name } = schedule;
    const cancelling =
      workflow !== null
        ? control.cancelWorkflow(tenant, workflow)
        : batch !== null
          ? control.cancelBatch(tenant, batch)
          : control.cancelJob(tenant, job);
    await cancelling.catch((error: unknown) => {
      // Either it has just ended, or the term is over, in which case the next write fails.
      leader.log.debug({ schedule: name, job, workflow, batch, error: messageOf(error) }, 'not cancelled');
    });
  }

  /** Writes all plans together. A plan that the database refuses is set aside, so that the others are written. */
  async store(plans: readonly FiringPlan[]): Promise<void> {
    await bisect(
      plans,
      (part) => this.storeTogether(part).then(() => []),
      async ({ schedule }, error) => {
        this.logFailure(schedule, error);
        await this.storeTogether([setAside(schedule, this.leader.clock.now())]);
      },
    );
  }

  private async storeTogether(plans: readonly FiringPlan[]): Promise<void> {
    const now = this.leader.clock.now();
    const planned = plans.flatMap(({ schedule, runs }) => runs.map((each) => ({ schedule, planned: each })));
    const stored = await this.write(planned, async (db, made) => {
      const moved = await moveSchedules(
        db,
        plans.map((plan) => plan.move),
      );
      const rows = plans.filter((plan) => moved.has(plan.move.id)).flatMap((plan) => plan.rows);
      return this.insert(db, made, await recordOccurrences(db, rows, now), now);
    });
    for (const plan of plans) this.tellMissed(plan);
    await this.stored(stored);
  }

  private tellMissed({ schedule, rows }: FiringPlan): void {
    const { events, log } = this.leader;
    for (const row of rows) {
      if (row.state !== 'missed') continue;
      if (events.isHeard) events.missed(schedule.tenant, schedule.name, row.count);
      log.warn(
        {
          tenant: schedule.tenant,
          schedule: schedule.name,
          from: new Date(row.at).toISOString(),
          until: new Date(row.until ?? row.at).toISOString(),
          count: row.count,
        },
        'occurrences were missed',
      );
    }
  }

  private logFailure(schedule: ScheduleRow, error: unknown): void {
    const { tenant, name } = schedule;
    this.leader.log.error(
      { tenant, schedule: name, error: messageOf(error) },
      'the schedule cannot be fired',
    );
  }
}

/** A run to be made; `byHandOf` is who asked for it, beside the timetable. */
interface Making {
  readonly schedule: ScheduleRow;
  readonly planned: PlannedRun;
  readonly byHandOf?: string;
}

/** What is stored for runs. */
export interface Made {
  readonly jobs: readonly ScheduledJob[];
  readonly graphs: readonly MadeRun[];
}

/** The plan that changes nothing but when the schedule is looked at again. */
function setAside(schedule: ScheduleRow, now: number): FiringPlan {
  const { id, version, watermark } = schedule;
  const move = { id, version, from: watermark, watermark, fireAt: now + SET_ASIDE_MS, lastRun: null };
  return { schedule, move, rows: [], runs: [], cancel: null };
}
