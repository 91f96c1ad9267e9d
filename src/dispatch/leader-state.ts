import { setImmediate as nextIteration } from 'node:timers/promises';
import type { ArtifactStore } from '../artifact/artifact-store.js';
import type { Term } from '../cluster/term.js';
import type { AuditEntry } from '../core/audit.js';
import type { Clock } from '../core/clock.js';
import type { Config } from '../core/config.js';
import { invalid, messageOf, PunctualError } from '../core/errors.js';
import type { Log } from '../core/log.js';
import { SharedRun } from '../core/shared-run.js';
import { PORTION } from '../core/time-slice.js';
import type { Pool, Queryable } from '../store/database.js';
import { type EndedJob, type EndedStep, stepsAmong } from '../store/ended-jobs.js';
import { type Keep, leaderEffect } from '../store/idempotency.js';
import { audited, InDoubtError, type TermKey, TermOverError } from '../store/leader-statement.js';
import { lookAtLease } from '../store/lease.js';
import { PatientReads } from '../store/patient-reads.js';
import { readWaiting, type Waiting } from '../store/read-backlog.js';
import { TaskDefinitions } from '../store/task-definitions.js';
import { WorkflowMeters } from '../workflow/workflow-meters.js';
import { AddedJobs } from './added-jobs.js';
import { AttemptMeters } from './attempt-meters.js';
import { Backlog } from './backlog.js';
import { CallSlots } from './call-slots.js';
import { Directory, type NameIds } from './directory.js';
import { EventRecorder } from './event-recorder.js';
import { FailureLog } from './failure-log.js';
import { Fitness } from './fitness.js';
import { GangBoard } from './gang-board.js';
import { Origins } from './origins.js';
import type { Running } from './running.js';
import { Shares } from './shares.js';
import { Turns } from './turns.js';
import type { WorkerSession } from './worker-session.js';

/** What a leader is made from. */
export interface LeaderOptions {
  readonly term: Term;
  /** Connections with the plans of the hot statements. */
  readonly hot: Pool;
  /** Connections for everything else. */
  readonly pool: Pool;
  /** Connections for reads beyond the deadline of `hot`. */
  readonly patient: Pool;
  readonly clock: Clock;
  readonly config: Config;
  readonly log: Log;
  /** Signs attempt tokens. */
  readonly secret: Buffer;
  /** The tasks that are defined, as the node knows them; default a view of its own. */
  readonly tasks?: TaskDefinitions;
  /** Where the bytes of artifacts are; a leader without it cleans none up. */
  readonly artifacts?: ArtifactStore;
  /** Gives the term up; the node then tries for a new one, with an epoch above the given one. */
  readonly renounce: (reason: string, aboveEpoch?: number) => void;
}

/** The most due jobs, and the most upcoming ones, that a segment keeps in memory; the rest stays in the table. */
const SEGMENT_LIMIT = 20_000;
/** The number of jobs in memory above which every segment keeps fewer. */
const CROWDED_AT = 500_000;

/** How many missing names are logged, each once. */
const MAX_COMPLAINTS = 1_000;

/** How many terms of its predecessor a promoted replica may lack. */
const MAX_EPOCH_JUMP = 1_000;
/** How long a term lasts at least before a worker's claim of a higher epoch ends it. */
const MIN_TERM_MS = 10_000;

