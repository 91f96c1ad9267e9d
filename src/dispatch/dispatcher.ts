import { setImmediate as nextTurn } from 'node:timers/promises';
import { messageOf } from '../core/errors.js';
import type { Progress } from '../core/job.js';
import { PORTION } from '../core/time-slice.js';
import type { AttemptEnd } from '../core/transition.js';
import type { FencedJob, Why } from '../core/wire.js';
import { Schedules } from '../schedule/schedules.js';
import { readClaims } from '../store/claims.js';
import { readClusterState } from '../store/cluster-state.js';
import type { PlacedRow, StoredAttempt } from '../store/job-places.js';
import type { JobRow } from '../store/job-row.js';
import type { Resolved } from '../store/names.js';
import type { Waiting } from '../store/read-backlog.js';
import { readJob } from '../store/read-job.js';
import { Admitting } from './admitting.js';
import { Claiming } from './claiming.js';
import { Expiring } from './expiring.js';
import { Express } from './express.js';
import { type EndListener, Finishing } from './finishing.js';
import { Governing } from './governing.js';
import { Reading } from './reading.js';
import { type Running, resumeRunning } from './running.js';
import { type LeaderOptions, LeaderState } from './state.js';
import { Steering } from './steering.js';
import { Upkeep } from './upkeep.js';
import { explainWaiting } from './why.js';
import { Workers } from './workers.js';

/** An attempt's end as a worker reports it. */
export interface Report extends FencedJob {
  readonly tenant: string;
  readonly end: AttemptEnd;
  readonly startedAt: number | null;
}

export interface DispatcherOptions extends LeaderOptions {
  /** How long after its id was made a submission can become visible: the submitters' statement timeout. */
  readonly submitTimeoutMs: number;
}

/** The first jobs of a term must not wait for connections that everything else has taken. */
const AFTER_TAKEOVER_MS = 50;

/**
 * The one dispatcher of a shard, alive for one term. It is built when the term begins and thrown away when it
 * ends; a new term builds a new one from the tables, so no state outlives the right to decide.
 */
export class Dispatcher {
  readonly workers: Workers;
  readonly steering: Steering;
  readonly governing: Governing;
  private readonly express: Express;
  readonly schedules: Schedules;
  private readonly state: LeaderState;
  private readonly finishing: Finishing;
  private readonly claiming: Claiming;
  private readonly reading: Reading;
  private readonly admitting: Admitting;
  private readonly expiring: Expiring;
  private readonly upkeep: Upkeep;
  private rest: NodeJS.Timeout | undefined;

  constructor(options: DispatcherOptions) {
    this.state = new LeaderState(options);
    this.finishing = new Finishing(this.state);
    this.expiring = new Expiring(this.state);
    this.reading = new Reading(this.state, options.submitTimeoutMs, {
      onAdmit: () => this.admitting.wake(),
      onStartBefore: (at) => this.expiring.expect(at),
    });
    this.admitting = new Admitting(this.state, this.reading, (at) => this.expiring.expect(at));
    this.claiming = new Claiming(this.state, {
      onExpired: () => this.expiring.wake(),
      onDrained: () => this.reading.wake(),
      onOrphans: (orphans) => this.giveBack(orphans),
    });
    this.workers = new Workers(this.state, this.finishing);
    this.steering = new Steering(this.state, this.admitting, {
      onStartBefore: (at) => this.expiring.expect(at),
      onCancelRunning: (running) => this.workers.cancelled(running),
    });
    this.governing = new Governing(this.state);
    this.express = new Express(this.state, (orphans) => this.giveBack(orphans));
    this.schedules = new Schedules(this.state, (tenant, jobId) => this.steering.cancel(tenant, jobId));
    this.upkeep = new Upkeep(this.state);
  }

  get epoch(): number {
    return this.state.term.epoch;
  }

  /**
   * Claims first, in a statement after the takeover's commit; then what waits, page by page. Workers that have waited
   * for this term get their jobs before everything else is looked after.
   */
  async start(): Promise<void> {
    const { state } = this;
    state.paused = (await readClusterState(state.hot)).paused;
    const claims = await readClaims(state.reads);
    for (let from = 0; from < claims.length; from += PORTION) {
      // What is learned may be forgotten again as long as nothing in memory uses it.
      const portion = claims.slice(from, from + PORTION);
      if (from > 0) await nextTurn();
      await state.directory.learn(portion);
      for (const claim of portion) state.resume(resumeRunning(claim, state.clock));
    }
    await this.workers.load();
    await this.reading.load();
    if (state.term.over) return;
    for (const part of [this.finishing, this.claiming, this.reading, this.workers]) part.start();
    this.rest = setTimeout(() => this.startRest(), AFTER_TAKEOVER_MS).unref();
  }

