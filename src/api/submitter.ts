import type { HintedWorkflow } from '../cluster/hint-sender.js';
import { admissionTime } from '../core/admission-time.js';
import type { Clock } from '../core/clock.js';
import type { Config } from '../core/config.js';
import { messageOf, PunctualError } from '../core/errors.js';
import { mayReplace, type Repetition } from '../core/keys.js';
import type { Log } from '../core/log.js';
import { least } from '../core/long-lists.js';
import { SerialQueues } from '../core/serial-queue.js';
import type { JobDefinition, ParsedSubmission } from '../core/submission.js';
import { TimeSlice } from '../core/time-slice.js';
import { uuidv7 } from '../core/uuid.js';
import type { ParsedWorkflow } from '../core/workflow/parse-workflow.js';
import {
  type ResolvedArtifacts,
  type RunsArtifact,
  resolveArtifacts,
  resolvedOr,
} from '../store/artifact-names.js';
import { bisect } from '../store/bisect.js';
import { explainDatabaseError, isDataError, isStatementTimeout, type Pool } from '../store/database.js';
import type { Keep } from '../store/idempotency.js';
import { awaitsArtifact, type JobRow, toStored } from '../store/job-row.js';
import type { KeyGuard } from '../store/keys.js';
import { type Names, type Resolved, StaleNamesError } from '../store/names.js';
import { newWorkflow } from '../store/new-workflow.js';
import { toWaiting, type Waiting } from '../store/read-backlog.js';
import { RefusedNamesError } from '../store/refused-names.js';
import {
  type Made,
  type NewJob,
  type Registrations,
  type Submitted,
  submitJobs,
} from '../store/submit-jobs.js';
import { NEVER, type NewWorkflow, type SubmittedWorkflow, submitWorkflow } from '../store/submit-workflow.js';
import {
  awaitRoom,
  countRoom,
  type JobCounts,
  NoRoomError,
  type Room,
  RoomLockedError,
} from '../store/tenant-usage.js';

/** Whose a submission is, and what its request says of it. The submissions of a bulk share one. */
export interface Owner {
  readonly tenant: string;
  readonly createdBy: string;
  /** The context of the trace that the request is part of. */
  readonly traceparent?: string | null | undefined;
  /** Whether the tenant has a quota of jobs. */
  readonly isCounted?: boolean;
  /** Decides about the job that has its key; missing if every job of the tenant may be found. */
  readonly guard?: KeyGuard | undefined;
}

/** A submission with its owner. */
export interface Owned {
  readonly owner: Owner;
  readonly submission: ParsedSubmission;
}

/** The outcome of a submission: a new job, or the earlier one with the same key. */
export interface Stored {
  readonly id: string;
  /** What is to be said about a job that has the key already; null for a new one. */
  readonly repetition: Repetition | null;
  /** The row of a new job. */
  readonly row: JobRow | null;
}

/** The outcome of the submission of a workflow: the new one, or null for the earlier one with the same key. */
export interface StoredWorkflow {
  readonly id: string;
  readonly workflow: NewWorkflow | null;
}

interface SubmitterOptions {
  readonly hot: Pool;
  /** For counts of jobs, which take longer than a submission may. */
  readonly pool: Pool;
  readonly names: Names;
  readonly clock: Clock;
  /** The database's clock, even if `clock` is another one. */
  readonly databaseNow: () => number;
  readonly config: Config;
  readonly log: Log;
  /** Stores and starts a job in one transaction, where the leader is here and can; else false, with nothing done. */
  readonly directStart: (row: JobRow, names: Resolved, isCounted: boolean) => Promise<boolean>;
  /** Stores jobs of which some may replace others with the same key; only the leader can. */
  readonly submitKeyed: (
    jobs: readonly NewJob[],
    made: Made,
    now: number,
    keep: Keep<Registrations> | undefined,
  ) => Promise<Submitted>;
  /** Tells the leader about jobs after their commit; failing to is no harm. */
  readonly hint: (
    jobs: readonly Waiting[],
    startBefore: number | null,
    more: { readonly workflows?: readonly HintedWorkflow[] | undefined; readonly awaits: boolean },
  ) => Promise<void>;
}

interface Gathered {
  readonly owned: Owned;
  /** Whether the quota of its tenant has refused it. */
  isRefused: boolean;
  resolve(stored: Stored): void;
  reject(error: unknown): void;
}

