import { setTimeout as sleep } from 'node:timers/promises';
import { type AuditAuthor, auditEntry, hashed } from '../core/audit.js';
import { messageOf, PunctualError } from '../core/errors.js';
import type { JobState } from '../core/job.js';
import { SerialQueue } from '../core/serial-queue.js';
import { LAST_UUID } from '../core/uuid.js';
import { MAX_PART, type ManyVerb, type RefusedJob } from '../core/wire.js';
import { auditedWork } from '../store/audited-work.js';
import { Batcher } from '../store/batcher.js';
import { explainDatabaseError, withHotPlans } from '../store/database.js';
import { findJobs, type LocatedJob, locateJobs } from '../store/find-jobs.js';
import type { Keep } from '../store/idempotency.js';
import { type JobSearch, Stride } from '../store/job-search.js';
import type { Requested } from '../store/requested.js';
import type { Admitter } from './admitter.js';
import { type LeaderState, noLeader } from './leader-state.js';
import { Changed, type KeepIds, ManyChanges, type ManyChangesParts } from './many-changes.js';
import { notFound, type Refusal, refusalOf } from './steering-rules.js';

/** Jobs by their ids, or those that a search finds. */
export type Selection = { readonly ids: readonly string[] } | { readonly search: JobSearch };

/** What one call did, and the id below which to go on; null when all is done. */
export interface ManyDone {
  readonly matched: number;
  readonly changed: number;
  readonly refused: readonly RefusedJob[];
  readonly next: string | null;
}

/** What a job needs to be put into a batch. */
interface Candidate {
  readonly id: string;
  readonly bytes: number;
  readonly raw: boolean;
  readonly createdAt: number | null;
  readonly createdBy: string | null;
}

/** A call ends after this time, or after `MAX_PART` jobs; the caller repeats it for the rest. */
const CALL_MS = 2_000;
/** Jobs that one statement finds. */
const PAGE = 5_000;
/** The largest batch that is changed in one statement. */
const LIMITS = { items: 500, bytes: 4 * 1024 * 1024 };
/** The same for deletions, because a job may have thousands of lines of log. */
const DELETE_LIMITS = { items: 200, bytes: 4 * 1024 * 1024 };
/** Changes that are one statement, whatever the places of the jobs. */
const ONE_STATEMENT = new Set<ManyVerb>(['redrive', 'delete']);
/** Calls of one tenant that run or wait; one more is refused. */
const MAX_CALLS = 4;

/**
 * What people do to many jobs at once. Each call does a bounded part, newest jobs first. Calls run one at a time, so
 * that they never need more than one of the leader's connections; those of one tenant take turns with each other.
 */
export class ManyControl {
  private readonly calls = new SerialQueue();
  private readonly callsOf = new Map<string, number>();
  private readonly changes: ManyChanges;
  private readonly batcher = new Batcher<Candidate>(LIMITS, (job) => job.bytes);
  private readonly deleting = new Batcher<Candidate>(DELETE_LIMITS, (job) => job.bytes);

  constructor(
    private readonly state: LeaderState,
    private readonly admitter: Admitter,
    parts: ManyChangesParts,
  ) {
    this.changes = new ManyChanges(state, parts);
  }

  /**
   * Changes a bounded part of the jobs with ids below `after`, of about `limit` jobs if that is given. `keep` is told what was done so far in every transaction
   * that does something: a call that is cut short has done just that.
   */
  async change(
    tenant: string,
    verb: ManyVerb,
    selection: Selection,
    {
      after = LAST_UUID,
      limit = MAX_PART,
    }: { readonly after?: string | undefined; readonly limit?: number | undefined },
    { author, keep }: Requested<ManyDone> = {},
  ): Promise<ManyDone> {
    const open = this.callsOf.get(tenant) ?? 0;
    if (open >= MAX_CALLS) {
      const detail = `${open} changes of many jobs of this tenant are under way; try again when one has ended.`;
      throw new PunctualError('TOO_BUSY', detail, { retryAfter: 1 });
    }
    this.callsOf.set(tenant, open + 1);
    try {
      const begin = () => new Part(tenant, verb, selection, { after, limit }, keep);
      return await this.calls.run(() => this.audited(begin(), author));
    } finally {
      const left = this.callsOf.get(tenant)! - 1;
      if (left === 0) this.callsOf.delete(tenant);
      else this.callsOf.set(tenant, left);
    }
  }

  /** One entry for the whole call: what was asked for, and how many jobs it changed. */
  private audited(part: Part, author: AuditAuthor | undefined): Promise<ManyDone> {
    const { state } = this;
    const { tenant, verb, selection, next } = part;
    const subject = { kind: 'jobs', name: 'search' in selection ? 'filter' : 'ids', tenant } as const;
    const asked = {
      before: { ...selectionView(selection), ...(next !== LAST_UUID && { after: next }) },
      outcome: 'unknown',
    } as const;
    const entry = author && auditEntry(author, state.clock.now(), `jobs.${verb}`, subject, asked);
    return auditedWork(
      state,
      entry,
      () => this.carryOut(part),
      ({ matched, changed, refused, next }) => ({ matched, changed, refused: refused.length, next }),
    );
  }

