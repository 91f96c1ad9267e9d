import { setImmediate as nextIteration } from 'node:timers/promises';
import type { HintedWorkflow } from '../cluster/hint-sender.js';
import { handlerOf, isWithin, type KeyLimits } from '../core/access.js';
import { messageOf } from '../core/errors.js';
import type { Figures } from '../core/figures.js';
import type { Progress } from '../core/job.js';
import { SerialQueues } from '../core/serial-queue.js';
import { stopParts } from '../core/stop-parts.js';
import { PORTION } from '../core/time-slice.js';
import type { AttemptEnd } from '../core/transition.js';
import type { FencedJob, Why } from '../core/wire.js';
import { Schedules } from '../schedule/schedules.js';
import { claimJobs, claimKnownJobs } from '../store/claim-jobs.js';
import { readClaims } from '../store/claims.js';
import { readClusterState } from '../store/cluster-state.js';
import { finishJobs } from '../store/finish-jobs.js';
import type { PlacedRow, StoredAttempt } from '../store/job-places.js';
import { awaitsArtifact, type JobRow } from '../store/job-row.js';
import { TermOverError } from '../store/leader-statement.js';
import type { Resolved } from '../store/names.js';
import { toWaiting, type Waiting } from '../store/read-backlog.js';
import { readJob } from '../store/read-job.js';
import type { NewWorkflow } from '../store/submit-workflow.js';
import { Workflows } from '../workflow/workflows.js';
import { Admitter } from './admitter.js';
import { ArtifactGate } from './artifact-gate.js';
import { AuditChain } from './audit-chain.js';
import { BacklogReader } from './backlog-reader.js';
import { BatchControl } from './batch-control.js';
import { CancelRequests } from './cancel-requests.js';
import { Claimer } from './claimer.js';
import { DirectStart } from './direct-start.js';
import { DispatchSettings } from './dispatch-settings.js';
import type { EventRecorder, ToldOfJobs } from './event-recorder.js';
import { Expirer } from './expirer.js';
import { type EndListener, Finisher } from './finisher.js';
import { GangKeeper } from './gang-keeper.js';
import { GangPlanner } from './gang-planner.js';
import { GangStarter } from './gang-starter.js';
import { JobControl } from './job-control.js';
import { KeyedSubmissions } from './keyed-submissions.js';
import { LeaderFigures } from './leader-figures.js';
import { type LeaderOptions, LeaderState } from './leader-state.js';
import { ManyControl } from './many-control.js';
import { OriginControl } from './origin-control.js';
import { QueueMinutes } from './queue-minutes.js';
import { type Running, resumeRunning } from './running.js';
import { UnservedJobs } from './unserved-jobs.js';
import { Upkeep } from './upkeep.js';
import { WaitingJobs } from './waiting-jobs.js';
import { type Audience, explainWaiting } from './why.js';
import { Workers } from './worker-sessions.js';

/** An attempt's end as a worker reports it. */
export interface Report extends FencedJob {
  readonly tenant: string;
  readonly end: AttemptEnd;
  readonly startedAt: number | null;
}

/** What a hint brings beside jobs. */
interface Hinted {
  /** For those who listen. */
  readonly told?: ToldOfJobs | undefined;
  readonly workflows?: readonly HintedWorkflow[] | undefined;
  /** Whether jobs wait for artifacts that did not before. */
  readonly artifacts?: boolean | undefined;
  /** Artifacts that have arrived. */
  readonly arrived?: readonly string[] | undefined;
}

/** What a dispatcher is made from. */
export interface DispatcherOptions extends LeaderOptions {
  /** How long after its id was made a submission can become visible: the submitters' statement timeout. */
  readonly submitTimeoutMs: number;
}

/** How long background work waits, so that the first jobs of a term find free connections. */
const AFTER_TAKEOVER_MS = 100;
/** The pause between the starts of two parts of it: the first pass of each runs code that is not compiled yet. */
const BETWEEN_STARTS_MS = 20;

/**
 * The one dispatcher of a shard, alive for one term. It is built when the term begins and thrown away when it
 * ends; a new term builds a new one from the tables, so no state outlives the right to decide.
 */
