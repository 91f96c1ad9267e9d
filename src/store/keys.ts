import { decideKey, type Repetition } from '../core/keys.js';
import { TimeSlice } from '../core/time-slice.js';
import { type Queryable, run, statement } from './database.js';
import { type Compared, differences, sameAsRow } from './key-differences.js';
import { type Beaten, findHolders, type HolderRow, type KeyedJob } from './key-holders.js';

/**
 * Which job has a key. A key is registered by an insert that does nothing on a conflict; the winner is read by a second
 * statement. A key passes to another job by a compare-and-set on its row, so of many submissions that find it free at
 * the same moment one gets it, and the others find the job of that one. Everybody who writes several rows locks them in
 * the order of tenant and key first, because otherwise two could wait for each other.
 *
 * `said_at` is the moment, in microseconds on the database's clock, of the newest submission that the job has its values
 * from. An older one that is admitted late, as from a transaction, must not overwrite them.
 */

/** The database's clock in microseconds. */
const NOW_MICROS = 'floor(extract(epoch FROM clock_timestamp()) * 1000000)::bigint';

/** Of several rows with one key, the first in order gets it. */
const INSERT_KEYS = statement(
  'insert-keys',
  `
    INSERT INTO punctual.keys (tenant, key, job, said_at)
    SELECT u.tenant, u.key, u.job, coalesce(u.said_at, ${NOW_MICROS})
    FROM unnest($1::text[], $2::text[], $3::uuid[], $4::bigint[]) WITH ORDINALITY u(tenant, key, job, said_at, place)
    ORDER BY u.tenant, u.key, u.place
    ON CONFLICT (tenant, key) DO NOTHING`,
);

/** A separate statement, because the winner of a conflict is invisible to the snapshot of the insert that lost. */
const FIND_KEYS = statement(
  'find-keys',
  `
    SELECT u.place, k.job, k.said_at AS "saidAt"
    FROM unnest($1::text[], $2::text[]) WITH ORDINALITY u(tenant, key, place)
    JOIN punctual.keys k ON k.tenant = u.tenant AND k.key = u.key`,
);

/** Locks the rows of keys that still belong to these jobs. */
const LOCK_KEYS = statement(
  'lock-keys',
  `
    SELECT k.job
    FROM unnest($1::text[], $2::text[], $3::uuid[]) u(tenant, key, holder)
    JOIN punctual.keys k ON k.tenant = u.tenant AND k.key = u.key AND k.job = u.holder
    ORDER BY k.tenant, k.key FOR UPDATE OF k`,
);

/** Gives keys to other jobs; the deletion of old keys, which compares the job too, then leaves them alone. */
const TAKE_OVER_KEYS = statement(
  'take-over-keys',
  `
    UPDATE punctual.keys k SET job = u.job, said_at = coalesce(u.said_at, ${NOW_MICROS})
    FROM unnest($1::text[], $2::text[], $3::uuid[], $4::uuid[], $5::bigint[]) u(tenant, key, holder, job, said_at)
    WHERE k.tenant = u.tenant AND k.key = u.key AND k.job = u.holder`,
);

/** Notes that the jobs of keys have their values from newer submissions. */
const RENEW_KEYS = statement(
  'renew-keys',
  `
    UPDATE punctual.keys k SET said_at = coalesce(u.said_at, ${NOW_MICROS})
    FROM unnest($1::text[], $2::text[], $3::uuid[], $4::bigint[]) u(tenant, key, job, said_at)
    WHERE k.tenant = u.tenant AND k.key = u.key AND k.job = u.job`,
);

/** What became of a job: it is new under its own id, or the job that has its key stands for it. */
export interface Registered {
  readonly id: string;
  readonly repetition: Repetition | null;
}

/** A job that takes what another submission with its key says. */
export interface Replacement<J extends KeyedJob = KeyedJob> {
  readonly id: string;
  /** Whether it is one of the new jobs themselves, so that nothing of it is stored yet. */
  readonly isNew: boolean;
  readonly by: J;
  /** Whether it was on hold, which it stays. */
  readonly held: boolean;
}

/** What became of jobs, and which jobs take what others say. */
export interface Registration<J extends KeyedJob> {
  /** In the order of the jobs. */
  readonly registered: readonly Registered[];
  /** At most one for each job that is replaced: the newest. */
  readonly replacements: readonly Replacement<J>[];
}

