import { invalid, messageOf, PunctualError } from '../core/errors.js';
import { Batcher } from '../store/batcher.js';
import { cancelClaim } from '../store/claims.js';
import { endWaitingJobs } from '../store/end-waiting-jobs.js';
import type { PlacedRow } from '../store/job-places.js';
import { rankOf } from '../store/job-row.js';
import {
  admitJobs,
  changeLater,
  changeLive,
  findDead,
  postponeJob,
  redriveJobs,
  type Sized,
  unchanged,
} from '../store/place-jobs.js';
import type { Waiting } from '../store/read-backlog.js';
import { readJob } from '../store/read-job.js';
import { admissionTime } from './admission-time.js';
import type { Admitter } from './admitter.js';
import { type LeaderState, noLeader } from './leader-state.js';
import type { Running } from './running.js';

/** What can be changed about a job that has not started. */
export interface Change {
  readonly runAt?: number;
  readonly priority?: number;
  /** JSON text. */
  readonly payload?: string;
}

/** Which dead letters are sent round again; all where nothing is given. */
interface RedriveFilter {
  readonly task?: string | undefined;
  readonly queue?: string | undefined;
}

interface Redriven {
  readonly matched: number;
  readonly redriven: number;
  readonly more: boolean;
}

const MAX_REDRIVE = 1_000;
/** The largest batch that is redriven in one transaction. */
const REDRIVE_LIMITS = { items: 500, bytes: 4 * 1024 * 1024 };
/** After this time a redrive stops and is answered; the caller may repeat it for the rest. */
const REDRIVE_MS = 5_000;

/** What people do to single jobs. Each operation takes the job's turn, so no other statement about it is in flight. */
export class JobControl {
  /** The tenants with a redrive in progress; redrives run one at a time. */
  private readonly redrivingOf = new Set<string>();
  private lastRedrive: Promise<unknown> = Promise.resolve();
  private readonly redriving = new Batcher<Sized>(REDRIVE_LIMITS, (job) => job.bytes);

  constructor(
    private readonly state: LeaderState,
    private readonly admitter: Admitter,
    private readonly parts: {
      onStartBefore(at: number | null): void;
      onCancelRunning(running: Running): Promise<void>;
    },
  ) {}

  /** Cancels a job: at once if it waits or was handed on, else when its worker confirms. */
  async cancel(tenant: string, id: string): Promise<void> {
    let stopped: Running | undefined;
    await this.inTurn(tenant, id, async (job) => {
      const { state } = this;
      if (job.place === 'history') throw ended(job);
      const now = state.clock.now();
      const running = state.running.get(id);
      if (running) {
        if (!(await state.write(() => cancelClaim(state.hot, state.term, running, now)))) return false;
        running.cancelledAt ??= state.clock.steady();
        stopped = running;
        return true;
      }
      const end = { id, state: 'cancelled' as const, error: null };
      const place = job.place === 'later' ? 'later' : 'live';
      const gone = await state.writeEnds(() => endWaitingJobs(state.hot, state.term, place, [end], now));
      return gone.length > 0;
    });
    if (stopped) await this.parts.onCancelRunning(stopped);
  }

  /** Keeps a waiting job from starting until it is released. */
  async hold(tenant: string, id: string): Promise<void> {
    await this.inTurn(tenant, id, async (job) => {
      const { state } = this;
      this.mustWait(job);
      if (job.held) throw new PunctualError('JOB_HELD', `Job ${id} is on hold already.`);
      const held = { ...unchanged(id), admitAt: job.run_at, held: true };
      return state.write(() =>
        job.place === 'later'
          ? changeLater(state.hot, state.term, held)
          : postponeJob(state.hot, state.term, held),
      );
    });
  }

  /** Lets a held job start again. */
  async release(tenant: string, id: string): Promise<void> {
    await this.inTurn(tenant, id, async (job) => {
      this.mustWait(job);
      if (!job.held) throw new PunctualError('JOB_NOT_HELD', `Job ${id} is not on hold.`);
      return this.move(job, {}, false);
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
      return this.move(job, change, job.held);
    });
  }

  /** Redrives one dead letter. */
  async retry(tenant: string, id: string): Promise<void> {
    await this.inTurn(tenant, id, async (job) => {
      if (job.place !== 'history') throw new PunctualError('JOB_NOT_ENDED', `Job ${id} has not ended.`);
      if (job.at_most_once)
        throw new PunctualError('AT_MOST_ONCE', `Job ${id} is at-most-once and is never started again.`);
      if (job.state !== 'failed' && job.state !== 'cancelled') {
        throw new PunctualError('JOB_ENDED', `Job ${id} ${job.state}; there is nothing to retry.`);
      }
      return (await this.sendRound(tenant, [id])).length > 0;
    });
  }

