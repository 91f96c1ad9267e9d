import { SerialQueue } from '../core/serial-queue.js';
import { addQueues } from './add-queues.js';
import { textArray } from './array-text.js';
import { byIndex } from './batch-statement.js';
import { type Queryable, run, type Statement, statement } from './database.js';
import { LabelSetQuota } from './label-set-quota.js';
import { RolledBackError } from './leader-statement.js';
import { digestAll, digestOf, hasLabels, type Named, needsKey } from './needs-digest.js';
import { OriginBuckets } from './origin-buckets.js';

/**
 * Names of queues and needs of jobs, and the small integers that stand for them in the hot table.
 *
 * What a node remembers of them can be wrong: a database that was restored, or a promoted replica, may have lost a name
 * and given its integer to another. So whoever stores jobs says what it takes the integers for, and the insert stores
 * nothing when that does not hold (`NAMES_HOLD`).
 *
 * Names that no job uses any more are removed. A name is safe from that for days after its last use, and using one
 * puts that down first, so no job is ever stored under a name that is about to go.
 */

export interface QueueRow {
  readonly id: number;
  readonly tenant: string;
  readonly name: string;
  readonly paused: boolean;
  readonly created_at: number;
  readonly weight: number;
  readonly concurrency: number | null;
  readonly key_concurrency: number;
  readonly rate_limit: number | null;
  readonly rate_per: number | null;
  readonly rate_burst: number | null;
  /** When the queue's bucket will be full again. */
  readonly full_at: number;
  /** How many starts its bucket is in debt for. */
  readonly debt: number;
}

export interface NeedsRow {
  readonly id: number;
  readonly tenant: string;
  readonly target: string;
  readonly handler: string;
  readonly labels: string;
  /** The limits of the origin that stands in place of the handler; null where none are set. */
  readonly concurrency: number | null;
  readonly rate_limit: number | null;
  readonly rate_per: number | null;
  readonly rate_burst: number | null;
}

const FIND_QUEUES = statement(
  'find-queues',
  `
    SELECT u.place, q.id, q.used_at AS "usedAt"
    FROM unnest($1::text[], $2::text[]) WITH ORDINALITY u(tenant, name, place)
    JOIN punctual.queues q ON q.tenant = u.tenant AND q.name = u.name`,
);

const ADD_NEEDS = statement(
  'add-needs',
  `
    INSERT INTO punctual.needs (signature, tenant, target, handler, labels, used_at)
    SELECT u.signature, u.tenant, u.target, u.handler, u.labels, $6::bigint
    FROM unnest($1::bytea[], $2::text[], $3::text[], $4::text[], $5::text[]) u(signature, tenant, target, handler, labels)
    WHERE NOT EXISTS (SELECT 1 FROM punctual.needs n WHERE n.signature = u.signature)
    ORDER BY 1
    ON CONFLICT (signature) DO NOTHING`,
);

const FIND_NEEDS = statement(
  'find-needs',
  `
    SELECT u.place, n.id, n.used_at AS "usedAt" FROM unnest($1::bytea[]) WITH ORDINALITY u(signature, place)
    JOIN punctual.needs n ON n.signature = u.signature`,
);

/** Puts down a later use; a name that was removed meanwhile is not among those that it answers with. */
function useNames(table: 'queues' | 'needs'): Statement {
  return statement(
    `use-${table}`,
    `
    UPDATE punctual.${table} n SET used_at = greatest(n.used_at, $2::bigint)
    FROM (SELECT * FROM unnest($1::int[]) u(id) ORDER BY u.id) u
    WHERE ${byIndex('n.id', 'u.id')}
    RETURNING n.id, n.used_at AS "usedAt"`,
  );
}
const USE_QUEUES = useNames('queues');
const USE_NEEDS = useNames('needs');

/** A name of a queue, and the integer that stands for it. */
interface KnownQueue {
  readonly id: number;
  readonly tenant: string;
  readonly name: string;
  usedAt: number;
}