export class Dispatcher {
  readonly workers: Workers;
  readonly jobControl: JobControl;
  readonly manyControl: ManyControl;
  readonly batches: BatchControl;
  readonly settings: DispatchSettings;
  readonly origins: OriginControl;
  readonly schedules: Schedules;
  readonly workflows: Workflows;
  readonly unserved: UnservedJobs;
  /** What waits, and what becomes due. */
  readonly waitingJobs: WaitingJobs;
  private readonly queueMinutes: QueueMinutes;
  private readonly leaderFigures: LeaderFigures;
  readonly keyed: KeyedSubmissions;
  private readonly directStart: DirectStart;
  private readonly state: LeaderState;
  private readonly finisher: Finisher;
  private readonly claimer: Claimer;
  private readonly gangPlanner: GangPlanner;
  private readonly gangKeeper: GangKeeper;
  private readonly backlogReader: BacklogReader;
  private readonly admitter: Admitter;
  private readonly cancelRequests: CancelRequests;
  private readonly expirer: Expirer;
  private readonly artifactGate: ArtifactGate;
  private readonly upkeep: Upkeep;
  private readonly auditChain: AuditChain;
  private rest: NodeJS.Timeout | undefined;

  constructor(options: DispatcherOptions) {
    this.state = new LeaderState(options);
    this.finisher = new Finisher(this.state);
    this.expirer = new Expirer(this.state);
    this.backlogReader = new BacklogReader(this.state, options.submitTimeoutMs, {
      onAdmit: () => this.admitter.wake(),
      onCancel: () => this.cancelRequests.wake(),
      onWake: () => this.workflows.wakeSteps(),
      onArtifacts: () => this.artifactGate.wake(),
      onStartBefore: (at) => this.expirer.expect(at),
    });
    this.admitter = new Admitter(this.state, this.backlogReader, (at) => this.expirer.expect(at));
    this.gangPlanner = new GangPlanner(this.state);
    const changes = new SerialQueues();
    const starter = new GangStarter(this.state, this.gangPlanner, {
      changes,
      offer: (sessions) => this.workers.offer(sessions),
      onMissing: (gang) => this.gangKeeper.missing(gang),
    });
    this.gangKeeper = new GangKeeper(this.state, {
      ...{ changes, planner: this.gangPlanner, starter, finisher: this.finisher },
      onCancelRunning: (running) => this.workers.cancelled(running),
    });
    this.batches = new BatchControl(this.state, this.gangKeeper, changes);
    this.claimer = new Claimer(this.state, {
      onExpired: () => this.expirer.wake(),
      onDrained: () => this.backlogReader.wake(),
      onOrphans: (orphans) => this.giveBack(orphans),
      startGang: () => starter.startNext(),
    });
    this.workers = new Workers(this.state, this.finisher);
    const parts = {
      onStartBefore: (at: number | null) => this.expirer.expect(at),
      onCancelRunning: (running: Running) => this.workers.cancelled(running),
    };
    this.jobControl = new JobControl(this.state, this.admitter, {
      ...parts,
      retryStep: (tenant, workflow, job, requested) =>
        this.workflows.retryStep(tenant, workflow, job, requested),
    });
    this.manyControl = new ManyControl(this.state, this.admitter, parts);
    this.cancelRequests = new CancelRequests(this.state, this.jobControl);
    this.keyed = new KeyedSubmissions(this.state, parts.onStartBefore);
    this.settings = new DispatchSettings(this.state);
    this.origins = new OriginControl(this.state);
    this.directStart = new DirectStart(this.state, (orphans) => this.giveBack(orphans));
    this.schedules = new Schedules(this.state, {
      cancelJob: (tenant, id) => this.jobControl.cancel(tenant, id),
      cancelWorkflow: (tenant, id) => this.workflows.cancel(tenant, id),
      cancelBatch: (tenant, id) => this.batches.cancel(tenant, id),
      workflowStored: (workflow) => this.workflowStored(workflow),
      batchStored: (batch, members) => this.batches.stored(batch, members),
    });
    this.workflows = new Workflows(
      this.state,
      (tenant, jobId) => this.jobControl.cancel(tenant, jobId),
      (tenant, jobs, startBefore) => {
        if (jobs > 0) this.state.addedJobs.note(tenant, 0, jobs);
        this.expirer.expect(startBefore);
        this.admitter.wake();
      },
      () => this.claimer.claimsMade(),
    );
    this.artifactGate = new ArtifactGate(this.state, {
      alone: (work) => this.workflows.executor.alone(work),
      onFreed: () => this.admitter.wake(),
    });
    this.state.noteGone = (running) => void this.pauseGone(running);
    this.unserved = new UnservedJobs(this.state);
    this.waitingJobs = new WaitingJobs(this.state);
    this.queueMinutes = new QueueMinutes(this.state);
    this.leaderFigures = new LeaderFigures(this.state, this.unserved);
    this.auditChain = new AuditChain(this.state);
    this.upkeep = new Upkeep(this.state, this.auditChain, (work) => this.workflows.executor.alone(work));
  }

