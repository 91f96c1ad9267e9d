import { admissionTime } from '../core/admission-time.js';
import { assertNever, messageOf } from '../core/errors.js';
import type { ManyVerb } from '../core/wire.js';
import { cancelClaims } from '../store/claims.js';
import type { Queryable } from '../store/database.js';
import { deleteEndedJobs } from '../store/delete-jobs.js';
import { endWaitingJobs } from '../store/end-waiting-jobs.js';
import type { LocatedJob } from '../store/find-jobs.js';
import { type Keep, leaderEffect } from '../store/idempotency.js';
import { admitJobs, changeLater, postponeJobs, redriveJobs, unchanged } from '../store/place-jobs.js';
import type { Waiting } from '../store/read-backlog.js';
import type { LeaderState } from './leader-state.js';
import type { Running } from './running.js';

/** The jobs that were changed. */
export class Changed {
  readonly ids = new Set<string>();
  /** Those of them that wait in the live table now. */
  readonly waiting: Waiting[] = [];
  /** The attempts whose jobs were cancelled, for `tellWorkers`. */
  readonly stopped: Running[] = [];

  add(ids: readonly string[]): void {
    for (const id of ids) this.ids.add(id);
  }

  addWaiting(jobs: readonly Waiting[]): void {
    for (const job of jobs) {
      this.ids.add(job.id);
      this.waiting.push(job);
    }
  }
}

/** What else must learn of changes. */
export interface ManyChangesParts {
  onStartBefore(at: number | null): void;
  onCancelRunning(running: Running): Promise<void>;
}

/** Stores, in the transaction of a statement, which jobs the statement has changed. */
export type KeepIds = Keep<readonly string[]>;

/** A changed job, or its id. */
type Item = string | { readonly id: string };
type Work<T> = (db: Queryable) => Promise<readonly T[]>;

function idOf(item: Item): string {
  return typeof item === 'string' ? item : item.id;
}

/** Changes of many jobs, each in one statement per place. The caller holds the turns of the jobs. */
export class ManyChanges {
  constructor(
    private readonly state: LeaderState,
    private readonly parts: ManyChangesParts,
  ) {}

  /**
   * Changes jobs that were just located and that the rules allow to be changed. `done` is told after each statement,
   * because a later one may fail; `keep` is told in its transaction.
   */
  async make(
    tenant: string,
    verb: ManyVerb,
    jobs: readonly LocatedJob[],
    done: Changed,
    keep?: KeepIds,
  ): Promise<void> {
    if (jobs.length === 0) return;
    const { state } = this;
    const ids = jobs.map(({ id }) => id);
    switch (verb) {
      case 'cancel':
        await this.cancelRunning(jobs, done, keep);
        return this.cancelWaiting(jobs, done, keep);
      case 'hold':
        return this.hold(tenant, jobs, done, keep);
      case 'release':
        return this.release(jobs, done, keep);
      case 'redrive': {
        const now = state.clock.now();
        return done.addWaiting(await this.write(keep, (db) => redriveJobs(db, state.term, tenant, ids, now)));
      }
      case 'delete':
        return done.add(await this.write(keep, (db) => deleteEndedJobs(db, state.term, tenant, ids)));
      default:
        return assertNever(verb);
    }
  }

  /** Tells the workers of running jobs that these were cancelled. To be called when the turns are free again. */
  async tellWorkers({ stopped }: Changed): Promise<void> {
    const { state } = this;
    // One that fails loses nothing: heartbeats and the search for overdue attempts find the cancellation, too.
    const onError = (error: unknown) => {
      if (!state.isOver)
        state.log.warn({ error: messageOf(error) }, 'a cancelled attempt could not be ended');
    };
    await Promise.all(stopped.map((running) => this.parts.onCancelRunning(running).catch(onError)));
  }

  private async cancelRunning(jobs: readonly LocatedJob[], done: Changed, keep?: KeepIds): Promise<void> {
    const { state } = this;
    const running = jobs.flatMap(({ id }) => state.running.get(id) ?? []);
    if (running.length === 0) return;
    const now = state.clock.now();
    const claimed = await this.write(keep, (db) => cancelClaims(db, state.term, running, now));
    done.add(claimed);
    for (const id of claimed) {
      const stopped = state.running.get(id)!;
      stopped.cancelledAt ??= state.clock.steady();
      done.stopped.push(stopped);
    }
  }

  private async cancelWaiting(jobs: readonly LocatedJob[], done: Changed, keep?: KeepIds): Promise<void> {
    const { state } = this;
    const now = state.clock.now();
    for (const place of ['live', 'later'] as const) {
      const ends = jobs
        .filter((job) => job.place === place && !state.running.has(job.id))
        .map(({ id }) => ({ id, state: 'cancelled' as const, error: null }));
      if (ends.length === 0) continue;
      const ended = await state.writeEnds(() =>
        this.effect(keep, (db) => endWaitingJobs(db, state.term, place, ends, now)),
      );
      done.add(ended.map(({ id }) => id));
    }
  }

  private async hold(
    tenant: string,
    jobs: readonly LocatedJob[],
    done: Changed,
    keep?: KeepIds,
  ): Promise<void> {
    const { state } = this;
    for (const [place, put] of [['live', postponeJobs] as const, ['later', changeLater] as const]) {
      const those = jobs
        .filter((job) => job.place === place)
        .map(({ id }) => ({ ...unchanged(id), admitAt: null, held: true }));
      if (those.length === 0) continue;
      const held = await this.write(keep, (db) => put(db, state.term, those));
      if (place === 'live') state.addedJobs.note(tenant, 0, held.length);
      done.add(held);
    }
  }

  /** A job that is due soon is admitted; one of the far future stays in `later`. */
  private async release(jobs: readonly LocatedJob[], done: Changed, keep?: KeepIds): Promise<void> {
    const { state } = this;
    const now = state.clock.now();
    for (const job of jobs) this.parts.onStartBefore(job.startBefore);
    const timed = jobs.map(({ id, runAt, blocked }) => ({
      ...unchanged(id),
      // A blocked job stays where it is, and is admitted when that no longer holds.
      admitAt: blocked ? runAt : admissionTime(runAt, now, state.config.laterThreshold),
      held: false,
    }));
    const far = timed.filter(({ admitAt }) => admitAt !== null);
    const near = timed.filter(({ admitAt }) => admitAt === null);
    if (far.length > 0) done.add(await this.write(keep, (db) => changeLater(db, state.term, far)));
    if (near.length > 0) done.addWaiting(await this.write(keep, (db) => admitJobs(db, state.term, near)));
  }

  private write<T extends Item>(keep: KeepIds | undefined, work: Work<T>): Promise<readonly T[]> {
    return this.state.write(() => this.effect(keep, work));
  }

  private effect<T extends Item>(keep: KeepIds | undefined, work: Work<T>): Promise<readonly T[]> {
    const keepItems = keep && ((db: Queryable, items: readonly T[]) => keep(db, items.map(idOf)));
    return leaderEffect(this.state, keepItems, work);
  }
}
