import { admissionTime } from '../core/admission-time.js';
import { type AuditAction, type AuditAuthor, type AuditEntry, auditEntry, hashed } from '../core/audit.js';
import { type FieldError, invalid, PunctualError } from '../core/errors.js';
import { checkPayload, readsPayloads } from '../core/task-defaults.js';
import type { ManyVerb } from '../core/wire.js';
import { cancelClaims } from '../store/claims.js';
import type { Queryable } from '../store/database.js';
import { endWaitingJobs } from '../store/end-waiting-jobs.js';
import { type Keep, leaderEffect } from '../store/idempotency.js';
import type { PlacedRow } from '../store/job-places.js';
import { rankOf } from '../store/job-row.js';
import { audited, type TermKey } from '../store/leader-statement.js';
import {
  admitJobs,
  changeLater,
  changeLive,
  postponeJobs,
  redriveJobs,
  unchanged,
} from '../store/place-jobs.js';
import { readJob } from '../store/read-job.js';
import type { Requested } from '../store/requested.js';
import type { Admitter } from './admitter.js';
import { jobView } from './audit-views.js';
import { type LeaderState, noLeader } from './leader-state.js';
import type { Running } from './running.js';
import { ended, notFound, ofBatch, type Refusal, refusalOf, running } from './steering-rules.js';

/** What can be changed about a job that has not started. */
export interface Change {
  readonly runAt?: number;
  readonly priority?: number;
  /** JSON text. */
  readonly payload?: string;
}

/**
 * What people do to single jobs. Each operation takes the job's turn, so no other statement about it is in flight. `keep`
 * stores the answer to the request in the same transaction.
 */
export class JobControl {
  constructor(
    private readonly state: LeaderState,
    private readonly admitter: Admitter,
    private readonly parts: {
      onStartBefore(at: number | null): void;
      onCancelRunning(running: Running): Promise<void>;
      retryStep(tenant: string, workflow: string, job: string, requested: Requested<void>): Promise<void>;
    },
  ) {}

  /** Cancels a job: at once if it waits or was handed on, else when its worker confirms. */
  async cancel(tenant: string, id: string, { author, keep }: Requested<void> = {}): Promise<void> {
    let stopped: Running | undefined;
    await this.inTurn(tenant, id, async (job) => {
      const { state } = this;
      this.mustAllow('cancel', job);
      const now = state.clock.now();
      const running = state.running.get(id);
      if (running) {
        const entry = this.entry(
          author,
          'job.cancel',
          { ...job, state: 'running' },
          { cancelRequested: true },
        );
        const claimed = await this.write(entry, keep, (db, term) => cancelClaims(db, term, [running], now));
        if (claimed.length === 0) return false;
        running.cancelledAt ??= state.clock.steady();
        if (state.events.isHeard) state.events.changed(tenant, [id], 'cancel', job);
        stopped = running;
        return true;
      }
      const end = { id, state: 'cancelled' as const, error: null };
      const place = job.place === 'later' ? 'later' : 'live';
      const entry = this.entry(author, 'job.cancel', job, { state: 'cancelled' });
      const term = audited(state.term, entry);
      const gone = await state.writeEnds(() =>
        leaderEffect(state, withoutResult(keep), (db) => endWaitingJobs(db, term, place, [end], now)),
      );
      if (entry) state.noteEntry();
      return gone.length > 0;
    });
    if (stopped) await this.parts.onCancelRunning(stopped);
  }

  /** Keeps a waiting job from starting until it is released. */
  async hold(tenant: string, id: string, { author, keep }: Requested<void> = {}): Promise<void> {
    await this.changing(tenant, id, 'hold', async (job) => {
      this.mustAllow('hold', job);
      const held = [{ ...unchanged(id), admitAt: null, held: true }];
      const entry = this.entry(author, 'job.hold', job, { hold: true });
      const put = await this.write(entry, keep, (db, term) =>
        job.place === 'later' ? changeLater(db, term, held) : postponeJobs(db, term, held),
      );
      if (job.place !== 'later') this.state.addedJobs.note(tenant, 0, put.length);
      return put.length > 0;
    });
  }

  /** Lets a held job start again. */
  async release(tenant: string, id: string, { author, keep }: Requested<void> = {}): Promise<void> {
    await this.changing(tenant, id, 'release', async (job) => {
      this.mustAllow('release', job);
      return this.move(job, {}, false, this.entry(author, 'job.release', job, { hold: false }), keep);
    });
  }

  /** Changes a job that has not started. */
  async change(tenant: string, id: string, change: Change, author?: AuditAuthor): Promise<void> {
    await this.changing(tenant, id, 'change', async (job) => {
      this.mustWait(job);
      if (job.batch !== null) throw refused(ofBatch(id, job.batch));
      if (job.attempts > 0) throw new PunctualError('JOB_STARTED', `Job ${id} has had an attempt already.`);
      if (job.start_before !== null && (change.runAt ?? 0) >= job.start_before) {
        throw invalid([{ pointer: '/runAt', detail: "must lie before the job's startBefore" }]);
      }
      if (change.payload !== undefined) await this.mustFitTask(job, change.payload);
      const changed = {
        ...(change.priority !== undefined && { priority: change.priority }),
        ...(change.runAt !== undefined && { runAt: new Date(this.movedTo(job, change)).toISOString() }),
        ...(change.payload !== undefined && { payload: hashed(change.payload) }),
      };
      return this.move(job, change, job.held, this.entry(author, 'job.change', job, changed));
    });
  }