/** Everything a leader holds in memory during one term. It is discarded as a whole when the term ends. */
export class LeaderState {
  readonly term: Term;
  readonly hot: Pool;
  readonly pool: Pool;
  /** For reads that may have to pass millions of dead rows. */
  readonly reads: PatientReads;
  readonly clock: Clock;
  readonly config: Config;
  readonly log: Log;
  readonly secret: Buffer;
  readonly tasks: TaskDefinitions;
  readonly artifacts: ArtifactStore | null;
  /** What it logs about jobs that fail for good. */
  readonly failures: FailureLog;
  readonly directory: Directory;
  readonly shares: Shares;
  readonly backlog: Backlog;
  readonly fitness: Fitness;
  /** What is known of the origins that http targets call. */
  readonly origins: Origins;
  readonly meters: AttemptMeters;
  readonly workflowMeters = new WorkflowMeters();
  /** What is told to those who listen to events. */
  readonly events: EventRecorder;
  /** Jobs that the leader adds by itself, for the quotas of their tenants. */
  readonly addedJobs: AddedJobs;
  readonly turns = new Turns((jobId) => this.isMarked(jobId));
  readonly running = new Map<string, Running>();
  /** The batches that wait or run. */
  readonly gangs: GangBoard;
  readonly sessions = new Map<string, WorkerSession>();
  private readonly callSlots = new CallSlots(this.sessions);
  paused = false;
  /** Workflows that ended before it are being removed, and are not set going again. Changed by whoever is alone with them. */
  keptSince = 0;
  /** Whether all segments of the table are known; until then the table may hold older jobs than memory. */
  isLoaded = false;
  /** Set by the claimer; called whenever a job or a slot may have become available. */
  wakeClaiming: () => void = () => undefined;
  /** Set by the workflows; called after the commit with the steps that have ended. */
  noteSteps: (steps: readonly EndedStep[]) => void = () => undefined;
  /** Set by the dispatcher; called after the commit with an attempt whose job a schedule made, and that found its URL gone. */
  noteGone: (running: Running) => void = () => undefined;
  /** Set by the chain of the audit; called after an entry was written. */
  noteEntry: () => void = () => undefined;
  private readonly renounce: LeaderOptions['renounce'];
  private readonly startedAt: number;
  private readonly complained = new Set<string>();
  private readonly endListeners = new Map<string, Set<() => void>>();
  /** Anybody can cause a look at the term, so many at once cost one statement. */
  private readonly looks = new SharedRun(() => this.lookAtTerm());

  constructor(options: LeaderOptions) {
    this.term = options.term;
    this.hot = options.hot;
    this.pool = options.pool;
    this.reads = new PatientReads(options.hot, options.patient);
    this.clock = options.clock;
    this.config = options.config;
    this.log = options.log;
    this.secret = options.secret;
    this.tasks = options.tasks ?? new TaskDefinitions(options.hot, options.clock);
    this.artifacts = options.artifacts ?? null;
    this.failures = new FailureLog(options.log, options.clock);
    this.addedJobs = new AddedJobs(options.hot, options.log);
    this.renounce = options.renounce;
    this.startedAt = options.clock.steady();
    this.gangs = new GangBoard(options.clock);
    this.directory = new Directory(options.hot, {
      isQueueInUse: (queue) => this.shares.find(queue) !== undefined || this.gangs.usesQueue(queue),
      isNeedsInUse: (needs) => this.shares.hasNeeds(needs) || this.gangs.usesNeeds(needs),
      onNeedsForgotten: (needs) => this.fitness.forget(needs),
    });
    this.events = new EventRecorder(options.term.epoch, options.clock, this.directory);
    this.fitness = new Fitness(this.directory);
    this.meters = new AttemptMeters(this.directory, options.clock, options.config.metricsLabels);
    this.origins = new Origins({
      clock: options.clock,
      config: options.config,
      needsOf: (needs) => this.directory.needsOf(needs),
      slotsOf: (tenant) => this.callSlots.of(tenant),
      onChange: (needs, mayStart) => {
        this.shares.servingChanged(needs, mayStart);
        this.gangs.changed();
      },
      onOpened: (origin, until) => {
        if (this.events.isHeard) this.events.origin('origin.opened', origin, this.onDatabaseClock(until));
      },
      onClosed: (origin) => {
        if (this.events.isHeard) this.events.origin('origin.closed', origin, null);
      },
      onPaused: (origin, until) => {
        if (this.events.isHeard) this.events.origin('origin.paused', origin, this.onDatabaseClock(until));
      },
    });
    this.shares = new Shares({
      clock: options.clock,
      queueInfo: (queue) => this.directory.queue(queue)!,
      tenantInfo: (tenant) => this.directory.tenant(tenant),
      isServed: (needs) => !this.origins.isShut(needs) && this.fitness.isServed(needs),
      origins: this.origins,
      onReady: () => this.wakeClaiming(),
    });
    this.backlog = new Backlog({
      clock: options.clock,
      shares: this.shares,
      segmentLimit: SEGMENT_LIMIT,
      crowdedAt: CROWDED_AT,
      isTaken: (jobId) => this.running.has(jobId) || this.turns.isTaken(jobId),
    });
  }