/** The most single submissions of one insert, and the most bytes if there is more than one. */
const MAX_BATCH = 500;
const MAX_BATCH_BYTES = 4 * 1024 * 1024;
/** Rows that are made before the time slice is checked again. */
const LOOK_EVERY = 100;
/** How often jobs are tried while others take the room, or have it locked. */
const ROOM_TRIES = 5;
/** After this time a batch that timed out is not split further, because its callers wait. */
const SMALLER_PARTS_WITHIN_MS = 10_000;

/**
 * Stores new jobs. Single submissions that arrive together share one insert: those without a key one for all tenants,
 * keyed ones one per tenant, so that no tenant waits for the key of another.
 */
export class Submitter {
  private readonly groups = new Map<string, Gathered[]>();
  private readonly flushing = new Set<string>();
  /** Definitions whose artifacts have been looked up. */
  private readonly resolvedOnes = new WeakSet<JobDefinition>();
  /** By tenant: those with a quota of jobs store one after the other, because each waits for the room that others take. */
  private readonly counted = new SerialQueues();

  constructor(private readonly options: SubmitterOptions) {}

  /** Stores all or none; answers in order. What is to be kept about them is stored in the same transaction. */
  async submitAll(owned: readonly Owned[], keep?: Keep<readonly Stored[]>): Promise<Stored[]> {
    try {
      return await this.store(owned, keep);
    } catch (error) {
      throw explainDatabaseError(error);
    }
  }

  /** The same for the members of a batch, which wait in `later` and are stored together with their batch. */
  async submitMembers(
    owned: readonly Owned[],
    storeMembers: StoreMembers,
    keep?: Keep<readonly Stored[]>,
  ): Promise<Stored[]> {
    try {
      return await this.store(owned, keep, storeMembers);
    } catch (error) {
      throw explainDatabaseError(error);
    }
  }

  private async store(
    given: readonly Owned[],
    keep?: Keep<readonly Stored[]>,
    storeMembers?: StoreMembers,
  ): Promise<Stored[]> {
    const owned = await this.withArtifacts(given);
    const owner = owned[0]?.owner;
    const how = { keep, guard: owner?.guard, storeMembers };
    return owner?.isCounted ? this.storeCounted(owner.tenant, owned, how) : this.storeNamed(owned, how);
  }

  /** Replaces the names of artifacts by ids. Submissions that name none cost a look at each. */
  private async withArtifacts(owned: readonly Owned[]): Promise<readonly Owned[]> {
    if (!owned.some(({ submission }) => this.isUnresolved(submission.definition))) return owned;
    const jobs = owned.map(({ owner: { tenant }, submission: { definition } }) => ({ tenant, definition }));
    const resolved = await this.resolveArtifacts(jobs);
    return owned.map((each) => {
      const definition = resolvedOr(resolved, each.submission.definition);
      this.resolvedOnes.add(definition);
      return { ...each, submission: { ...each.submission, definition } };
    });
  }

  /** The same for the steps of one tenant. */
  async stepsWithArtifacts<S extends { readonly definition: JobDefinition }>(
    tenant: string,
    steps: readonly S[],
  ): Promise<readonly S[]> {
    if (!steps.some(({ definition }) => this.isUnresolved(definition))) return steps;
    const resolved = await this.resolveArtifacts(steps.map(({ definition }) => ({ tenant, definition })));
    return steps.map((step) => ({ ...step, definition: resolvedOr(resolved, step.definition) }));
  }

  private isUnresolved(definition: JobDefinition): boolean {
    const { target } = definition;
    return target?.type === 'exec' && target.artifact !== undefined && !this.resolvedOnes.has(definition);
  }

  private resolveArtifacts(jobs: readonly RunsArtifact[]): Promise<ResolvedArtifacts> {
    const { hot, clock, config } = this.options;
    return resolveArtifacts(hot, jobs, clock.now(), config.artifactTimeout);
  }

  /** Stores jobs of one tenant, which has a quota of jobs; throws JobQuotaError if they do not fit. */
  private storeCounted(tenant: string, owned: readonly Owned[], how: StoreOptions): Promise<Stored[]> {
    return this.withRoom(tenant, (counted) => this.storeNamed(owned, { ...how, ...counted }));
  }