  /** Redrives one dead letter; a step of a workflow continues that. */
  async retry(tenant: string, id: string, { author, keep }: Requested<void> = {}): Promise<void> {
    const first = await this.mustRead(tenant, id);
    const { workflow } = first;
    if (workflow !== null) {
      this.mustAllow('redrive', { ...first, workflow: null });
      return this.parts.retryStep(tenant, workflow, id, { author, keep });
    }
    await this.changing(tenant, id, 'redrive', async (job) => {
      this.mustAllow('redrive', job);
      const now = this.state.clock.now();
      const again = { state: 'pending', runAt: new Date(now).toISOString() };
      const entry = this.entry(author, 'job.retry', job, again);
      const sent = await this.write(entry, keep, (db, term) => redriveJobs(db, term, tenant, [id], now));
      this.state.addedJobs.noteLive(sent);
      // Its day of history may have been removed just now, which takes no turn.
      if (sent.length === 0) await this.mustRead(tenant, id);
      return sent.length > 0;
    });
  }

  /**
   * Changes a waiting job and moves it to the place where it belongs; answers whether it was still in its old place.
   */
  private async move(
    job: PlacedRow,
    change: Change,
    held: boolean,
    entry: AuditEntry | undefined,
    keep?: Keep<void>,
  ): Promise<boolean> {
    const { state } = this;
    const now = state.clock.now();
    const runAt = this.movedTo(job, change);
    const admitAt = admissionTime(runAt, now, state.config.laterThreshold);
    const rank = change.priority === undefined ? null : rankOf(change.priority);
    const changed = { id: job.id, runAt, rank, payload: change.payload ?? null };
    const later = { ...changed, admitAt: admitAt ?? runAt, held };
    this.parts.onStartBefore(job.start_before);
    const wasLater = job.place === 'later';
    const isLater = held || job.state === 'blocked' || admitAt !== null;
    const moved = await this.write(entry, keep, async (db, term): Promise<readonly unknown[]> => {
      if (isLater) return wasLater ? changeLater(db, term, [later]) : postponeJobs(db, term, [later]);
      if (wasLater) return admitJobs(db, term, [changed]);
      const live = await changeLive(db, term, changed);
      return live === null ? [] : [live];
    });
    // After the commit: jobs that are counted before it are not found by a count that comes in between.
    if (isLater && !wasLater) state.addedJobs.note(job.tenant, 0, moved.length);
    if (wasLater && !isLater) state.addedJobs.note(job.tenant, moved.length, 0);
    return moved.length > 0;
  }

  /** A new payload must fit the schema of the job's task as one that is submitted must. */
  private async mustFitTask({ tenant, task }: PlacedRow, payload: string): Promise<void> {
    if (task === null) return;
    const rules = (await this.state.tasks.find(tenant, () => [task])).get(task);
    if (!rules || !readsPayloads(rules)) return;
    const errors: FieldError[] = [];
    checkPayload(rules, payload, '/payload', errors);
    if (errors.length > 0) throw invalid(errors);
  }

  /** When a job is due after a change. */
  private movedTo(job: PlacedRow, { runAt }: Change): number {
    return runAt === undefined ? job.run_at : Math.max(runAt, this.state.clock.now());
  }

  /** The entry of the audit about a job that is read in its turn: nothing else changes it meanwhile. */
  private entry(
    author: AuditAuthor | undefined,
    action: AuditAction,
    job: PlacedRow,
    changed: object,
  ): AuditEntry | undefined {
    if (!author) return undefined;
    const before = jobView(job);
    const subject = { kind: 'job', name: job.id, tenant: job.tenant } as const;
    return auditEntry(author, this.state.clock.now(), action, subject, {
      before,
      after: { ...before, ...changed },
    });
  }

  private write<T>(
    entry: AuditEntry | undefined,
    keep: Keep<void> | undefined,
    work: (db: Queryable, term: TermKey) => Promise<T>,
  ): Promise<T> {
    return this.state.writeRequested(entry, withoutResult(keep), work);
  }

  private mustWait(job: PlacedRow): void {
    if (job.place === 'history') throw refused(ended(job));
    if (this.state.running.has(job.id)) throw refused(running(job));
  }

  private mustAllow(verb: ManyVerb, job: Steerable): void {
    const state = this.state.running.has(job.id) ? 'running' : job.state;
    const { id, place, held, workflow, batch, at_most_once: atMostOnce } = job;
    const refusal = refusalOf(verb, { id, place, held, workflow, batch, state, atMostOnce });
    if (refusal) throw refused(refusal);
  }

  /** The same as `inTurn` for a change that ends nothing; those who listen are told of it. */
  private async changing(
    tenant: string,
    id: string,
    change: string,
    work: (job: PlacedRow) => Promise<boolean>,
  ): Promise<void> {
    const { events } = this.state;
    await this.inTurn(tenant, id, async (job) => {
      const isDone = await work(job);
      // Before the turn is free again, because the job may start then.
      if (isDone && events.isHeard) events.changed(tenant, [id], change, job);
      return isDone;
    });
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
      const job = await this.mustRead(tenant, id);
      if (job.raw) throw notAdmitted(id);
      if (!(await work(job))) {
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
    if (!job) throw refused(notFound(id));
    return job;
  }
}

type Steerable = Pick<PlacedRow, 'id' | 'place' | 'state' | 'held' | 'at_most_once' | 'workflow' | 'batch'>;

/** The answer shows the job as it is then, whatever the statement returned. */
function withoutResult(keep: Keep<void> | undefined): Keep<unknown> | undefined {
  return keep && ((db) => keep(db));
}

/** Its submission could not be parsed because the database was busy; it is tried again soon. */
function notAdmitted(id: string): PunctualError {
  return new PunctualError('DATABASE_UNAVAILABLE', `Job ${id} could not be admitted yet; try again.`, {
    retryAfter: 1,
  });
}

function refused({ code, detail }: Refusal): PunctualError {
  return new PunctualError(code, detail);
}