  /**
   * Runs a leader's write. When its outcome is unknown, or the term is over, this leader must decide nothing more: it
   * gives the term up, and the caller gets an error that says to try again.
   */
  async write<T>(work: () => Promise<T>): Promise<T> {
    if (this.term.over) throw noLeader();
    if (!this.term.trusted) {
      this.renounce('the lease was not renewed in time');
      throw noLeader();
    }
    try {
      return await work();
    } catch (error) {
      if (error instanceof TermOverError) {
        this.renounce(error.message);
        throw noLeader(error);
      }
      if (error instanceof InDoubtError) {
        this.renounce(`${error.message}: ${messageOf(error.cause)}`);
        throw inDoubt(error);
      }
      throw error;
    }
  }

  /** Runs a write that somebody requested, with its entry of the audit and its kept answer if it has them: all or none. */
  async writeRequested<T>(
    entry: AuditEntry | undefined,
    keep: Keep<T> | undefined,
    work: (db: Queryable, term: TermKey) => Promise<T>,
  ): Promise<T> {
    const term = audited(this.term, entry);
    const value = await this.write(() => leaderEffect(this, keep, (db) => work(db, term)));
    if (entry) this.noteEntry();
    return value;
  }

  /** A moment of the steady clock on that of the database. */
  onDatabaseClock(moment: number): number {
    return Math.ceil(this.clock.now() + moment - this.clock.steady());
  }

  /** How long the term has lasted. */
  get termMs(): number {
    return this.clock.steady() - this.startedAt;
  }

  /** Whether the term is over. */
  get isOver(): boolean {
    return this.term.over;
  }

  /** Whether the job runs, or its turn is taken. */
  isTaken(jobId: string): boolean {
    return this.running.has(jobId) || this.turns.has(jobId);
  }

  /** Whether a claim or an end of the job is in flight. */
  private isMarked(jobId: string): boolean {
    const running = this.running.get(jobId);
    return running ? running.isEnding : this.backlog.isClaiming(jobId);
  }

  /** Adds a session; its worker can be given jobs from here on. */
  openSession(session: WorkerSession): void {
    this.sessions.set(session.id, session);
    this.shares.join(session);
    this.shares.servingChanged(this.fitness.join(session));
    this.slotsChanged();
  }

  /** Removes a session; its worker is given no jobs from here on. */
  closeSession(session: WorkerSession): void {
    if (!this.sessions.delete(session.id)) return;
    this.shares.leave(session);
    this.shares.servingChanged(this.fitness.leave(session));
    this.slotsChanged();
  }

  /** Gives the worker no further jobs. */
  drainSession(session: WorkerSession): void {
    session.draining = true;
    this.slotsChanged();
  }

  private slotsChanged(): void {
    this.gangs.changed();
    this.callSlots.changed();
    this.origins.slotsChanged();
  }

  /** Takes over a claim of an earlier leader, which counts against the limits of its queue. */
  resume(running: Running): void {
    this.running.set(running.id, running);
    if (this.directory.queue(running.queue)) this.shares.reserve(running);
  }

  /** Frees the worker's slot; the job still runs, and counts against the limits of its queue. */
  handOn(running: Running, startedAt: number | null): void {
    // A worker whose report was not answered says it again: its call is over only once.
    if (running.isHandedOn) return;
    this.origins.over(running);
    running.isHandedOn = true;
    running.startedAt ??= startedAt;
    running.list?.remove(running);
    this.gangs.changed();
    this.wakeClaiming();
  }