  private withRoom<T>(
    tenant: string,
    store: (counted: { readonly counted?: string }) => Promise<T>,
  ): Promise<T> {
    const { pool } = this.options;
    return this.counted.run(tenant, async () => {
      // Others may take the room that was found before this is stored, or have it locked again.
      for (let tries = 0; tries < ROOM_TRIES; tries += 1) {
        try {
          return await store({ counted: tenant });
        } catch (error) {
          if (error instanceof RoomLockedError) {
            if (await awaitRoom(pool, tenant)) continue;
            break;
          }
          if (!(error instanceof NoRoomForError)) throw error;
          const room = await countRoom(pool, tenant);
          if (room === null) return store({});
          const { live, later } = error.wanted;
          if (live > room.live || later > room.later)
            throw new JobQuotaError(tenant, error.wanted, room, error.places);
        }
      }
      const detail = `Other jobs of tenant ${tenant} are being stored or counted; nothing was stored. Try again.`;
      throw new PunctualError('TOO_BUSY', detail, { retryAfter: 1 });
    });
  }

  /** Stores the jobs; if the database no longer has their names, resolves the names again, once. */
  private async storeNamed(owned: readonly Owned[], how: StoreOptions): Promise<Stored[]> {
    const kinds = kindsOf(owned);
    return this.withNames(kinds, (resolved) => this.storeKinds(kinds, resolved, how));
  }

  private async withNames<T>(
    kinds: readonly NamedKind[],
    store: (resolved: readonly Resolved[]) => Promise<T>,
  ): Promise<T> {
    const resolved = await this.resolve(kinds);
    try {
      return await store(resolved);
    } catch (error) {
      if (!(error instanceof StaleNamesError)) throw error;
      this.options.names.forget(resolved);
      return store(await this.resolve(kinds));
    }
  }

  /** Stores a workflow, or finds the one that has its key; null if that is gone by now. */
  async submitWorkflow(
    owner: Owner,
    given: ParsedWorkflow,
    definition: NewWorkflow['definition'],
    keep?: Keep<StoredWorkflow>,
  ): Promise<StoredWorkflow | null> {
    const { hot, clock, config, databaseNow } = this.options;
    const { tenant } = owner;
    const parsed = { ...given, steps: await this.stepsWithArtifacts(tenant, given.steps) };
    const kinds = parsed.steps.map(({ definition }) => ({ owner, definition }));
    const store = (how: { readonly counted?: string }) =>
      this.withNames(kinds, async (resolved) => {
        const now = clock.now();
        const made: Made = { names: distinct(resolved), at: databaseNow(), since: performance.now(), ...how };
        const workflow = await newWorkflow(owner, parsed, resolved, now, config.laterThreshold, {
          definition,
        });
        const keepIt: Keep<SubmittedWorkflow> | undefined =
          keep && ((db, { id, isNew }) => keep(db, { id, workflow: isNew ? workflow : null }));
        const stored = await submitWorkflow(hot, workflow, made, now, keepIt).catch((error: unknown) => {
          throw error instanceof NoRoomError ? new NoRoomForError(workflow.steps, error) : error;
        });
        const wakes = workflow.steps.some(({ wakeAt }) => wakeAt !== null);
        if (stored?.isNew) this.tell(workflow.steps, [{ id: workflow.id, tenant, wakes }]);
        return stored && { id: stored.id, workflow: stored.isNew ? workflow : null };
      });
    try {
      return await (owner.isCounted ? this.withRoom(tenant, store) : store({}));
    } catch (error) {
      throw explainDatabaseError(error);
    }
  }

  /** Has the leader store steps that are added to a workflow, with the ids of their names and room for them. */
  async addSteps<T>(
    owner: Owner,
    definitions: readonly JobDefinition[],
    store: (resolved: readonly Resolved[], made: Made) => Promise<T>,
  ): Promise<T> {
    const { databaseNow } = this.options;
    const kinds = definitions.map((definition) => ({ owner, definition }));
    const named = (how: { readonly counted?: string }) =>
      this.withNames(kinds, (resolved) => {
        const made: Made = { names: distinct(resolved), at: databaseNow(), since: performance.now(), ...how };
        return store(resolved, made).catch((error: unknown) => {
          throw error instanceof NoRoomError ? new NoRoomForError(error.jobs, error) : error;
        });
      });
    try {
      return await (owner.isCounted ? this.withRoom(owner.tenant, named) : named({}));
    } catch (error) {
      throw explainDatabaseError(error);
    }
  }