  /** Redrives many dead letters, newest first, a bounded number per call. */
  async redrive(tenant: string, filter: RedriveFilter, dryRun: boolean): Promise<Redriven> {
    if (dryRun) return this.countDead(tenant, filter);
    // Two of a tenant at once would pick the same jobs, and one would hold a connection while it waits for the other.
    if (this.redrivingOf.has(tenant)) {
      const detail = 'Another redrive of this tenant is under way; try again when it has ended.';
      throw new PunctualError('TOO_BUSY', detail, { retryAfter: 5 });
    }
    this.redrivingOf.add(tenant);
    const redrive = this.lastRedrive.then(() => this.redriveNow(tenant, filter));
    this.lastRedrive = redrive.catch(() => undefined);
    try {
      return await redrive;
    } finally {
      this.redrivingOf.delete(tenant);
    }
  }

  private async countDead(tenant: string, filter: RedriveFilter): Promise<Redriven> {
    const found = await findDead(this.state.pool, tenant, filter, MAX_REDRIVE + 1);
    return { matched: Math.min(found.length, MAX_REDRIVE), redriven: 0, more: found.length > MAX_REDRIVE };
  }

  private async redriveNow(tenant: string, filter: RedriveFilter): Promise<Redriven> {
    const { state } = this;
    const found = await findDead(state.pool, tenant, filter, MAX_REDRIVE + 1);
    const jobs = found.slice(0, MAX_REDRIVE);
    const more = found.length > MAX_REDRIVE;
    let redriven = 0;
    const answerAt = performance.now() + REDRIVE_MS;
    const tried = await this.redriving.run(
      jobs,
      async (part) => {
        const sent = await this.sendRound(
          tenant,
          part.map((job) => job.id),
        );
        await state.admit(sent);
        redriven += sent.length;
      },
      ({ id }, error) =>
        state.log.error({ job: id, error: messageOf(error) }, 'a job cannot be sent round again'),
      () => performance.now() < answerAt,
    );
    return { matched: jobs.length, redriven, more: more || tried < jobs.length };
  }

  private async sendRound(tenant: string, ids: readonly string[]): Promise<Waiting[]> {
    const { state } = this;
    const now = state.clock.now();
    return state.write(() => redriveJobs(state.hot, state.term, tenant, ids, now));
  }

  /**
   * Changes a waiting job and moves it to the place where it belongs; answers whether it was still in its old place.
   */
  private async move(job: PlacedRow, change: Change, held: boolean): Promise<boolean> {
    const { state } = this;
    const now = state.clock.now();
    const runAt = change.runAt === undefined ? job.run_at : Math.max(change.runAt, now);
    const admitAt = admissionTime(runAt, now, state.config.laterThreshold);
    const rank = change.priority === undefined ? null : rankOf(change.priority);
    const changed = { id: job.id, runAt, rank, payload: change.payload ?? null };
    const later = { ...changed, admitAt: admitAt ?? runAt, held };
    this.parts.onStartBefore(job.start_before);
    return state.write(async () => {
      if (held || admitAt !== null) {
        return job.place === 'later'
          ? changeLater(state.hot, state.term, later)
          : postponeJob(state.hot, state.term, later);
      }
      return job.place === 'later'
        ? (await admitJobs(state.hot, state.term, [changed])).length > 0
        : (await changeLive(state.hot, state.term, changed)) !== null;
    });
  }

  private mustWait(job: PlacedRow): void {
    if (job.place === 'history') throw ended(job);
    if (this.state.running.has(job.id)) throw new PunctualError('JOB_STARTED', `Job ${job.id} is running.`);
  }

  /**
   * Takes the job's turn, reads the job and runs `work`; afterwards memory follows the table. `work` answers false when
   * the job was not in the place it was read from, which under the turn can only mean that memory is wrong.
   */
  private async inTurn(
    tenant: string,
    id: string,
    work: (job: PlacedRow) => Promise<boolean>,
  ): Promise<void> {
    const { state } = this;
    // Read before the turn, so that nobody waits for another tenant's job. An unparsed submission is admitted first.
    const first = await this.mustRead(tenant, id);
    if (first.raw) {
      const { created_at: createdAt, created_by: createdBy } = first;
      await this.admitter.admitNow({ id, tenant, createdAt, createdBy });
    }
    await state.turn(id);
    try {
      if (!(await work(await this.mustRead(tenant, id)))) {
        state.doubt(`job ${id} was not where it was read`);
        throw noLeader();
      }
    } finally {
      state.turns.release(id);
      await state.follow([id]);
    }
  }

  private async mustRead(tenant: string, id: string): Promise<PlacedRow> {
    const job = await readJob(this.state.hot, tenant, id);
    if (!job) throw new PunctualError('JOB_NOT_FOUND', `There is no job ${id}.`);
    return job;
  }
}

function ended(job: PlacedRow): PunctualError {
  return new PunctualError('JOB_ENDED', `Job ${job.id} has already ended: ${job.state}.`);
}