  private async carryOut(part: Part): Promise<ManyDone> {
    if (this.state.isOver) throw noLeader();
    const { tenant, verb } = part;
    try {
      while (part.next !== null && part.goesOn) await this.page(part);
    } catch (error) {
      // What was done is told, and the caller repeats the call for the rest; it fails if nothing can be done then. With
      // an Idempotency-Key the database tells what was done, and knows it even if the answer to a commit was lost.
      if (!part.hasBegun || part.keep) throw error;
      this.state.log.warn({ tenant, verb, error: messageOf(error) }, 'a change of many jobs was cut short');
    }
    return part.done();
  }

  private async page(part: Part): Promise<void> {
    const { jobs, next } = await this.find(part);
    const batcher = part.verb === 'delete' ? this.deleting : this.batcher;
    let batches = 0;
    const tried = await batcher.run(
      jobs,
      async (batch) => {
        await this.changeAll(part, batch);
        part.tried(batch);
      },
      (job, error) => {
        this.state.log.error(
          { job: job.id, error: messageOf(error) },
          `a job cannot be changed: ${part.verb}`,
        );
        part.tried([job]);
        part.fail(job.id, explained(error));
      },
      // At least one batch, or a search that takes long would never get anywhere.
      () => batches++ === 0 || part.goesOn,
    );
    if (tried === jobs.length) part.next = next;
  }

  private async find(part: Part): Promise<{ jobs: readonly Candidate[]; next: string | null }> {
    const { state } = this;
    const { tenant, selection } = part;
    if ('search' in selection) {
      const { search } = selection;
      return withHotPlans(state.pool, (db) =>
        findJobs(db, tenant, search, part.next!, Math.min(PAGE, part.left), part.stride),
      );
    }
    const ids = [...new Set(selection.ids)]
      .filter((id) => id < part.next!)
      .sort()
      .reverse();
    const located = await locateJobs(state.hot, tenant, ids);
    for (const id of ids) if (!located.has(id)) part.refuse(id, notFound(id));
    return { jobs: ids.flatMap((id) => located.get(id) ?? []), next: null };
  }

  /** Changes jobs as their turns become free. No turn is held while waiting for another, so nobody can deadlock. */
  private async changeAll(part: Part, jobs: readonly Candidate[]): Promise<void> {
    const { state } = this;
    await this.admitRaw(part, jobs);
    // After a failure some jobs of a batch are given again that were changed before it.
    let left = jobs.map(({ id }) => id).filter((id) => !part.hasChanged(id));
    while (left.length > 0) {
      const mine = left.filter((id) => state.tryTurn(id));
      if (mine.length > 0) {
        const taken = new Set(mine);
        left = left.filter((id) => !taken.has(id));
        await this.changeInTurn(part, mine, left.length === 0 ? jobs.at(-1)!.id : null);
      } else if (part.msLeft > 0) {
        await Promise.race([state.turns.untilFree(left[0]!), part.timeIsUp]);
      } else {
        for (const id of left) part.fail(id, busy(id));
        return;
      }
    }
  }

  /** An admission may wait for the turns of other jobs. It goes on when the time is up, but nobody waits for it. */
  private async admitRaw(part: Part, jobs: readonly Candidate[]): Promise<void> {
    const { tenant } = part;
    for (const { id, raw, createdAt, createdBy } of jobs) {
      if (part.msLeft === 0) return;
      if (!raw) continue;
      const admitted = this.admitter.admitNow({ id, tenant, createdAt: createdAt!, createdBy: createdBy! });
      await Promise.race([admitted, part.timeIsUp]);
    }
  }

  /** `last` is the id of the batch's last job if this completes the batch. */
  private async changeInTurn(part: Part, mine: readonly string[], last: string | null): Promise<void> {
    const { state } = this;
    const done = new Changed();
    try {
      const located = await locateJobs(state.hot, part.tenant, mine);
      const ready: LocatedJob[] = [];
      for (const id of mine) {
        const job = located.get(id);
        const refusal = job ? this.refusal(part, job) : notFound(id);
        if (job?.raw) part.fail(id, busy(id));
        else if (refusal) part.refuse(id, refusal);
        else ready.push(job!);
      }
      // Cancelling, holding and releasing take several statements, of which only the last completes the batch. To go on
      // above it does no harm then: what is done already is not found again.
      const next = ONE_STATEMENT.has(part.verb) ? (last ?? part.next) : part.next;
      const keep: KeepIds | undefined =
        part.keep && ((db, ids) => part.keep!(db, part.done([...done.ids, ...ids], next)));
      await this.changes.make(part.tenant, part.verb, ready, done, keep);
      for (const job of ready) if (!done.ids.has(job.id)) this.missed(part, job);
    } finally {
      part.changed(done.ids);
      // Waiting jobs that were cancelled have ended, which is told as such.
      const changed = part.verb === 'cancel' ? done.stopped.map(({ id }) => id) : done.ids;
      if (state.events.isHeard) state.events.changed(part.tenant, changed, part.verb);
      for (const id of mine) state.turns.release(id);
      const told = this.changes.tellWorkers(done);
      await state.admitNew(done.waiting);
      // Also after a failure, because taking the turn removed the job from the backlog.
      await state.follow(mine.filter((id) => !done.ids.has(id)));
      // The end of an attempt whose job another session has locked takes until the lock is gone.
      await Promise.race([told, part.timeIsUp]);
    }
  }

