import { invalid, PunctualError } from '../core/errors.js';
import { endWaitingJobs } from '../store/end-waiting-jobs.js';
import type { PlacedRow } from '../store/job-places.js';
import { rankOf } from '../store/job-row.js';
import { listJobs } from '../store/list-jobs.js';
import {
  admitJobs,
  changeLater,
  changeLive,
  postponeJob,
  redriveJobs,
  unchanged,
} from '../store/place-jobs.js';
import { readWaiting, type Waiting } from '../store/read-backlog.js';
import { readJob } from '../store/read-job.js';
import { admissionTime } from './admission-time.js';
import type { Admitting } from './admitting.js';
import type { Running } from './running.js';
import type { LeaderState } from './state.js';

/** What can be changed about a job that has not started. */
export interface Change {
  readonly runAt?: number;
  readonly priority?: number;
  /** JSON text. */
  readonly payload?: string;
}

const MAX_REDRIVE = 1_000;

/** What people do to single jobs. Each takes the job's turn, so nothing else about it is in flight meanwhile. */
export class Steering {
  constructor(
    private readonly state: LeaderState,
    private readonly admitting: Admitting,
    private readonly parts: {
      onStartBefore(at: number | null): void;
      onCancelRunning(running: Running): void;
    },
  ) {}

  /** A waiting job is cancelled now; a running one when its worker confirms. */
  async cancel(tenant: string, id: string): Promise<void> {
    await this.inTurn(tenant, id, async (job) => {
      const { state } = this;
      if (job.place === 'history') throw ended(job);
      const running = state.running.get(id);
      if (running) {
        running.cancelledAt ??= state.clock.now();
        this.parts.onCancelRunning(running);
        return;
      }
      const end = { id, state: 'cancelled' as const, error: null };
      const now = state.clock.now();
      const place = job.place === 'later' ? 'later' : 'live';
      await state.write(() => endWaitingJobs(state.hot, state.term, place, [end], now));
      state.jobEnded(id);
    });
  }

  /** Keeps a waiting job from starting until it is released. */
  async hold(tenant: string, id: string): Promise<void> {
    await this.inTurn(tenant, id, async (job) => {
      const { state } = this;
      this.mustWait(job);
      if (job.held) throw new PunctualError('JOB_HELD', `Job ${id} is on hold already.`);
      const held = { ...unchanged(id), admitAt: job.run_at, held: true };
      await state.write(() =>
        job.place === 'later'
          ? changeLater(state.hot, state.term, held)
          : postponeJob(state.hot, state.term, held),
      );
    });
  }

  async release(tenant: string, id: string): Promise<void> {
    await this.inTurn(tenant, id, async (job) => {
      this.mustWait(job);
      if (!job.held) throw new PunctualError('JOB_NOT_HELD', `Job ${id} is not on hold.`);
      await this.place(job, {}, false);
    });
  }

  /** Changes a job that has not started. */
  async change(tenant: string, id: string, change: Change): Promise<void> {
    await this.inTurn(tenant, id, async (job) => {
      this.mustWait(job);
      if (job.attempts > 0) throw new PunctualError('JOB_STARTED', `Job ${id} has had an attempt already.`);
      if (job.start_before !== null && (change.runAt ?? 0) >= job.start_before) {
        throw invalid([{ pointer: '/runAt', detail: "must lie before the job's startBefore" }]);
      }
      await this.place(job, change, job.held);
    });
  }

  /** Sends a dead letter round again. */
  async retry(tenant: string, id: string): Promise<void> {
    await this.inTurn(tenant, id, async (job) => {
      if (job.place !== 'history') throw new PunctualError('JOB_NOT_ENDED', `Job ${id} has not ended.`);
      if (job.at_most_once)
        throw new PunctualError('AT_MOST_ONCE', `Job ${id} is at-most-once and is never started again.`);
      if (job.state !== 'failed' && job.state !== 'cancelled') {
        throw new PunctualError('JOB_ENDED', `Job ${id} ${job.state}; there is nothing to retry.`);
      }
      await this.sendRound(tenant, [id]);
    });
  }