  private startRest(): void {
    this.reading.startLooking();
    for (const part of [this.admitting, this.expiring, this.schedules, this.upkeep]) part.start();
  }

  /** Ends all background work of this term; nothing is written any more. */
  async stop(): Promise<void> {
    clearTimeout(this.rest);
    this.state.dispose();
    await Promise.all(this.parts.map((part) => part.stop()));
  }

  private get parts() {
    return [
      this.finishing,
      this.claiming,
      this.reading,
      this.admitting,
      this.expiring,
      this.workers,
      this.schedules,
      this.upkeep,
    ];
  }

  private giveBack(orphans: readonly Running[]): void {
    this.workers.giveBack(orphans).catch((error: unknown) => {
      // They stay claimed by a session that has ended, and are lost with it when its time is up.
      this.state.log.warn({ error: messageOf(error) }, 'claims could not be given back');
    });
  }

  /** Stores and starts a job at once; answers false, with nothing done, when it has to take the ordinary way. */
  submit(row: JobRow, names: Resolved): Promise<boolean> {
    return this.express.submit(row, names);
  }

  /** Jobs that were just stored, and the earliest `startBefore` among those in `later`. */
  async hint(jobs: readonly Waiting[], startBefore: number | null = null): Promise<void> {
    this.expiring.expect(startBefore);
    await this.reading.hint(jobs);
  }

  /** Ends attempts; answers for each whether it counted. */
  async report(reports: readonly Report[]): Promise<boolean[]> {
    const { state } = this;
    const ends = new Ends(reports.length);
    reports.forEach(({ tenant, jobId, fence, end, startedAt }, place) => {
      const running = state.running.get(jobId);
      const isFree = running !== undefined && !running.isEnding && !state.turns.isTaken(jobId);
      const isBegun =
        isFree &&
        running.tenant === tenant &&
        this.finishing.begin(running, fence, end, startedAt, ends, place);
      if (!isBegun) ends.ended(place, false);
    });
    const accepted = await ends.all;
    if (accepted.every(Boolean)) return accepted;
    // What did not end at once may have ended before, or somebody else has its turn.
    return Promise.all(accepted.map((yes, place) => yes || this.reportOne(reports[place]!)));
  }

  private async reportOne(report: Report): Promise<boolean> {
    const { state } = this;
    const { tenant } = report;
    while (state.turns.has(report.jobId)) await state.turns.free(report.jobId);
    if (state.running.get(report.jobId)?.tenant === tenant) {
      if (await this.finishing.end(report.jobId, report.fence, report.end, report.startedAt)) return true;
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
    return true;
  }

  /** The newest progress of a running job, before it reaches the database. */
  progressOf(jobId: string): Progress | null {
    return this.state.running.get(jobId)?.progress ?? null;
  }

  onJobEnd(jobId: string, listener: () => void): () => void {
    return this.state.onJobEnd(jobId, listener);
  }

  /** Calls back once when the term ends, at once if it has ended; answers with a way to stop listening. */
  onOver(listener: () => void): () => void {
    return this.state.term.onOver(listener);
  }

  why(job: PlacedRow): Promise<Why> {
    return explainWaiting(this.state, job);
  }

  get paused(): boolean {
    return this.state.paused;
  }

  /** Figures for metrics. */
  gauges(): { running: number; waiting: number; workers: number } {
    return {
      running: this.state.running.size,
      waiting: this.state.backlog.size,
      workers: this.state.sessions.size,
    };
  }
}

/** Waits for the ends of several attempts with one promise: results come by the thousand. */
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

  ended(place: number, accepted: boolean): void {
    this.accepted[place] = accepted;
    this.open -= 1;
    if (this.open === 0) this.resolve(this.accepted);
  }

  failed(error: unknown): void {
    this.reject(error);
  }
}

/** Whether the attempts on record already hold this very outcome: a repeated report is accepted again. */
function isOnRecord(job: PlacedRow, report: Report): boolean {
  if (job.fence === report.fence) return job.outcome === report.end.outcome;
  return (job.earlier_attempts ?? []).some(
    (attempt: StoredAttempt) => attempt.fence === report.fence && attempt.outcome === report.end.outcome,
  );
}