  private resolve(kinds: readonly NamedKind[]): Promise<Resolved[]> {
    const { names, clock } = this.options;
    return names.resolve(
      kinds.map(({ owner: { tenant }, definition: { queue, needs } }) => ({ tenant, queue, needs })),
      clock.now(),
    );
  }

  private async storeKinds(
    kinds: readonly Kind[],
    resolved: readonly Resolved[],
    { keep, counted, guard, storeMembers }: StoreOptions,
  ): Promise<Stored[]> {
    const { clock, config, hot, databaseNow } = this.options;
    const now = clock.now();
    const made: Made = {
      ...{ names: resolved, at: databaseNow(), since: performance.now() },
      ...(counted !== undefined && { counted }),
      ...(guard && { guard }),
    };
    const jobs: NewJob[] = [];
    const slice = new TimeSlice();
    for (const [i, { owner, definition, payloads }] of kinds.entries()) {
      const { tenant, createdBy, traceparent } = owner;
      const { hold, keyRule } = definition;
      const { queue, needs } = resolved[i]!;
      // Its times count from when it was submitted; so a delay can be read off the row.
      const origin = { queue, needs, tenant, createdAt: definition.at, createdBy, traceparent };
      const stored = toStored(definition, origin);
      const admitAt = storeMembers ? definition.runAt : admitAtOf(definition, now, config.laterThreshold);
      for (const payload of payloads) {
        const row = { id: uuidv7(now), payload, definition: stored };
        jobs.push({ row, admitAt, held: hold, keyRule, saidAt: null });
        if (jobs.length % LOOK_EVERY === 0 && slice.isOver) await slice.next();
      }
    }
    const [first] = jobs;
    if (jobs.length === 1 && first && first.admitAt === null && !keep) {
      if (await this.options.directStart(first.row, resolved[0]!, counted !== undefined))
        return [{ id: first.row.id, repetition: null, row: first.row }];
    }
    const keepThem: Keep<Registrations> | undefined =
      keep && ((db, registered) => keep(db, storedOf(jobs, registered)));
    const storing = storeMembers
      ? storeMembers(jobs, made, now, keepThem)
      : jobs.some(({ keyRule }) => mayReplace(keyRule))
        ? this.options.submitKeyed(jobs, made, now, keepThem)
        : submitJobs(hot, jobs, made, now, keepThem);
    const { registered, fresh } = await storing.catch((error: unknown) => {
      throw error instanceof NoRoomError ? new NoRoomForError(jobs, error) : error;
    });
    if (!storeMembers) this.tell(fresh);
    return storedOf(jobs, registered);
  }

  /** Stores one job, batched with others that arrive at the same time. */
  submit(owned: Owned): Promise<Stored> {
    // What is refused to one caller must not be refused to others, nor must they wait for it.
    if (this.isUnresolved(owned.submission.definition)) {
      return this.withArtifacts([owned])
        .catch((error: unknown) => {
          throw explainDatabaseError(error);
        })
        .then(([resolved]) => this.gather(resolved!));
    }
    return this.gather(owned);
  }

  private gather(owned: Owned): Promise<Stored> {
    const { tenant, isCounted = false, guard } = owned.owner;
    if (guard) return this.submitAll([owned]).then(([stored]) => stored!);
    const { key, keyRule } = owned.submission.definition;
    // What only the leader can store must not fail together with what every node can, and what waits for room must
    // delay nobody else.
    const group = key === null ? '' : mayReplace(keyRule) ? 'leader' : 'any';
    const groupKey = key === null && !isCounted ? '' : `${group} ${tenant} ${isCounted}`;
    return new Promise((resolve, reject) => {
      const gathered = this.groups.get(groupKey);
      if (gathered) gathered.push({ owned, resolve, reject, isRefused: false });
      else this.groups.set(groupKey, [{ owned, resolve, reject, isRefused: false }]);
      if (!this.flushing.has(groupKey)) this.flushSoon(groupKey);
    });
  }

