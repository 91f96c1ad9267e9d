import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Term } from '../cluster/term.js';
import type { Clock } from '../core/clock.js';
import type { Config } from '../core/config.js';
import { invalid, messageOf, PunctualError } from '../core/errors.js';
import type { Log } from '../core/log.js';
import { PORTION } from '../core/time-slice.js';
import type { Pool } from '../store/database.js';
import type { EndedJob } from '../store/ended-jobs.js';
import { InDoubtError, TermOverError } from '../store/leader-statement.js';
import { lookAtLease } from '../store/lease.js';
import { PatientReads } from '../store/patient-reads.js';
import { readWaiting, type Waiting } from '../store/read-backlog.js';
import { Backlog } from './backlog.js';
import { Directory, type NameIds } from './directory.js';
import { Fitness } from './fitness.js';
import type { Running } from './running.js';
import type { WorkerSession } from './session.js';
import { Shares } from './shares.js';
import { Turns } from './turns.js';

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
  /** Ends the term and takes a new one, above the given epoch too. */
  readonly renounce: (reason: string, aboveEpoch?: number) => void;
}

/** Due jobs, and as many upcoming ones, in memory per shelf; what is more stays in the table. */
const SHELF_LIMIT = 20_000;
/** Jobs in memory from which on every shelf keeps fewer. */
const CROWDED_AT = 500_000;

/** Names that are missing in the database are told of in the log, each once, and not without end. */
const MAX_COMPLAINTS = 1_000;

/** A promoted replica can lack some terms of its predecessor, but not many. */
const MAX_EPOCH_JUMP = 1_000;
/** How long a term lasts at least before a worker's word ends it. */
const MIN_TERM_MS = 10_000;

/** Everything a leader holds in memory during one term. It is thrown away whole when the term ends. */
export class LeaderState {
  readonly term: Term;
  readonly hot: Pool;
  readonly pool: Pool;
  /** For what a new leader reads, which may be behind millions of dead rows. */
  readonly reads: PatientReads;
  readonly clock: Clock;
  readonly config: Config;
  readonly log: Log;
  readonly secret: Buffer;
  readonly directory: Directory;
  readonly shares: Shares;
  readonly backlog: Backlog;
  readonly fitness: Fitness;
  readonly turns = new Turns((jobId) => this.isMarked(jobId));
  readonly running = new Map<string, Running>();
  readonly sessions = new Map<string, WorkerSession>();
  paused = false;
  /** Whether every shelf that the table holds is known; until then there may be older work than memory has. */
  isLoaded = false;
  /** Set by the part that claims; called whenever a job or a slot may have become available. */
  wakeClaiming: () => void = () => undefined;
  private readonly renounce: LeaderOptions['renounce'];
  private readonly startedAt: number;
  private readonly complained = new Set<string>();
  private readonly endListeners = new Map<string, Set<() => void>>();

  constructor(options: LeaderOptions) {
    this.term = options.term;
    this.hot = options.hot;
    this.pool = options.pool;
    this.reads = new PatientReads(options.hot, options.patient);
    this.clock = options.clock;
    this.config = options.config;
    this.log = options.log;
    this.secret = options.secret;
    this.renounce = options.renounce;
    this.startedAt = options.clock.steady();
    this.directory = new Directory(options.hot, {
      isQueueInUse: (queue) => this.shares.find(queue) !== undefined,
      isNeedsInUse: (needs) => this.shares.hasNeeds(needs),
      onNeedsForgotten: (needs) => this.fitness.forget(needs),
    });
    this.fitness = new Fitness(this.directory);
    this.shares = new Shares({
      clock: options.clock,
      queueInfo: (queue) => this.directory.queue(queue)!,
      tenantInfo: (tenant) => this.directory.tenant(tenant),
      isServed: (needs) => this.fitness.isServed(needs),
      onReady: () => this.wakeClaiming(),
    });
    this.backlog = new Backlog({
      clock: options.clock,
      shares: this.shares,
      shelfLimit: SHELF_LIMIT,
      crowdedAt: CROWDED_AT,
      isTaken: (jobId) => this.running.has(jobId) || this.turns.isTaken(jobId),
    });
  }