interface KnownNeeds {
  readonly id: number;
  readonly signature: Buffer;
  usedAt: number;
}

/** The integers for the names of a job, and what they are taken for. */
export interface Resolved {
  readonly queue: number;
  readonly needs: number;
  readonly queueName: KnownQueue;
  readonly needsName: KnownNeeds;
}

/** Whether two use the same names, as far as can be told at once: jobs of a bulk mostly share their needs. */
function isSame(a: Named, b: Named): boolean {
  return a.needs === b.needs && a.queue === b.queue && a.tenant === b.tenant;
}

function queueKey({ tenant, queue }: Named): string {
  return `${tenant}\n${queue}`;
}

/** Label texts that one statement stores: writing its parameters holds the event loop. */
const STORED_CHARACTERS = 512 * 1024;
/** How much later a use must be than the one on record to be put down. */
const USE_STEP_MS = 12 * 3_600_000;
/** Names that a node remembers of each kind. */
const MAX_KNOWN = 50_000;
/** How often a name that goes while it is being looked up is looked up again. */
const TRIES = 5;

export interface NamesOptions {
  /** Label sets that a tenant may have; without it there is no limit. */
  readonly maxLabelSets?: number;
  /** Origins of a tenant that have a backlog of their own; without it all have. */
  readonly maxOrigins?: number;
  /** Queues that a tenant without a quota of its own may have; without it no quota of queues is looked at. */
  readonly maxQueues?: number;
}

export class Names {
  private readonly queues = new Map<string, KnownQueue>();
  private readonly needs = new Map<string, KnownNeeds>();
  private readonly learning = new SerialQueue();
  private readonly quota: LabelSetQuota | null;
  private readonly buckets: OriginBuckets | null;
  private readonly maxQueues: number | null;

  constructor(
    private readonly db: Queryable,
    { maxLabelSets, maxOrigins, maxQueues }: NamesOptions = {},
  ) {
    this.maxQueues = maxQueues ?? null;
    const find = (signatures: readonly Buffer[]) => this.findNeeds(signatures);
    this.buckets = maxOrigins === undefined ? null : new OriginBuckets(db, maxOrigins, find);
    this.quota = maxLabelSets === undefined ? null : new LabelSetQuota(db, maxLabelSets, find);
  }

  /** The integers for each of the given, made where they do not exist yet. */
  async resolve(named: readonly Named[], now: number): Promise<Resolved[]> {
    const first = named[0];
    if (first && named.every((each) => isSame(each, first))) {
      const known = await this.resolveEach([first], now);
      return named.map(() => known[0]!);
    }
    return this.resolveEach(named, now);
  }

  /** What was remembered of these names is wrong; the next look-up asks the database. */
  forget(resolved: readonly Resolved[]): void {
    const queues = new Set(resolved.map(({ queueName }) => queueName));
    const needs = new Set(resolved.map(({ needsName }) => needsName));
    for (const [key, known] of this.queues) if (queues.has(known)) this.queues.delete(key);
    for (const [key, known] of this.needs) if (needs.has(known)) this.needs.delete(key);
  }

  private async resolveEach(named: readonly Named[], now: number): Promise<Resolved[]> {
    const labelled = named.filter(hasLabels);
    if (labelled.length > 0) await digestAll(labelled);
    for (let tries = 1; ; tries += 1) {
      const queues = await this.known(this.queues, named, queueKey, now, (unknown) =>
        this.learnQueues(unknown, now),
      );
      const needs = await this.known(this.needs, named, needsKey, now, (unknown) =>
        this.learnNeeds(unknown, now),
      );
      if (queues && needs) {
        return named.map((_, i) => ({
          queue: queues[i]!.id,
          needs: needs[i]!.id,
          queueName: queues[i]!,
          needsName: needs[i]!,
        }));
      }
      if (tries === TRIES) throw new Error('names are removed as fast as they are made');
    }
  }