  /** Forgets a running job that ended or waits again. */
  endRunning(running: Running): void {
    this.running.delete(running.id);
    running.list?.remove(running);
    this.shares.release(running);
    this.gangs.changed();
  }

  /**
   * Takes the turn of a job if it is free. The job leaves the backlog, so that it cannot be chosen meanwhile; the
   * caller must call `follow` after releasing the turn, unless it knows what became of the job.
   */
  tryTurn(jobId: string): boolean {
    if (!this.turns.tryTake(jobId)) return false;
    this.backlog.remove(jobId);
    return true;
  }

  /** Waits for the turn of a job and takes it. */
  async turn(jobId: string): Promise<void> {
    while (!this.tryTurn(jobId)) await this.turns.untilFree(jobId);
  }

  /**
   * Adds waiting jobs to the backlog, after reading those of their names that are not known yet. `always` is for jobs
   * that no cursor covers.
   */
  async takeIn(jobs: readonly Waiting[], always: boolean): Promise<void> {
    for (let from = 0; from < jobs.length; from += PORTION) {
      if (from > 0) await nextIteration();
      const portion = jobs.length <= PORTION ? jobs : jobs.slice(from, from + PORTION);
      if (!portion.every((job) => this.directory.knows(job))) await this.directory.learn(portion);
      for (const job of portion) if (this.hasKnownNames(job)) this.backlog.add(job, always);
    }
  }

  /**
   * Whether the names of a job are known and are its own tenant's. A database that was restored from an older copy may
   * have given the ids of lost names to others; then nothing in memory can be trusted.
   */
  hasKnownNames(job: Pick<Waiting, 'id' | 'tenant' | 'queue' | 'needs'>): boolean {
    const queue = this.directory.queue(job.queue);
    const needs = this.directory.needsOf(job.needs);
    if (queue?.tenant === job.tenant && needs?.tenant === job.tenant) return true;
    if (this.complained.has(`${job.queue}/${job.needs}`)) return false;
    if (queue && needs) void this.compareNames(job);
    else this.complain(job);
    return false;
  }

  /** If the table is wrong about the names, the job can never start; if memory is, the term must end. */
  private async compareNames(job: NameIds): Promise<void> {
    try {
      if (await this.directory.isAsStored(job)) this.complain(job);
      else this.doubt(`the names ${job.queue} and ${job.needs} are not what they were`);
    } catch (error) {
      this.doubt(`it is not known whether names are what they were: ${messageOf(error)}`);
    }
  }

  /** Logs, once for these names, that jobs with them can never start. */
  private complain({ queue, needs }: NameIds): void {
    const names = `${queue}/${needs}`;
    if (this.complained.has(names) || this.complained.size >= MAX_COMPLAINTS) return;
    this.complained.add(names);
    this.log.error(
      { queue, needs },
      'there are jobs whose queue or needs are not there, or are of another tenant',
    );
  }

  /** Adds jobs that were just written to the backlog; if that fails, gives the term up, as no cursor covers them. */
  async admit(jobs: readonly Waiting[]): Promise<void> {
    try {
      await this.takeIn(jobs, true);
    } catch (error) {
      this.doubt(`jobs could not be taken in after they were written: ${messageOf(error)}`);
    }
  }

  /** The same for jobs that were not in the live table before, and so count against the quota of their tenant. */
  admitNew(jobs: readonly Waiting[]): Promise<void> {
    this.addedJobs.noteLive(jobs);
    return this.admit(jobs);
  }

  /** Reads jobs again whose turn was taken, and adds those that wait to the backlog. */
  async follow(jobIds: readonly string[]): Promise<void> {
    const ids = jobIds.filter((id) => !this.running.has(id));
    if (ids.length === 0 || this.term.over) return;
    try {
      await this.admit(await readWaiting(this.hot, ids));
    } catch (error) {
      this.doubt(`it is not known what became of jobs: ${messageOf(error)}`);
    }
  }

  /** Gives the term up because memory is known to be wrong; the next term reads everything anew. */
  doubt(reason: string): void {
    this.log.error({ epoch: this.term.epoch, reason }, 'memory and table disagree');
    this.renounce(reason);
  }