  private flushSoon(group: string): void {
    this.flushing.add(group);
    // When idle, a batch is what arrives in the same iteration of the event loop. While an insert is in flight the next
    // batch gathers, so batches grow with the load, and submissions to an idle node never wait.
    setImmediate(() => {
      void this.flush(group);
    });
  }

  private async flush(group: string): Promise<void> {
    for (let batch = this.takeBatch(group); batch.length > 0; batch = this.takeBatch(group)) {
      const deadline = performance.now() + SMALLER_PARTS_WITHIN_MS;
      try {
        await bisect(
          batch,
          (part) => this.storeFitting(part),
          (each, error) => each.reject(explainDatabaseError(error)),
          (error) => isDataError(error) || (isStatementTimeout(error) && performance.now() < deadline),
        );
      } catch (error) {
        for (const each of batch) each.reject(explainDatabaseError(error));
      }
    }
    this.flushing.delete(group);
  }

  /** One tenant's quota must neither refuse nor delay what others have submitted in the same moment. */
  private async storeFitting(part: readonly Gathered[]): Promise<readonly Stored[]> {
    // A submission that was refused must not be stored when the rest of its batch is tried again in smaller parts.
    const batch = part.filter((each) => !each.isRefused);
    if (batch.length === 0) return [];
    try {
      const stored = await this.store(batch.map((each) => each.owned));
      batch.forEach((each, i) => {
        each.resolve(stored[i]!);
      });
      return stored;
    } catch (error) {
      const refusal = refusalBy(error);
      batch.forEach((each, i) => {
        const refused = refusal(each.owned, i);
        if (!refused) return;
        each.isRefused = true;
        each.reject(refused);
      });
      if (!batch.some((each) => each.isRefused)) throw error;
      return this.storeFitting(batch);
    }
  }

  private takeBatch(group: string): Gathered[] {
    const gathered = this.groups.get(group) ?? [];
    let bytes = 0;
    const beyond = gathered.findIndex(({ owned }, i) => {
      bytes += sizeOf(owned);
      return i === MAX_BATCH || (i > 0 && bytes > MAX_BATCH_BYTES);
    });
    const batch = gathered.splice(0, beyond < 0 ? gathered.length : beyond);
    if (gathered.length === 0) this.groups.delete(group);
    return batch;
  }

  private tell(
    jobs: readonly Pick<NewJob, 'row' | 'admitAt'>[],
    workflows?: readonly HintedWorkflow[],
  ): void {
    const live = jobs.filter((job) => job.admitAt === null).map(({ row }) => toWaiting(row));
    const later = jobs.filter((job) => job.admitAt !== null && job.row.definition.start_before !== null);
    const startBefore =
      later.length === 0 ? null : least(later.map((job) => job.row.definition.start_before!));
    const awaits = jobs.some((job) => awaitsArtifact(job.row));
    const isNothing = live.length === 0 && startBefore === null && !workflows && !awaits;
    if (isNothing || !this.options.config.hints) return;
    this.options.hint(live, startBefore, { workflows, awaits }).catch((error: unknown) => {
      this.options.log.debug(
        { error: messageOf(error) },
        'a hint was lost; the look-back will find the jobs',
      );
    });
  }
}

/** What became of each job. */
function storedOf(jobs: readonly NewJob[], registered: Registrations): Stored[] {
  if (registered === null) return jobs.map(({ row }) => ({ id: row.id, repetition: null, row }));
  return jobs.map(({ row }, i) => {
    const { id, repetition } = registered[i]!;
    return { id, repetition, row: repetition === null ? row : null };
  });
}

/** When a job is admitted to the live table; null if it is stored there. */
function admitAtOf({ hold, runAt, awaits }: JobDefinition, now: number, threshold: number): number | null {
  if (awaits) return NEVER;
  return hold ? runAt : admissionTime(runAt, now, threshold);
}

/** Stores the members of a batch with it; only the leader can. */
export type StoreMembers = (
  jobs: readonly NewJob[],
  made: Made,
  now: number,
  keep: Keep<Registrations> | undefined,
) => Promise<Submitted>;

/** How submissions are stored, beside what they say. */
interface StoreOptions {
  readonly storeMembers?: StoreMembers | undefined;
  readonly keep?: Keep<readonly Stored[]> | undefined;
  readonly guard?: KeyGuard | undefined;
  /** The tenant of all of them, if room for them is to be taken. */
  readonly counted?: string;
}