  /** What is known of each, after learning what is not; null when something went away meanwhile. */
  private async known<K extends { readonly usedAt: number }>(
    names: Map<string, K>,
    named: readonly Named[],
    keyOf: (named: Named) => string,
    now: number,
    learn: (unknown: readonly Named[]) => Promise<readonly (K | undefined)[]>,
  ): Promise<K[] | null> {
    const keys = named.map(keyOf);
    const found = keys.map((key) => names.get(key));
    const unknown = new Map<string, Named>();
    named.forEach((each, i) => {
      const known = found[i];
      if (!known || known.usedAt + USE_STEP_MS < now) unknown.set(keys[i]!, each);
    });
    if (unknown.size === 0) return found as K[];
    const learned = await learn([...unknown.values()]);
    if (names.size > MAX_KNOWN) names.clear();
    const fresh = new Map<string, K>();
    for (const [i, key] of [...unknown.keys()].entries()) {
      const name = learned[i];
      if (!name) return null;
      names.set(key, name);
      fresh.set(key, name);
    }
    // Not from the map: others may have emptied it meanwhile.
    return keys.map((key, i) => fresh.get(key) ?? found[i]!);
  }

  private async learnQueues(
    unknown: readonly Named[],
    now: number,
  ): Promise<readonly (KnownQueue | undefined)[]> {
    const names = [unknown.map((each) => each.tenant), unknown.map((each) => each.queue)];
    await addQueues(this.db, unknown, now, this.maxQueues);
    const found = await run<Found>(this.db, FIND_QUEUES, names);
    return (await this.use(USE_QUEUES, found, unknown.length, now)).map(
      (name, i) => name && { ...name, tenant: unknown[i]!.tenant, name: unknown[i]!.queue },
    );
  }

  /** One after the other on a node, or many at once would each find room for the same label sets. */
  private learnNeeds(unknown: readonly Named[], now: number): Promise<readonly (KnownNeeds | undefined)[]> {
    return this.learning.run(() => this.learnNeedsNow(unknown, now));
  }

  private async learnNeedsNow(
    unknown: readonly Named[],
    now: number,
  ): Promise<readonly (KnownNeeds | undefined)[]> {
    await digestAll(unknown);
    const stored = (await this.buckets?.assign(unknown)) ?? unknown;
    const signatures = (await digestAll(stored)).map(({ signature }) => signature);
    // What is refused is told by the needs that were asked for.
    await this.quota?.check(unknown, signatures);
    for (const part of inParts(stored)) await this.addNeeds(part, now);
    const found = await this.findNeeds(signatures);
    return (await this.use(USE_NEEDS, found, unknown.length, now)).map(
      (name, i) => name && { ...name, signature: signatures[i]! },
    );
  }

  private findNeeds(signatures: readonly Buffer[]): Promise<Found[]> {
    return run<Found>(this.db, FIND_NEEDS, [signatures]);
  }

  private async addNeeds(named: readonly Named[], now: number): Promise<void> {
    await run(this.db, ADD_NEEDS, [
      named.map((each) => digestOf(each).signature),
      textArray(named.map((each) => each.tenant)),
      textArray(named.map((each) => each.needs.target)),
      textArray(named.map((each) => each.needs.handler)),
      textArray(named.map((each) => digestOf(each).labels)),
      now,
    ]);
  }

  /** Puts down the use of what was found, by place; what is missing has gone. */
  private async use(
    statement: Statement,
    found: readonly Found[],
    count: number,
    now: number,
  ): Promise<(Use | undefined)[]> {
    const names = new Array<Use | undefined>(count).fill(undefined);
    for (const { place, id, usedAt } of found) names[place - 1] = { id, usedAt };
    const stale = names.filter((name) => name && name.usedAt + USE_STEP_MS < now).map((name) => name!.id);
    if (stale.length === 0) return names;
    const used = new Map(
      (await run<Use & Record<string, unknown>>(this.db, statement, [stale, now])).map((row) => [
        row.id,
        row,
      ]),
    );
    const isStale = new Set(stale);
    return names.map((name) => {
      if (!name || !isStale.has(name.id)) return name;
      const row = used.get(name.id);
      return row && { id: row.id, usedAt: row.usedAt };
    });
  }
}