/**
 * Decides whether the jobs that have the keys of submissions may be named and changed; throws if not. It is asked inside the
 * transaction: looked up before it, a key could pass to another job meanwhile.
 */
export type KeyGuard = (db: Queryable, holders: readonly HolderRow[]) => Promise<void>;

/** A winner of a key, and when the submission was made that it has its values from; null before that was noted. */
interface Winner extends Record<string, unknown> {
  readonly job: string;
  readonly saidAt: number | null;
}

/**
 * Registers the keys of the jobs that have one and decides what becomes of those whose key a job has. The jobs are in
 * the order of their submission.
 */
export async function registerKeys<J extends KeyedJob>(
  db: Queryable,
  jobs: readonly J[],
  now: number,
  guard?: KeyGuard,
): Promise<Registration<J>> {
  const keyed = jobs.filter((job) => job.row.definition.key !== null);
  if (keyed.length === 0) return { registered: jobs.map(asNew), replacements: [] };
  const own = new Set(keyed.map((job) => job.row.id));
  for (;;) {
    const winners = await findWinners(db, keyed);
    // A key may be deleted with its job's history between the two statements; then it is free again.
    if (winners === null) continue;
    const beaten = keyed
      .map((job, i) => ({ job, holder: winners[i]!.job }))
      .filter(({ holder }) => !own.has(holder));
    const holders = await findHolders(db, beaten);
    if (guard && holders.size > 0) await guard(db, [...holders.values()]);
    const winnerOf = new Map(keyed.map((job, i) => [job.row.id, winners[i]!]));
    const { registered, replacements, passed } = await decideAll(jobs, winnerOf, holders, now);
    const renewed = replacements.map(({ id, by }) => [id, by] as const);
    const written = [...new Map([...passed, ...renewed])].filter(([holder]) => !own.has(holder));
    // Another submission may take a key over first; the next iteration finds its job.
    if (!(await lockKeys(db, written.map(toBeaten)))) continue;
    await takeOverKeys(db, [...passed].map(toBeaten));
    return { registered, replacements };
  }
}

function toBeaten([holder, job]: readonly [string, KeyedJob]): Beaten {
  return { holder, job };
}

function asNew({ row }: KeyedJob): Registered {
  return { id: row.id, repetition: null };
}

/** Inserts the keys that are free; answers with the winner of each, or null if a key was deleted meanwhile. */
async function findWinners(db: Queryable, keyed: readonly KeyedJob[]): Promise<Winner[] | null> {
  const tenants = keyed.map(({ row }) => row.definition.tenant);
  const keys = keyed.map(({ row }) => row.definition.key);
  const ids = keyed.map(({ row }) => row.id);
  await run(db, INSERT_KEYS, [tenants, keys, ids, keyed.map(({ saidAt }) => saidAt)]);
  const found = await run<Winner & { place: number }>(db, FIND_KEYS, [tenants, keys]);
  if (found.length < keyed.length) return null;
  // By place and not by key: a lone surrogate comes back from the database as another character.
  const winners: Winner[] = new Array(keyed.length);
  for (const { place, job, saidAt } of found) winners[place - 1] = { job, saidAt };
  return winners;
}

/** The ids of the jobs that have the keys of these, by the ids of these, as far as any has them. */
export async function findKeyHolders(db: Queryable, jobs: readonly KeyedJob[]): Promise<Map<string, string>> {
  const tenants = jobs.map(({ row }) => row.definition.tenant);
  const keys = jobs.map(({ row }) => row.definition.key);
  const found = await run<{ place: number; job: string }>(db, FIND_KEYS, [tenants, keys]);
  return new Map(found.map(({ place, job }) => [jobs[place - 1]!.row.id, job]));
}

/** Locks the rows of keys that are to be written; answers whether all still belong to their holders. */
export async function lockKeys(db: Queryable, beaten: readonly Beaten[]): Promise<boolean> {
  if (beaten.length === 0) return true;
  const tenants = beaten.map(({ job }) => job.row.definition.tenant);
  const keys = beaten.map(({ job }) => job.row.definition.key);
  const locked = await run(db, LOCK_KEYS, [tenants, keys, beaten.map(({ holder }) => holder)]);
  return locked.length === beaten.length;
}