  get epoch(): number {
    return this.state.term.epoch;
  }

  /** What happens during the term, for those who listen. */
  get events(): Pick<EventRecorder, 'hear' | 'isHeard' | 'ringCount'> {
    return this.state.events;
  }

  /**
   * Reads the claims first, in a statement after the takeover's commit, then waiting jobs page by page. Background work
   * starts a moment later, so that waiting workers get their jobs first.
   */
  async start(): Promise<void> {
    const { state } = this;
    await this.load();
    if (state.term.over) return;
    state.addedJobs.start();
    const first = [this.finisher, this.gangPlanner, this.claimer, this.backlogReader, this.workers];
    for (const part of [...first, this.gangKeeper]) part.start();
    this.startRest([
      { start: () => this.backlogReader.startLooking() },
      this.admitter,
      this.schedules,
      this.workflows,
      this.expirer,
      this.artifactGate,
      this.cancelRequests,
      this.unserved,
      this.queueMinutes,
      this.upkeep,
      this.auditChain,
    ]);
  }

  /**
   * Does what a term begins with and its first writes, for a node that does not lead, under a term that nobody holds: the reads
   * change nothing, and the fence refuses the writes.
   */
  async rehearse(): Promise<void> {
    const { hot, term, clock } = this.state;
    await this.load({ mostClaims: PORTION });
    if (term.over) return;
    const now = clock.now();
    const writes = [
      () => claimJobs(hot, term, [], now, new Map()),
      () => claimKnownJobs(hot, term, [], now, new Map(), []),
      () => finishJobs(hot, term, [], now),
    ];
    for (const write of writes) await refused(write());
  }

  /** Reads what a leader has to know, until its term is over. */
  private async load({ mostClaims = Number.POSITIVE_INFINITY } = {}): Promise<void> {
    const { state } = this;
    const { term } = state;
    state.paused = (await readClusterState(state.hot)).paused;
    const claims = await readClaims(state.reads, { most: mostClaims, isOver: () => term.over });
    for (let from = 0; from < claims.length && !term.over; from += PORTION) {
      // In portions, because the directory may forget what it learned until memory uses it.
      const portion = claims.slice(from, from + PORTION);
      if (from > 0) await nextIteration();
      await state.directory.learn(portion);
      for (const claim of portion) state.resume(resumeRunning(claim, state.clock));
    }
    if (!term.over) await this.workers.load();
    if (!term.over) await Promise.all([this.backlogReader.load(), this.gangKeeper.load()]);
  }

  /** One after another, the most urgent first, so that they do not hold up the first jobs together. */
  private startRest(parts: readonly { start(): unknown }[]): void {
    const startFrom = (next: number) => {
      parts[next]!.start();
      if (next + 1 < parts.length) this.rest = setTimeout(startFrom, BETWEEN_STARTS_MS, next + 1).unref();
    };
    this.rest = setTimeout(startFrom, AFTER_TAKEOVER_MS, 0).unref();
  }

  /** Ends all background work of this term; nothing is written afterwards. */
  async stop(): Promise<void> {
    clearTimeout(this.rest);
    this.state.dispose();
    await stopParts(this.parts, (parts) =>
      this.state.log.warn({ epoch: this.epoch, parts }, 'the term is over, and these parts of it still work'),
    );
  }

  private get parts() {
    return {
      finisher: this.finisher,
      claimer: this.claimer,
      gangPlanner: this.gangPlanner,
      gangKeeper: this.gangKeeper,
      backlogReader: this.backlogReader,
      admitter: this.admitter,
      artifactGate: this.artifactGate,
      cancelRequests: this.cancelRequests,
      expirer: this.expirer,
      workers: this.workers,
      schedules: this.schedules,
      workflows: this.workflows,
      unserved: this.unserved,
      queueMinutes: this.queueMinutes,
      upkeep: this.upkeep,
      auditChain: this.auditChain,
    };
  }

  /** Writes what queues have done so far, as is otherwise done when a minute ends. */
  keepQueueMinute(): Promise<void> {
    return this.queueMinutes.runOnce();
  }

  /** Forgets artifacts that nobody needs, as is otherwise done every minute. */
  forgetArtifacts(): Promise<void> {
    return this.upkeep.artifacts.runOnce();
  }