  /** Sends many dead letters round again, newest first, a bounded number per call. */
  async redrive(
    tenant: string,
    filter: { task?: string | undefined; queue?: string | undefined },
    dryRun: boolean,
  ): Promise<{ matched: number; redriven: number; more: boolean }> {
    const found = await listJobs(this.state.pool, tenant, {
      ...filter,
      state: 'failed',
      limit: MAX_REDRIVE + 1,
    });
    const jobs = found.slice(0, MAX_REDRIVE).filter((job) => !job.at_most_once);
    const more = found.length > MAX_REDRIVE;
    if (dryRun || jobs.length === 0) return { matched: jobs.length, redriven: 0, more };
    const sent = await this.sendRound(
      tenant,
      jobs.map((job) => job.id),
    );
    for (const job of sent) this.state.backlog.add(job, true);
    return { matched: jobs.length, redriven: sent.length, more };
  }

  private async sendRound(tenant: string, ids: readonly string[]): Promise<Waiting[]> {
    const { state } = this;
    const now = state.clock.now();
    const jobs = await state.write(() => redriveJobs(state.hot, state.term, tenant, ids, now));
    if (!jobs.every((job) => state.directory.knows(job))) await state.directory.learn();
    return jobs;
  }

  /** Puts a waiting job, changed, into the place where it belongs. */
  private async place(job: PlacedRow, change: Change, held: boolean): Promise<void> {
    const { state } = this;
    const now = state.clock.now();
    const runAt = change.runAt === undefined ? job.run_at : Math.max(change.runAt, now);
    const admitAt = admissionTime(runAt, now, state.config.laterThreshold);
    const rank = change.priority === undefined ? null : rankOf(change.priority);
    const changed = { id: job.id, runAt, rank, payload: change.payload ?? null };
    const stays = held || admitAt !== null;
    const later = { ...changed, admitAt: admitAt ?? runAt, held };
    this.parts.onStartBefore(job.start_before);
    await state.write<unknown>(() => {
      if (stays)
        return job.place === 'later'
          ? changeLater(state.hot, state.term, later)
          : postponeJob(state.hot, state.term, later);
      return job.place === 'later'
        ? admitJobs(state.hot, state.term, [changed])
        : changeLive(state.hot, state.term, changed);
    });
  }

  private mustWait(job: PlacedRow): void {
    if (job.place === 'history') throw ended(job);
    if (this.state.running.has(job.id)) throw new PunctualError('JOB_STARTED', `Job ${job.id} is running.`);
  }

  /** Runs `work` on the job as it is once its turn has come; afterwards memory follows the table. */
  private async inTurn(tenant: string, id: string, work: (job: PlacedRow) => Promise<void>): Promise<void> {
    const { state } = this;
    await state.turns.take(id);
    try {
      let job = await readJob(state.hot, tenant, id);
      if (job?.place === 'later' && job.raw) {
        await this.admitting.runOnce();
        job = await readJob(state.hot, tenant, id);
      }
      if (!job) throw new PunctualError('JOB_NOT_FOUND', `There is no job ${id}.`);
      await work(job);
    } finally {
      state.turns.give(id);
      await this.follow(id);
    }
  }

  private async follow(id: string): Promise<void> {
    const { state } = this;
    if (state.running.has(id) || state.term.over) return;
    state.backlog.remove(id);
    const waiting = await readWaiting(state.hot, [id]);
    if (!waiting.every((job) => state.directory.knows(job))) await state.directory.learn();
    for (const job of waiting) state.backlog.add(job, true);
  }
}

function ended(job: PlacedRow): PunctualError {
  return new PunctualError('JOB_ENDED', `Job ${job.id} has already ended: ${job.state}.`);
}