/** Gives keys of the holders to other jobs. */
export async function takeOverKeys(db: Queryable, beaten: readonly Beaten[]): Promise<void> {
  if (beaten.length === 0) return;
  await run(db, TAKE_OVER_KEYS, [
    beaten.map(({ job }) => job.row.definition.tenant),
    beaten.map(({ job }) => job.row.definition.key),
    beaten.map(({ holder }) => holder),
    beaten.map(({ job }) => job.row.id),
    beaten.map(({ job }) => job.saidAt),
  ]);
}

/** Jobs that are decided about between two looks at the clock. */
const DECIDED_AT_ONCE = 100;

/** What is known about a job that has a key while the jobs of a batch are decided about, one after the other. */
interface Known<J extends KeyedJob> {
  readonly id: string;
  readonly createdAt: number;
  /** Whose values it has, if they are those of a job of the batch. */
  values: J | null;
  saidAt: number | null;
  isReplaced: boolean;
  held: boolean;
}

/** A registration, and the jobs of the batch that the keys pass to, by the jobs that the database says have them. */
interface Decided<J extends KeyedJob> extends Registration<J> {
  readonly passed: ReadonlyMap<string, J>;
}

async function decideAll<J extends KeyedJob>(
  jobs: readonly J[],
  winners: ReadonlyMap<string, Winner>,
  holders: ReadonlyMap<string, HolderRow>,
  now: number,
): Promise<Decided<J>> {
  const byId = new Map(jobs.map((job) => [job.row.id, job]));
  const known = new Map<string, Known<J>>();
  const passed = new Map<string, J>();
  const registered: Registered[] = [];
  const slice = new TimeSlice();
  for (const job of jobs) {
    if (registered.length % DECIDED_AT_ONCE === 0 && slice.isOver) await slice.next();
    const winner = winners.get(job.row.id);
    if (!winner || winner.job === job.row.id) {
      registered.push(asNew(job));
      continue;
    }
    const row = holders.get(job.row.id);
    const own = passed.get(winner.job) ?? byId.get(winner.job);
    const holder = known.get(own?.row.id ?? winner.job) ?? (own ? knownOf(own) : knownIn(winner, row));
    const compared = holder?.values ? sameAsRow(holder.values, job, holder.held) : row;
    const decided = holder && compared ? decision(job, holder.createdAt, compared) : 'take-over';
    if (!holder || !compared || decided === 'take-over') {
      passed.set(winner.job, job);
      registered.push(asNew(job));
      continue;
    }
    known.set(holder.id, holder);
    const replaced = decided === 'replace' && !isOutdated(job.saidAt, holder.saidAt);
    const differs = differences(compared, job, now);
    if (replaced) {
      holder.values = job;
      holder.saidAt = job.saidAt;
      holder.isReplaced = true;
      holder.held ||= job.held;
    }
    registered.push({ id: holder.id, repetition: { repeated: true, replaced, differs } });
  }
  const replacements = [...known].flatMap(([id, { values, isReplaced, held }]) =>
    isReplaced && values ? [{ id, isNew: byId.has(id), by: values, held }] : [],
  );
  return { registered, replacements, passed };
}

function decision({ row, keyRule }: KeyedJob, createdAt: number, { started, ended }: Compared) {
  return decideKey(keyRule, row.definition.created_at, { createdAt, isStarted: started, isEnded: ended });
}

/** What is known about a job of the batch before anything else was decided about it. */
function knownOf<J extends KeyedJob>(own: J): Known<J> {
  const { row, saidAt, held } = own;
  return { id: row.id, createdAt: row.definition.created_at, values: own, saidAt, isReplaced: false, held };
}

/** What is known about a stored job; nothing if it is gone. */
function knownIn(winner: Winner, row: HolderRow | undefined): Known<never> | null {
  if (!row) return null;
  const { created_at: createdAt, held } = row;
  return { id: winner.job, createdAt, values: null, saidAt: winner.saidAt, isReplaced: false, held };
}

/** Whether a submission is older than the one that a job has its values from. */
function isOutdated(saidAt: number | null, newest: number | null): boolean {
  return saidAt !== null && newest !== null && saidAt < newest;
}

/** Notes when the submissions were made that the replaced jobs have their values from. */
export async function renewKeys(db: Queryable, replacements: readonly Replacement[]): Promise<void> {
  await run(db, RENEW_KEYS, [
    replacements.map(({ by }) => by.row.definition.tenant),
    replacements.map(({ by }) => by.row.definition.key),
    replacements.map(({ id }) => id),
    replacements.map(({ by }) => by.saidAt),
  ]);
}