/** The table that a submission needs room in; null if it needs none, because a job has its key already. */
type Place = keyof JobCounts | null;

/** There is no room for submissions by what is known. */
class NoRoomForError extends Error {
  readonly wanted: JobCounts;
  readonly places: readonly Place[];

  constructor(jobs: readonly { readonly row: { readonly id: string } }[], error: NoRoomError) {
    super(error.message, { cause: error });
    this.wanted = error.wanted;
    const places = new Map(
      error.jobs.map(({ row, admitAt }) => [row.id, admitAt === null ? 'live' : 'later']),
    );
    this.places = jobs.map(({ row }) => (places.get(row.id) ?? null) as Place);
  }
}

/** Tells for each submission of a batch with which error a quota refuses it; null for those that it does not refuse. */
function refusalBy(error: unknown): (owned: Owned, index: number) => PunctualError | null {
  if (error instanceof RefusedNamesError) {
    return ({ owner: { tenant }, submission: { definition } }) => {
      const { queue, needs } = definition;
      return error.refuses({ tenant, queue, needs }) ? error : null;
    };
  }
  if (!(error instanceof JobQuotaError)) return () => null;
  const { places, room } = error;
  // The first that fit are taken. One that repeats the key of another goes the way of that.
  const left = { live: room.live, later: room.later };
  const ofKeys = new Map<string, PunctualError>();
  return ({ submission }, i) => {
    const { key } = submission.definition;
    const place = places[i] ?? null;
    if (place === null) return (key !== null && ofKeys.get(key)) || null;
    left[place] -= 1;
    if (left[place] >= 0) return null;
    const refusal = error.ofOne(place);
    if (key !== null) ofKeys.set(key, refusal);
    return refusal;
  };
}

/** A tenant has as many jobs as it may have. */
export class JobQuotaError extends PunctualError {
  constructor(
    private readonly tenant: string,
    { live, later }: JobCounts,
    readonly room: Room,
    readonly places: readonly Place[],
  ) {
    const { liveJobs, laterJobs } = room.quotas;
    const isLive = liveJobs !== null && live > room.live;
    const limit = (isLive ? liveJobs : laterJobs) ?? 0;
    const wanted = isLive ? live : later;
    const kind = isLive ? 'jobs that are due or run' : 'jobs that are due later or on hold';
    super('QUOTA_EXCEEDED', `Tenant ${tenant} may have ${limit} ${kind}; nothing was stored.`, {
      quota: { name: isLive ? 'liveJobs' : 'laterJobs', limit },
      // Jobs end and make room; no time makes room for more than the limit.
      ...(wanted <= limit && { retryAfter: 1 }),
    });
  }

  /** The same for a single one of the jobs, after others have taken what room there was. */
  ofOne(place: keyof JobCounts): JobQuotaError {
    const wanted = { live: 0, later: 0, [place]: 1 };
    return new JobQuotaError(this.tenant, wanted, { ...this.room, [place]: 0 }, [place]);
  }
}

/** What decides about the names that a job is stored with. */
interface NamedKind {
  readonly owner: Owner;
  readonly definition: JobDefinition;
}

/** Consecutive submissions that differ in their payloads only. */
interface Kind extends NamedKind {
  readonly payloads: string[];
}

/** The names of many steps, each once: they are checked by the name, not by the step. */
function distinct(resolved: readonly Resolved[]): Resolved[] {
  return [...new Map(resolved.map((names) => [`${names.queue} ${names.needs}`, names])).values()];
}

/** Groups submissions by kind: a bulk is mostly of one kind, whose definition is then converted once. */
function kindsOf(owned: readonly Owned[]): Kind[] {
  const kinds: Kind[] = [];
  let last: Kind | undefined;
  for (const { owner, submission } of owned) {
    const { definition, payload } = submission;
    if (last?.definition === definition && last.owner === owner) last.payloads.push(payload);
    else {
      last = { owner, definition, payloads: [payload] };
      kinds.push(last);
    }
  }
  return kinds;
}

/** The bytes of a job's row without its small columns. */
function sizeOf({ submission }: Owned): number {
  const { payload, definition } = submission;
  const { target, needs } = definition;
  const rest = JSON.stringify([target, needs.labels]);
  return Buffer.byteLength(payload) + Buffer.byteLength(rest);
}