  /** A job was not where it was just before. Old days of history are removed; all else only the leader changes. */
  private missed(part: Part, { id, place }: LocatedJob): void {
    part.refuse(id, notFound(id));
    if (place !== 'history' && this.state.running.has(id)) this.state.doubt(`job ${id} does not run`);
  }

  /** Why a job is not changed. Its state may be another than that by which it was found. */
  private refusal({ verb, selection }: Part, job: LocatedJob): Refusal | null {
    const attempt = this.state.running.get(job.id);
    const state: JobState = attempt ? 'running' : job.state;
    if ('search' in selection) {
      const { states, worker } = selection.search;
      const isElsewhere = worker !== undefined && attempt !== undefined && attempt.worker !== worker;
      if (states?.includes(state) === false || isElsewhere) return busy(job.id);
    }
    return refusalOf(verb, { ...job, state });
  }
}

/** What the audit shows of a selection: values of payloads as their hashes. */
function selectionView(selection: Selection): object {
  if (!('search' in selection) || !selection.search.payload) return selection;
  const payload = selection.search.payload.map(({ value, ...rest }) => ({ ...rest, value: hashed(value) }));
  return { search: { ...selection.search, payload } };
}

function busy(id: string): Refusal {
  return { code: 'TOO_BUSY', detail: `Job ${id} is being changed by something else; try again.` };
}

function explained(thrown: unknown): Refusal {
  const error = explainDatabaseError(thrown);
  const code = error instanceof PunctualError ? error.code : 'INTERNAL';
  return { code, detail: `The job could not be changed: ${messageOf(thrown)}` };
}

/** What one call has done so far. */
class Part {
  /** The id below which to go on; null when all is done. */
  next: string | null;
  /** How much the next statement examines. */
  readonly stride: Stride;
  /** Resolves when the call has taken its time. */
  readonly timeIsUp = sleep(CALL_MS, undefined, { ref: false });
  private readonly until = performance.now() + CALL_MS;
  private readonly most: number;
  /** Sets, because after a failure some jobs of a batch are given again. */
  private readonly triedIds = new Set<string>();
  private readonly failedIds = new Set<string>();
  private readonly changedIds = new Set<string>();
  private readonly refused = new Map<string, RefusedJob>();

  constructor(
    readonly tenant: string,
    readonly verb: ManyVerb,
    readonly selection: Selection,
    { after, limit }: { readonly after: string; readonly limit: number },
    readonly keep: Keep<ManyDone> | undefined,
  ) {
    this.next = after;
    this.most = limit;
    this.stride = new Stride('search' in selection ? selection.search : {});
  }

  get msLeft(): number {
    return Math.max(0, this.until - performance.now());
  }

  /** How many more jobs it may change. */
  get left(): number {
    return Math.max(1, this.most - this.triedIds.size);
  }

  get goesOn(): boolean {
    return this.msLeft > 0 && this.triedIds.size < this.most;
  }

  get hasBegun(): boolean {
    return this.triedIds.size > 0;
  }

  tried(jobs: readonly Candidate[]): void {
    for (const { id } of jobs) this.triedIds.add(id);
    this.next = jobs.at(-1)!.id;
  }

  changed(ids: Iterable<string>): void {
    for (const id of ids) this.changedIds.add(id);
  }

  hasChanged(id: string): boolean {
    return this.changedIds.has(id);
  }

  /** Notes why a job that was named cannot be changed. One that a search found has become another since. */
  refuse(id: string, refusal: Refusal): void {
    if ('ids' in this.selection) this.refused.set(id, { id, ...refusal });
  }

  /** Notes that a job should have been changed and could not be. */
  fail(id: string, refusal: Refusal): void {
    this.failedIds.add(id);
    this.refused.set(id, { id, ...refusal });
  }

  /** What was done, with the jobs of a transaction that is about to be committed. */
  done(committing: readonly string[] = [], next: string | null = this.next): ManyDone {
    const changed = committing.length === 0 ? this.changedIds : new Set([...this.changedIds, ...committing]);
    const tried = committing.length === 0 ? this.triedIds : new Set([...this.triedIds, ...committing]);
    return {
      // Of jobs that were named, those match that can be changed.
      matched: 'ids' in this.selection ? changed.size + this.failedIds.size : tried.size,
      changed: changed.size,
      // The next call tells about the jobs below.
      refused: [...this.refused.values()].filter(({ id }) => next === null || id >= next),
      next,
    };
  }
}