  /**
   * Runs a leader's write. When its outcome is unknown, or the term is over, this leader can decide nothing
   * any more: the term ends, and whoever asked is told to try again.
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

  /** Whether the term is over. */
  get isOver(): boolean {
    return this.term.over;
  }

  /** Whether the job runs, or a statement about it is in flight. */
  isTaken(jobId: string): boolean {
    return this.running.has(jobId) || this.turns.has(jobId);
  }

  /** Whether the job is among those that are being claimed or ended at the moment. */
  private isMarked(jobId: string): boolean {
    const running = this.running.get(jobId);
    return running ? running.isEnding : this.backlog.isClaiming(jobId);
  }

  /** From here on the worker can be given jobs. */
  openSession(session: WorkerSession): void {
    this.sessions.set(session.id, session);
    this.shares.join(session);
    this.shares.servingChanged(this.fitness.join(session));
  }

  /** From here on the worker is given nothing. */
  closeSession(session: WorkerSession): void {
    if (!this.sessions.delete(session.id)) return;
    this.shares.leave(session);
    this.shares.servingChanged(this.fitness.leave(session));
  }

  /** A claim of an earlier leader goes on, and counts against the limits of its queue. */
  resume(running: Running): void {
    this.running.set(running.id, running);
    if (this.directory.queue(running.queue)) this.shares.reserve(running);
  }

  /** The worker's slot is free; the job runs on, and counts against the limits of its queue. */
  handOn(running: Running, startedAt: number | null): void {
    running.isHandedOn = true;
    running.startedAt ??= startedAt;
    running.list?.remove(running);
    this.wakeClaiming();
  }

  /** A job that ran does not run any more: it ended, or waits again. */
  endRunning(running: Running): void {
    this.running.delete(running.id);
    running.list?.remove(running);
    this.shares.release(running);
  }

  /**
   * Takes the turn of a job if nobody has it. The job leaves the backlog, so that nobody chooses it meanwhile;
   * whoever has the turn sees to it that memory follows the table afterwards.
   */
  tryTurn(jobId: string): boolean {
    if (!this.turns.tryTake(jobId)) return false;
    this.backlog.remove(jobId);
    return true;
  }

  /** Waits for the turn of a job and takes it. */
  async turn(jobId: string): Promise<void> {
    while (!this.tryTurn(jobId)) await this.turns.free(jobId);
  }

  /**
   * Takes waiting jobs into the backlog, once the names that they use are known: at once, but for those that are met for
   * the first time. `always` is for jobs that no cursor covers.
   */
  async takeIn(jobs: readonly Waiting[], always: boolean): Promise<void> {
    for (let from = 0; from < jobs.length; from += PORTION) {
      if (from > 0) await nextTurn();
      const portion = jobs.length <= PORTION ? jobs : jobs.slice(from, from + PORTION);
      if (!portion.every((job) => this.directory.knows(job))) await this.directory.learn(portion);
      for (const job of portion) if (this.hasPlace(job)) this.backlog.add(job, always);
    }
  }

  /**
   * Whether a job belongs to a queue that there is, and that is its own tenant's. A database that was exchanged for an
   * older copy of itself may have given the numbers of names that it lost to others: then nothing in memory is certain.
   */
  hasPlace(job: Pick<Waiting, 'id' | 'tenant' | 'queue' | 'needs'>): boolean {
    const queue = this.directory.queue(job.queue);
    const needs = this.directory.needsOf(job.needs);
    if (queue?.tenant === job.tenant && needs?.tenant === job.tenant) return true;
    if (this.complained.has(`${job.queue}/${job.needs}`)) return false;
    if (queue && needs) void this.compareNames(job);
    else this.complain(job);
    return false;
  }

  /** The table itself may be wrong about a job: then it can never start. When memory is, nothing in it is certain. */
  private async compareNames(job: NameIds): Promise<void> {
    try {
      if (await this.directory.isAsStored(job)) this.complain(job);
      else this.doubt(`the names ${job.queue} and ${job.needs} are not what they were`);
    } catch (error) {
      this.doubt(`it is not known whether names are what they were: ${messageOf(error)}`);
    }
  }

  /** Jobs of such a queue can never start; once is enough to say so. */
  private complain({ queue, needs }: NameIds): void {
    const names = `${queue}/${needs}`;
    if (this.complained.has(names) || this.complained.size >= MAX_COMPLAINTS) return;
    this.complained.add(names);
    this.log.error(
      { queue, needs },
      'there are jobs whose queue or needs are not there, or are of another tenant',
    );
  }