  /** Takes the jobs of a workflow in that the leader has stored by itself. */
  private async workflowStored(workflow: NewWorkflow): Promise<void> {
    const { state } = this;
    const { tenant, steps } = workflow;
    if (state.events.isHeard) state.events.workflow('workflow.submitted', workflow, 'running');
    const later = steps.filter(({ admitAt }) => admitAt !== null);
    for (const { row } of steps) this.expirer.expect(row.definition.start_before);
    if (later.some(({ blocked, held }) => !blocked && !held)) this.admitter.wake();
    if (later.some(({ wakeAt }) => wakeAt !== null)) this.workflows.wakeSteps();
    if (later.some(({ row }) => awaitsArtifact(row))) this.artifactGate.wake();
    state.addedJobs.note(tenant, 0, later.length);
    const live = steps.filter(({ admitAt }) => admitAt === null);
    await state.admitNew(live.map(({ row }) => toWaiting(row)));
  }

  /**
   * Pauses the schedule whose job found its URL gone. The end of the attempt is on record before: if this fails, or the leader dies
   * meanwhile, the next occurrence finds the same.
   */
  private async pauseGone({ id, tenant, facts }: Running): Promise<void> {
    const { state } = this;
    try {
      const job = await readJob(state.hot, tenant, id);
      if (job && (await this.schedules.changes.pauseGone(tenant, facts.schedule!, job)))
        state.log.info(
          { tenant, schedule: facts.schedule, job: id },
          'a schedule was paused: its URL is gone',
        );
    } catch (error) {
      if (state.isOver) return;
      const fields = { tenant, schedule: facts.schedule, job: id, error: messageOf(error) };
      state.log.warn(fields, 'a schedule whose URL is gone could not be paused');
    }
  }

  private giveBack(orphans: readonly Running[]): void {
    this.workers.giveBack(orphans).catch((error: unknown) => {
      // They stay claimed by a session that has ended, and become lost after the worker timeout.
      this.state.log.warn({ error: messageOf(error) }, 'claims could not be given back');
    });
  }

  /** Stores and starts a job; answers false, with nothing done, when it must be submitted through the backlog. */
  submit(row: JobRow, names: Resolved, isCounted: boolean): Promise<boolean> {
    return this.directStart.submit(row, names, isCounted);
  }

  /**
   * Takes a hint: jobs that were just stored, and the earliest `startBefore` among those stored in `later`; what is known, for
   * events, of those that come without their rows; and workflows.
   */
  async hint(
    jobs: readonly Waiting[],
    startBefore: number | null = null,
    { told, workflows = [], artifacts = false, arrived = [] }: Hinted = {},
  ): Promise<void> {
    const { events } = this.state;
    this.expirer.expect(startBefore);
    if (events.isHeard) {
      for (const workflow of workflows) events.workflow('workflow.submitted', workflow, 'running');
      await this.tellSubmitted(jobs, told);
    }
    if (workflows.some(({ wakes }) => wakes)) this.workflows.wakeSteps();
    if (artifacts || arrived.length > 0) this.artifactGate.wake(arrived);
    await this.backlogReader.hint(jobs);
  }

  /** Told before they can start. The look-back tells nothing: it may find a job more than once. */
  private async tellSubmitted(jobs: readonly Waiting[], told?: ToldOfJobs): Promise<void> {
    const { directory, events } = this.state;
    if (!jobs.every((job) => directory.knows(job))) await directory.learn(jobs);
    events.submitted(jobs, told);
  }

  /** Ends attempts; answers for each whether it counted. None outside the limits does. */
  async report(reports: readonly Report[], limits?: KeyLimits): Promise<boolean[]> {
    const { state } = this;
    if (limits) await this.learnNames(reports);
    const ends = new Ends(reports.length);
    reports.forEach(({ tenant, jobId, fence, end, startedAt }, index) => {
      const running = state.running.get(jobId);
      const isFree = running !== undefined && !running.isEnding && !state.turns.isTaken(jobId);
      const isBegun =
        isFree &&
        running.tenant === tenant &&
        (limits === undefined || this.isWithin(limits, running)) &&
        this.finisher.begin(running, fence, end, startedAt, ends, index);
      if (!isBegun) ends.ended(index, false);
    });
    const accepted = await ends.all;
    if (accepted.every(Boolean)) return accepted;
    // A report that was not accepted may be a repeated one, or another statement holds the turn of its job.
    return Promise.all(accepted.map((yes, index) => yes || this.reportOne(reports[index]!, limits)));
  }

  /** Makes the names of running jobs known that memory has forgotten, which happens when there are very many. */
  private learnNames(reports: readonly Report[]): Promise<void> {
    const { running, directory } = this.state;
    return directory.learn(reports.flatMap(({ jobId }) => running.get(jobId) ?? []));
  }