/** Cuts a list where its label texts become more than one statement stores. */
function* inParts(named: readonly Named[]): Iterable<readonly Named[]> {
  let from = 0;
  let characters = 0;
  for (const [i, each] of named.entries()) {
    characters += digestOf(each).labels.length;
    if (characters < STORED_CHARACTERS) continue;
    yield named.slice(from, i + 1);
    [from, characters] = [i + 1, 0];
  }
  if (from < named.length) yield named.slice(from);
}

/** A name, and when it was last put down that a job uses it. */
interface Use {
  readonly id: number;
  usedAt: number;
}

interface Found extends Record<string, unknown> {
  /** The place among those that were asked for, from one on. */
  readonly place: number;
  readonly id: number;
  readonly usedAt: number;
}

/**
 * A condition that is true while the integers stand for the names they are taken for: five parameters from the given
 * one on, as `namesTaken` makes them. It costs a look-up per name, not per job.
 */
export function namesHold(from: number): string {
  const [queues, tenants, names, needs, signatures] = [0, 1, 2, 3, 4].map((i) => `$${from + i}`);
  return `(SELECT count(*) FROM unnest(${queues}::int[], ${tenants}::text[], ${names}::text[]) n(id, tenant, name)
        JOIN punctual.queues q ON ${byIndex('q.id', 'n.id')} AND q.tenant = n.tenant AND q.name = n.name) = cardinality(${queues}::int[])
      AND (SELECT count(*) FROM unnest(${needs}::int[], ${signatures}::bytea[]) n(id, signature)
        JOIN punctual.needs w ON ${byIndex('w.id', 'n.id')} AND w.signature = n.signature) = cardinality(${needs}::int[])`;
}

/** The parameters of `namesHold`. */
export function namesTaken(resolved: readonly Resolved[]): unknown[] {
  const queues = [...new Set(resolved.map(({ queueName }) => queueName))];
  const needs = [...new Set(resolved.map(({ needsName }) => needsName))];
  return [
    queues.map(({ id }) => id),
    queues.map(({ tenant }) => tenant),
    queues.map(({ name }) => name),
    needs.map(({ id }) => id),
    needs.map(({ signature }) => signature),
  ];
}

/** The same for the names of one job, as plain parameters. */
export function namesOfOneHold(from: number): string {
  const [queue, tenant, name, needs, signature] = [0, 1, 2, 3, 4].map((i) => `$${from + i}`);
  return `EXISTS (SELECT 1 FROM punctual.queues q
        WHERE q.id = ${queue}::int AND q.tenant = ${tenant}::text AND q.name = ${name}::text)
      AND EXISTS (SELECT 1 FROM punctual.needs w WHERE w.id = ${needs}::int AND w.signature = ${signature}::bytea)`;
}

/** The parameters of `namesOfOneHold`. */
export function namesOfOne({ queueName, needsName }: Resolved): unknown[] {
  return [queueName.id, queueName.tenant, queueName.name, needsName.id, needsName.signature];
}

const NAMES_HOLD = statement('names-hold', `SELECT ${namesHold(1)} AS named`);

/** Throws StaleNamesError unless the integers stand for the names they are taken for. */
export async function requireNames(db: Queryable, resolved: readonly Resolved[]): Promise<void> {
  const [found] = await run<{ named: boolean }>(db, NAMES_HOLD, namesTaken(resolved));
  if (!found!.named) throw new StaleNamesError();
}

/** What was taken for the names of jobs does not hold, so nothing was stored: the database has lost some of them. */
export class StaleNamesError extends RolledBackError {
  constructor() {
    super('the database does not have these names any more');
    this.name = 'StaleNamesError';
  }
}