  /**
   * A worker of this leader has seen a higher epoch: that of another leader, or one from before a replica was promoted.
   * Workers ignore this term from then on, so it is given up for one above that epoch.
   */
  outdatedBy(epoch: number): never {
    // A worker's word is no proof, so it must neither raise the epoch far nor end terms often.
    if (epoch > this.term.epoch + MAX_EPOCH_JUMP) {
      throw invalid([{ pointer: '/epoch', detail: 'is higher than any epoch there has been' }]);
    }
    if (this.clock.steady() - this.startedAt > MIN_TERM_MS)
      this.renounce(`a worker has seen epoch ${epoch}`, epoch);
    throw noLeader();
  }

  /** Asks the database whether this term lasts; if not, gives it up and throws. The answer is never older than the call. */
  confirmTerm(): Promise<void> {
    return this.looks.ask();
  }

  private async lookAtTerm(): Promise<void> {
    const { shard, epoch, holder } = this.term;
    const lease = await lookAtLease(this.hot, shard);
    if (lease.epoch === epoch && lease.holder === holder) return;
    this.renounce(`the lease says epoch ${lease.epoch}`);
    throw noLeader();
  }

  /** Calls back once when the job or batch, or the term, ends; answers with a function that unsubscribes. */
  onJobEnd(jobId: string, listener: () => void): () => void {
    const listeners = this.endListeners.get(jobId) ?? new Set();
    listeners.add(listener);
    this.endListeners.set(jobId, listeners);
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0) this.endListeners.delete(jobId);
    };
  }

  /** Whether somebody is told of ends: if not, nothing need be made for it. */
  get hearsEnds(): boolean {
    return this.gangs.isInUse || this.endListeners.size > 0;
  }

  /** Tells the listeners of jobs that have ended. Must be called after the commit. */
  ended(jobs: readonly EndedJob[]): void {
    if (this.gangs.isInUse) this.gangs.noteEnds(jobs);
    if (this.endListeners.size === 0) return;
    for (const { id } of jobs) this.tellEnd(id);
  }

  /** Tells the listeners of a job or a batch that has ended. Must be called after the commit. */
  tellEnd(id: string): void {
    const listeners = this.endListeners.get(id);
    if (!listeners) return;
    this.endListeners.delete(id);
    for (const listener of listeners) listener();
  }

  /** Runs a write that ends jobs, and tells their listeners after the commit. */
  async writeEnds<J extends EndedJob>(work: () => Promise<readonly J[]>): Promise<readonly J[]> {
    const ended = await this.write(work);
    this.ended(ended);
    this.noteSteps(stepsAmong(ended));
    if (this.events.isHeard) this.events.endedWaiting(ended);
    return ended;
  }

  /** Ends every wait for something of this term. */
  dispose(): void {
    this.backlog.stop();
    this.origins.stop();
    this.reads.stop();
    this.turns.stop(noLeader());
    this.failures.close();
    this.events.dispose();
    this.addedJobs.stop();
    for (const listeners of this.endListeners.values()) for (const listener of listeners) listener();
    this.endListeners.clear();
    for (const session of this.sessions.values()) {
      // An error instead of an empty answer, so that the worker asks the next leader at once.
      for (const poll of session.polls) poll.fail(noLeader());
    }
  }
}

/** The error for an unknown outcome. Unlike `noLeader` it does not promise that nothing was done. */
function inDoubt(cause: InDoubtError): PunctualError {
  return new PunctualError(
    'DATABASE_UNAVAILABLE',
    'The database did not answer; it is not known whether this was done.',
    { cause, retryAfter: 1 },
  );
}

/** The error for a request that found no leader; certainly nothing was done. */
export function noLeader(cause?: unknown): PunctualError {
  return new PunctualError('NO_LEADER', 'The shard has no leader at the moment; try again shortly.', {
    retryAfter: 1,
    ...(cause !== undefined && { cause }),
  });
}