  /** By the handler, as it was decided who may be given the job. */
  private isWithin(limits: KeyLimits, { queue, needs, task }: Running): boolean {
    const { directory } = this.state;
    const needed = directory.needsOf(needs);
    return isWithin(limits, {
      queue: directory.queue(queue)?.name ?? '',
      task: needed?.target === 'handler' ? needed.handler : task,
    });
  }

  /** The same by the table, for a job that may have ended. */
  private async reaches(limits: KeyLimits, { tenant, jobId }: Report): Promise<boolean> {
    const job = await readJob(this.state.hot, tenant, jobId);
    return job !== null && isWithin(limits, { queue: job.queue, task: handlerOf(job) });
  }

  private async reportOne(report: Report, limits?: KeyLimits): Promise<boolean> {
    const { state } = this;
    const { tenant } = report;
    if (limits && !(await this.reaches(limits, report))) return false;
    while (state.turns.has(report.jobId)) await state.turns.untilFree(report.jobId);
    const running = state.running.get(report.jobId);
    if (running?.tenant === tenant) {
      if (await this.finisher.end(report.jobId, report.fence, report.end, report.startedAt)) return true;
    }
    const job = await readJob(this.state.hot, tenant, report.jobId);
    if (job && isOnRecord(job, report)) return true;
    if (job && report.end.outcome !== 'handed-on')
      this.upkeep.countStale(tenant, report.end.outcome === 'succeeded');
    return false;
  }

  /** Notes the progress of a running attempt; answers false when it is not the one that runs. */
  progress(tenant: string, { jobId, fence }: FencedJob, progress: Progress): boolean {
    const running = this.state.running.get(jobId);
    if (running?.fence !== fence || running.tenant !== tenant) return false;
    running.acknowledged = true;
    running.progress = progress;
    running.progressSaved = false;
    if (this.state.events.isHeard) this.state.events.progressed(running, progress.progress);
    return true;
  }

  /** The newest progress of a running job, before it reaches the database. */
  progressOf(jobId: string): Progress | null {
    return this.state.running.get(jobId)?.progress ?? null;
  }

  /** Told that an entry of the audit was written by other code than the dispatcher's. */
  noteEntry(): void {
    this.state.noteEntry();
  }

  /** Calls back once when the job or the term ends; answers with a function that unsubscribes. */
  onJobEnd(jobId: string, listener: () => void): () => void {
    return this.state.onJobEnd(jobId, listener);
  }

  /** Calls back once when the term ends, at once if it has ended; answers with a function that unsubscribes. */
  onOver(listener: () => void): () => void {
    return this.state.term.onOver(listener);
  }

  /** Why a job is not running; only an operator is told about workers of other tenants. */
  why(job: PlacedRow, audience: Audience): Promise<Why> {
    return explainWaiting(this.state, job, audience);
  }

  get paused(): boolean {
    return this.state.paused;
  }

  /** How many waiting jobs are in memory. */
  get waiting(): number {
    return this.state.backlog.size;
  }

  /** Figures for metrics, at most a second old. */
  figures(): Promise<Figures> {
    return this.leaderFigures.get();
  }
}

/** Waits for a write that the fence has to refuse. */
async function refused(write: Promise<unknown>): Promise<void> {
  await write.then(
    () => {
      throw new Error('a write without a term was not refused');
    },
    (error: unknown) => {
      if (!(error instanceof TermOverError)) throw error;
    },
  );
}

/** Waits for the ends of many attempts with one promise, because results come by the thousand. */
class Ends implements EndListener {
  readonly all: Promise<boolean[]>;
  private readonly accepted: boolean[];
  private resolve!: (accepted: boolean[]) => void;
  private reject!: (error: unknown) => void;

  constructor(private open: number) {
    this.accepted = new Array<boolean>(open).fill(false);
    this.all = new Promise((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
    });
    if (open === 0) this.resolve([]);
  }

  ended(index: number, accepted: boolean): void {
    this.accepted[index] = accepted;
    this.open -= 1;
    if (this.open === 0) this.resolve(this.accepted);
  }

  failed(error: unknown): void {
    this.reject(error);
  }
}

/**
 * Whether the attempt is on record with this outcome, so that a repeated report is accepted again. A receiver may report the end
 * before its worker says that it has handed the attempt on: that changes nothing any more, and is right all the same.
 */
function isOnRecord(job: PlacedRow, { fence, end }: Report): boolean {
  const fits = (outcome: string | null) =>
    outcome === end.outcome ||
    (end.outcome === 'handed-on' && (outcome === 'succeeded' || outcome === 'failed'));
  if (job.fence === fence) return fits(job.outcome);
  return (job.earlier_attempts ?? []).some(
    (attempt: StoredAttempt) => attempt.fence === fence && fits(attempt.outcome),
  );
}