  /** Puts jobs that were written into the backlog; none may be forgotten because a read failed after the write. */
  async admit(jobs: readonly Waiting[]): Promise<void> {
    try {
      await this.takeIn(jobs, true);
    } catch (error) {
      this.doubt(`jobs could not be taken in after they were written: ${messageOf(error)}`);
    }
  }

  /** Lets memory follow the table for jobs whose turn was taken. */
  async follow(jobIds: readonly string[]): Promise<void> {
    const ids = jobIds.filter((id) => !this.running.has(id));
    if (ids.length === 0 || this.term.over) return;
    try {
      await this.admit(await readWaiting(this.hot, ids));
    } catch (error) {
      this.doubt(`it is not known what became of jobs: ${messageOf(error)}`);
    }
  }

  /** What memory says cannot be right: the term ends, and the next one reads everything anew. */
  doubt(reason: string): void {
    this.log.error({ epoch: this.term.epoch, reason }, 'memory and table disagree');
    this.renounce(reason);
  }

  /**
   * A worker that this leader knows has seen a higher epoch than this term's: another leader's, or one from before a replica was
   * promoted. Either way this term is not to be followed any more; a new one above it, if it can be had, is.
   */
  outdatedBy(epoch: number): never {
    // A worker's word is no proof, so it can neither push the epoch far nor make a leader change its term often.
    if (epoch > this.term.epoch + MAX_EPOCH_JUMP) {
      throw invalid([{ pointer: '/epoch', detail: 'is higher than any epoch there has been' }]);
    }
    if (this.clock.steady() - this.startedAt > MIN_TERM_MS)
      this.renounce(`a worker has seen epoch ${epoch}`, epoch);
    throw noLeader();
  }

  /** Asks the database whether this term lasts; throws, and gives it up, when it does not. */
  async confirmTerm(): Promise<void> {
    const { shard, epoch, holder } = this.term;
    const lease = await lookAtLease(this.hot, shard);
    if (lease.epoch === epoch && lease.holder === holder) return;
    this.renounce(`the lease says epoch ${lease.epoch}`);
    throw noLeader();
  }

  /** Calls back once when the job ends or the term does; answers with a way to stop listening. */
  onJobEnd(jobId: string, listener: () => void): () => void {
    const listeners = this.endListeners.get(jobId) ?? new Set();
    listeners.add(listener);
    this.endListeners.set(jobId, listeners);
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0) this.endListeners.delete(jobId);
    };
  }

  /** Jobs have ended, and that is committed: tells everybody who waits for one of them. */
  ended(jobs: readonly EndedJob[]): void {
    if (this.endListeners.size === 0) return;
    for (const { id } of jobs) {
      const listeners = this.endListeners.get(id);
      if (!listeners) continue;
      this.endListeners.delete(id);
      for (const listener of listeners) listener();
    }
  }

  /** Runs a write that ends jobs, and tells of them once it is committed. */
  async writeEnds(work: () => Promise<readonly EndedJob[]>): Promise<readonly EndedJob[]> {
    const ended = await this.write(work);
    this.ended(ended);
    return ended;
  }

  /** Lets everybody go who waits for something of this term. */
  dispose(): void {
    this.backlog.stop();
    this.reads.stop();
    for (const listeners of this.endListeners.values()) for (const listener of listeners) listener();
    this.endListeners.clear();
    for (const session of this.sessions.values()) {
      // Told apart from "no work": whoever waits asks the next leader at once.
      for (const poll of session.polls) poll.fail(noLeader());
    }
  }
}

/** Not the same as having no leader, where it is certain that nothing was done and others may be asked. */
function inDoubt(cause: InDoubtError): PunctualError {
  return new PunctualError(
    'DATABASE_UNAVAILABLE',
    'The database did not answer; it is not known whether this was done.',
    { cause, retryAfter: 1 },
  );
}

export function noLeader(cause?: unknown): PunctualError {
  return new PunctualError('NO_LEADER', 'The shard has no leader at the moment; try again shortly.', {
    retryAfter: 1,
    ...(cause !== undefined && { cause }),
  });
}
