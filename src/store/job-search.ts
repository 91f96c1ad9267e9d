import { isEnded, type JobState } from '../core/job.js';
import type { PayloadCondition } from '../core/payload-filter.js';
import { FIRST_UUID, uuidTime } from '../core/uuid.js';
import { byIndex } from './batch-statement.js';
import { allEnded } from './ended-places.js';
import { rowBytes } from './job-columns.js';
import { CLOCK_ERROR_MS } from './read-job.js';
import { readableJson } from './readable-json.js';

/**
 * Searching the jobs of a tenant, newest first, by any combination of filters: for lists and for changes of many jobs.
 *
 * A statement examines a bounded number of rows of each place, from an id downwards. Where there is an index for a
 * filter, only rows of that index are examined; every other filter is a condition on the rows that are. So a filter that
 * fits one job in a million makes many short statements and never one of minutes. The position that a statement has
 * reached is an id, and the next statement begins below it. All places are searched in one statement, so a job that
 * moves between two of them is found in exactly one; its id, and with it its position, stays the same.
 *
 * Live jobs have no index by tenant, because it would cost every job of everybody. They are examined by id, whosever they
 * are. Where most of them are of others, the next statement looks into the queues of the tenant instead. If it has few
 * live jobs, that finds all of them, however many jobs others have.
 */

/** Which jobs to search for. What is not given does not matter. */
export interface JobSearch {
  readonly states?: readonly JobState[] | undefined;
  readonly task?: string | undefined;
  readonly queue?: string | undefined;
  readonly worker?: string | undefined;
  readonly schedule?: string | undefined;
  readonly errorCode?: string | undefined;
  /** What failed jobs have in common, as `error-groups.ts` finds it. */
  readonly fingerprint?: string | undefined;
  /** Attempts so far, with the one that runs. */
  readonly minAttempts?: number | undefined;
  readonly maxAttempts?: number | undefined;
  /** How the key begins that the job has. */
  readonly keyPrefix?: string | undefined;
  readonly payload?: readonly PayloadCondition[] | undefined;
  /** Only jobs that are on hold, or only those that are not. */
  readonly held?: boolean | undefined;
  /** Without jobs that are never started again. */
  readonly repeatable?: boolean | undefined;
  /** Without steps that only wait, or are workflows: their jobs are in no queue that anybody chose. */
  readonly runs?: boolean | undefined;
  /** The lowest id. */
  readonly from?: string | undefined;
  /** Only these jobs. */
  readonly ids?: readonly string[] | undefined;
}

/** Rows of each place that one statement examines at least, if there are so many, and at most. */
const LEAST_EXAMINED = 100;
const MOST_EXAMINED = 10_000;
/** The most of which payloads are parsed: one may take milliseconds, and even rows that all do must not reach a deadline. */
const MOST_PARSED = 1_000;
const QUICK_MS = 25;

/** Live rows of others that one statement must have examined before the next looks into the queues of the tenant. */
const MANY_OTHERS = 50;
/** The most queues that are looked into, and the most live jobs that are found there; a tenant with more is searched by id. */
const MOST_QUEUES = 1_000;
const MOST_IN_QUEUES = 5_000;

/** Whose live rows a statement examined. */
export interface ExaminedLive {
  readonly live: number;
  /** Those of other tenants. */
  readonly others: number;
  /** Whether the queues of the tenant hold few live jobs; null if the statement did not look into them. */
  readonly few: boolean | null;
}

/** How many rows of each place the next statement of a search examines: more while it takes no time, and fewer after it did. */
export class Stride {
  rows: number;
  /** Whether the next statement finds live jobs through the queues of the tenant. */
  byQueue = false;
  private isLarge = false;
  private readonly most: number;

  constructor({ payload, fingerprint }: JobSearch, first?: number) {
    const parses = (payload !== undefined && payload.length > 0) || fingerprint !== undefined;
    this.most = parses ? MOST_PARSED : MOST_EXAMINED;
    this.rows = Math.min(this.most, first ?? (parses ? LEAST_EXAMINED : MOST_EXAMINED));
  }

  /** Notes how long a statement took, and whether it found as much as it might. */
  took(ms: number, full: boolean): void {
    if (full || ms > 2 * QUICK_MS) this.rows = Math.max(LEAST_EXAMINED, Math.floor(this.rows / 4));
    else if (ms <= QUICK_MS) this.rows = Math.min(this.most, 8 * this.rows);
  }

  /** Notes whose live rows a statement examined. */
  met({ live, others, few }: ExaminedLive): void {
    // A tenant with too many jobs in its queues is not asked twice.
    if (few !== null) this.isLarge = !few;
    this.byQueue = !this.isLarge && (this.byQueue || (others >= MANY_OTHERS && 2 * others > live));
  }
}

/** The SQL for whether an error has the code. Only errors that contain the code as a JSON string are parsed. */
const hasErrorCode = (error: string, code: string): string =>
  `CASE WHEN strpos(${error}::text, to_json(${code})::text) > 0
          THEN punctual.readable(${error}) ->> 'code' = ${code} END`;

/** Names in submissions are of ASCII, so the function of the database reads them well. */
const UNPARSED = 'punctual.readable(l.submission)';

/** Numbers that Postgres can certainly convert; others are equal only if their texts are. */
const PLAIN_NUMBER = `'^-?[0-9]{1,40}(\\.[0-9]{1,40})?([eE][+-]?[0-9]{1,2})?$'`;

/**
 * The SQL for whether all conditions hold for a payload that is readable. Numbers are converted only if that cannot fail:
 * one odd payload must not spoil a page.
 */
const payloadFits = (payload: string, of: (field: string) => string): string => `NOT EXISTS (
          SELECT 1 FROM (
            SELECT ${payload} AS value OFFSET 0) p,
            unnest(${of('paths')}, ${of('kinds')}, ${of('values')}) w(path, kind, value),
            LATERAL (SELECT p.value #> w.path::text[] AS field OFFSET 0) f
          WHERE (CASE WHEN f.field IS NULL OR json_typeof(f.field) <> w.kind THEN false
            WHEN w.kind = 'string' THEN f.field #>> '{}' = w.value
            WHEN f.field::text = w.value THEN true
            WHEN w.kind = 'number' AND f.field::text ~ ${PLAIN_NUMBER} AND w.value ~ ${PLAIN_NUMBER}
              THEN f.field::text::numeric = w.value::numeric
            ELSE false END) IS NOT TRUE)`;

/** Whether the job of a row has its key; an earlier job with the same key no longer has it. */
const holdsKey = (alias: string): string => `EXISTS (SELECT 1 FROM punctual.keys k
          WHERE k.tenant = $1 AND k.key = ${alias}.key AND k.job = ${alias}.id)`;

interface Filter {
  /** The parameter, or several, each with its type. */
  readonly parameters: Readonly<Record<string, string>>;
  /** Its values for a search; null if the filter is not used. */
  values(search: JobSearch): readonly unknown[] | null;
  /** The condition on the rows of each place: `j` with the claim `c`, `l`, and `h`; `of` names a parameter. */
  live(of: (parameter: string) => string): string;
  later(of: (parameter: string) => string): string;
  ended(of: (parameter: string) => string): string;
}

const QUEUE_OF_NAME = (name: string) =>
  `(SELECT q.id FROM punctual.queues q WHERE q.tenant = $1 AND q.name = ${name})`;

const never = () => 'false';
const always = () => 'true';
const one = (value: unknown): readonly unknown[] | null => (value === undefined ? null : [value]);

/**
 * The conditions, cheap ones first, because a row that does not fit one of them is not checked against the next. A new
 * filter needs an entry here, and one in `JOB_FILTER` of the schemas.
 */
const FILTERS: readonly Filter[] = [
  {
    parameters: { ids: 'uuid[]' },
    values: ({ ids }) => one(ids),
    // The index answers it.
    live: always,
    later: always,
    ended: always,
  },
  {
    parameters: { states: 'text[]' },
    values: ({ states }) => one(states),
    live: (of) => `CASE WHEN c.job IS NULL THEN 'pending' ELSE 'running' END = ANY (${of('states')})`,
    later: (of) => `CASE WHEN l.blocked THEN 'blocked' ELSE 'pending' END = ANY (${of('states')})`,
    ended: (of) => `h.state = ANY (${of('states')})`,
  },
  {
    parameters: { held: 'boolean' },
    values: ({ held }) => one(held),
    live: (of) => `NOT ${of('held')}`,
    later: (of) => `l.held = ${of('held')}`,
    ended: never,
  },
  {
    parameters: { repeatable: 'boolean' },
    values: ({ repeatable }) => (repeatable ? [true] : null),
    live: always,
    later: always,
    ended: () => 'NOT h.at_most_once',
  },
  {
    parameters: { runs: 'boolean' },
    values: ({ runs }) => (runs ? [true] : null),
    live: always,
    later: () => '(l.workflow IS NULL OR l.task IS NOT NULL OR l.target IS NOT NULL)',
    ended: () => '(h.workflow IS NULL OR h.task IS NOT NULL OR h.target IS NOT NULL)',
  },
  {
    parameters: { task: 'text' },
    values: ({ task }) => one(task),
    live: (of) => `j.task = ${of('task')}`,
    later: (of) => `coalesce(l.task, ${UNPARSED} ->> 'task') = ${of('task')}`,
    ended: (of) => `h.task = ${of('task')}`,
  },
  {
    parameters: { queue: 'text' },
    values: ({ queue }) => one(queue),
    live: (of) => `j.queue = ${QUEUE_OF_NAME(of('queue'))}`,
    later: (of) => `CASE WHEN l.submission IS NULL THEN l.queue = ${QUEUE_OF_NAME(of('queue'))}
          ELSE coalesce(${UNPARSED} ->> 'queue', 'default') = ${of('queue')} END`,
    ended: (of) => `h.queue = ${QUEUE_OF_NAME(of('queue'))}`,
  },
  {
    parameters: { schedule: 'text' },
    values: ({ schedule }) => one(schedule),
    live: (of) => `j.schedule = ${of('schedule')}`,
    later: (of) => `l.schedule = ${of('schedule')}`,
    ended: (of) => `h.schedule = ${of('schedule')}`,
  },
  {
    parameters: { worker: 'uuid' },
    values: ({ worker }) => one(worker),
    live: (of) => `c.worker = ${of('worker')}`,
    later: never,
    ended: (of) => `h.worker = ${of('worker')}`,
  },
  {
    parameters: { least: 'int', most: 'int' },
    values: ({ minAttempts, maxAttempts }) =>
      minAttempts === undefined && maxAttempts === undefined
        ? null
        : [minAttempts ?? 0, maxAttempts ?? 2 ** 31 - 1],
    live: (of) => `j.attempts + (c.job IS NOT NULL)::int BETWEEN ${of('least')} AND ${of('most')}`,
    later: (of) => `l.attempts BETWEEN ${of('least')} AND ${of('most')}`,
    ended: (of) => `h.attempts BETWEEN ${of('least')} AND ${of('most')}`,
  },
  {
    parameters: { prefix: 'text' },
    // With ids, these are the jobs of the prefix.
    values: ({ keyPrefix, ids }) => (ids === undefined ? one(keyPrefix) : null),
    live: (of) => `starts_with(j.key, ${of('prefix')}) AND ${holdsKey('j')}`,
    later: (of) => `starts_with(l.key, ${of('prefix')}) AND (l.submission IS NOT NULL OR ${holdsKey('l')})`,
    ended: (of) => `starts_with(h.key, ${of('prefix')}) AND ${holdsKey('h')}`,
  },
  {
    parameters: { code: 'text' },
    values: ({ errorCode }) => one(errorCode),
    live: never,
    later: never,
    ended: (of) => hasErrorCode('h.error', of('code')),
  },
  {
    parameters: { fingerprint: 'text' },
    values: ({ fingerprint }) => one(fingerprint),
    live: never,
    later: never,
    ended: (of) =>
      `h.state = 'failed' AND punctual.error_fingerprint(h.task, h.error) = ${of('fingerprint')}`,
  },
  {
    parameters: { paths: 'text[]', kinds: 'text[]', values: 'text[]' },
    values: ({ payload }) =>
      payload === undefined || payload.length === 0 ? null : conditionColumns(payload),
    live: (of) => payloadFits(readableJson('j.payload'), of),
    later: (of) =>
      payloadFits(`coalesce(${readableJson('l.payload')}, ${readableJson('l.submission')} -> 'payload')`, of),
    ended: (of) => payloadFits(readableJson('h.payload'), of),
  },
];

function conditionColumns(conditions: readonly PayloadCondition[]): readonly unknown[] {
  const quoted = (part: string) => `"${part.replace(/["\\]/g, '\\$&')}"`;
  return [
    conditions.map(({ path }) => `{${path.map(quoted).join(',')}}`),
    conditions.map(({ kind }) => kind),
    conditions.map(({ value }) => value),
  ];
}

/** $1 to $5: tenant, the id below which to search, the lowest id, rows to examine, rows to find; then the places. */
const LIVE = '$6::boolean';
const LATER = '$7::boolean';
const ENDED = '$8::boolean';
const ENDED_SINCE = '$9::bigint';
const FIRST_OF_FILTERS = 10;
const PARAMETERS = new Map(
  FILTERS.flatMap(({ parameters }) => Object.entries(parameters)).map(
    ([name, type], i) => [name, `$${FIRST_OF_FILTERS + i}::${type}`] as const,
  ),
);

const of = (parameter: string): string => PARAMETERS.get(parameter)!;

/** The conditions of all filters on one place; a parameter that is null is a filter that is not used. */
function conditionsOn(place: 'live' | 'later' | 'ended'): string {
  return FILTERS.map((filter) => {
    const [first] = Object.keys(filter.parameters);
    return `(${of(first!)} IS NULL OR ${filter[place](of)})`;
  }).join('\n        AND ');
}

/** How the rows are found that are examined. */
export type SearchIndex = 'id' | 'queue' | 'failed' | 'running' | 'schedule' | 'ids';

const INDEX_CONDITIONS: Readonly<Record<SearchIndex, (alias: 'j' | 'l' | 'h') => string>> = {
  id: () => '',
  queue: () => '',
  failed: (alias) => (alias === 'h' ? ` AND h.state = 'failed'` : ''),
  running: () => '',
  schedule: (alias) =>
    `${alias === 'j' ? ' AND j.tenant = $1' : ''} AND ${alias}.schedule = ${of('schedule')}`,
  ids: (alias) => ` AND ${alias}.id = ANY (${of('ids')})`,
};

/**
 * The live jobs in the queues of the tenant, in no order, and whether these are all: no more queues and jobs are read than
 * the bounds, and no jobs at all if there are too many queues.
 */
const IN_QUEUES = `own_queues AS MATERIALIZED (
      SELECT q.id FROM punctual.queues q WHERE q.tenant = $1 AND ${LIVE} LIMIT ${MOST_QUEUES + 1}
    ), in_queues AS MATERIALIZED (
      SELECT j.id FROM own_queues q CROSS JOIN LATERAL (
        SELECT j.id FROM punctual.jobs j WHERE ${byIndex('j.queue', 'q.id')} OFFSET 0) j
      WHERE (SELECT count(*) FROM own_queues) <= ${MOST_QUEUES} LIMIT ${MOST_IN_QUEUES + 1}
    ), few AS MATERIALIZED (
      SELECT (SELECT count(*) FROM own_queues) <= ${MOST_QUEUES}
        AND (SELECT count(*) FROM in_queues) <= ${MOST_IN_QUEUES} AS holds
    ), `;

/**
 * Live rows; those that run are found by their claims, of which there are far fewer than jobs. Those in queues are found
 * by id if they are too many.
 */
function liveRows(index: SearchIndex): string {
  const bytes = `${rowBytes('j', 'jobs')} AS bytes`;
  if (index === 'queue') {
    return `
        SELECT j.*, ${bytes} FROM (
          SELECT i.id FROM in_queues i
          WHERE (SELECT holds FROM few) AND i.id < $2::uuid AND i.id >= $3::uuid ORDER BY i.id DESC LIMIT $4::int) i
        JOIN punctual.jobs j ON ${byIndex('j.id', 'i.id')}
        UNION ALL (
        SELECT j.*, ${bytes} FROM punctual.jobs j
        WHERE NOT (SELECT holds FROM few) AND j.id < $2::uuid AND j.id >= $3::uuid AND ${LIVE}
        ORDER BY j.id DESC LIMIT $4::int)`;
  }
  if (index === 'running') {
    return `
        SELECT j.*, ${bytes} FROM (
          SELECT c.job FROM punctual.claims c WHERE c.job < $2::uuid AND c.job >= $3::uuid AND ${LIVE}
          ORDER BY c.job DESC LIMIT $4::int) c
        JOIN punctual.jobs j ON ${byIndex('j.id', 'c.job')}`;
  }
  return `
        SELECT j.*, ${bytes} FROM punctual.jobs j
        WHERE j.id < $2::uuid AND j.id >= $3::uuid AND ${LIVE}${INDEX_CONDITIONS[index]('j')}
        ORDER BY j.id DESC LIMIT $4::int`;
}

/** The last id of a part that is full; null when the part has all there is. */
const reachOf = (part: string): string =>
  `(SELECT id FROM ${part} ORDER BY id DESC OFFSET $4::int - 1 LIMIT 1)`;

/**
 * The parts of a WITH that search. `found` has the place and the id of each job that was found, at most $5, newest first;
 * `position` has `reach`, the id down to which everything was examined (null if all was), whose live rows were, and how
 * many rows of the tenant were in all places.
 */
export function searchParts(index: SearchIndex): string {
  return `${index === 'queue' ? IN_QUEUES : ''}live AS MATERIALIZED (
      SELECT j.id, j.bytes, j.tenant = $1 AS own, j.tenant = $1
        AND ${conditionsOn('live')} AS fits
      FROM (${liveRows(index)}) j
      LEFT JOIN punctual.claims c ON ${byIndex('c.job', 'j.id')}
    ), not_admitted AS MATERIALIZED (
      SELECT l.id, l.bytes, l.created_at, l.created_by, l.submission IS NOT NULL AS raw,
        ${conditionsOn('later')} AS fits
      FROM (
        SELECT l.*, ${rowBytes('l', 'later')} AS bytes FROM punctual.later l
        WHERE l.tenant = $1 AND l.id < $2::uuid AND l.id >= $3::uuid AND ${LATER}${INDEX_CONDITIONS[index]('l')}
        ORDER BY l.id DESC LIMIT $4::int) l
    ), ended AS MATERIALIZED (
      SELECT h.id, h.bytes,
        ${conditionsOn('ended')} AS fits
      FROM (
        SELECT h.*, ${rowBytes('h', 'job_history')} AS bytes FROM ${allEnded('h')}
        WHERE h.tenant = $1 AND h.id < $2::uuid AND h.id >= $3::uuid AND ${ENDED}
          AND h.finished_at >= ${ENDED_SINCE}${INDEX_CONDITIONS[index]('h')}
        ORDER BY h.id DESC LIMIT $4::int) h
    ), position AS MATERIALIZED (
      SELECT greatest(${reachOf('live')}, ${reachOf('not_admitted')}, ${reachOf('ended')}) AS reach,
        (SELECT count(*) FROM live) AS live, (SELECT count(*) FROM live WHERE NOT own) AS others,
        ${index === 'queue' ? '(SELECT holds FROM few)' : 'NULL::boolean'} AS few, (SELECT count(*) FROM live WHERE own)
          + (SELECT count(*) FROM not_admitted) + (SELECT count(*) FROM ended) AS own
    ), found AS MATERIALIZED (
      SELECT f.* FROM position p CROSS JOIN LATERAL (
        SELECT 'live' AS place, id, bytes, false AS raw, NULL::bigint AS created_at, NULL AS created_by FROM live
        WHERE fits AND (p.reach IS NULL OR id >= p.reach)
        UNION ALL
        SELECT 'later', id, bytes, raw, created_at, created_by FROM not_admitted
        WHERE fits AND (p.reach IS NULL OR id >= p.reach)
        UNION ALL
        SELECT 'history', id, bytes, false, NULL, NULL FROM ended
        WHERE fits AND (p.reach IS NULL OR id >= p.reach)
        ORDER BY id DESC LIMIT $5::int) f
    )`;
}

/** Where jobs can be that the search is for. */
interface Places {
  readonly live: boolean;
  readonly later: boolean;
  readonly ended: boolean;
}

/** What a statement of a search needs; null when nothing can be found. */
export interface PreparedSearch {
  readonly index: SearchIndex;
  /** The parameters from $6 on. */
  readonly values: readonly unknown[];
  /** The lowest id, and the earliest end that its jobs can have. */
  readonly from: string;
}

/** Chooses the index and the places for a search; live jobs are found through queues only where no index is better. */
export function prepareSearch(search: JobSearch, byQueue = false): PreparedSearch | null {
  const places = placesOf(search);
  if (!places.live && !places.later && !places.ended) return null;
  const best = indexOf(search, places);
  const index = byQueue && (best === 'id' || best === 'running') ? 'queue' : best;
  const from = search.from ?? FIRST_UUID;
  const filters = FILTERS.flatMap(
    (filter) => filter.values(search) ?? Object.keys(filter.parameters).map(() => null),
  );
  return {
    index,
    from,
    values: [...[places.live, places.later, places.ended, uuidTime(from) - CLOCK_ERROR_MS], ...filters],
  };
}

function placesOf({ states, errorCode, fingerprint, worker, held }: JobSearch): Places {
  const mayBe = (state: JobState) => states === undefined || states.includes(state);
  // Only jobs that have ended have an error, and only those that were started have a worker.
  const hasNoError = errorCode === undefined && fingerprint === undefined;
  return {
    live: hasNoError && held !== true && (mayBe('running') || (mayBe('pending') && worker === undefined)),
    later: hasNoError && worker === undefined && (mayBe('pending') || mayBe('blocked')),
    ended: held === undefined && (states === undefined || states.some(isEnded)),
  };
}

function indexOf({ states, schedule, ids, worker, fingerprint }: JobSearch, places: Places): SearchIndex {
  if (ids !== undefined) return 'ids';
  if (schedule !== undefined) return 'schedule';
  const isOnly = (state: JobState) => states?.length === 1 && states[0] === state;
  if (isOnly('failed') || fingerprint !== undefined) return 'failed';
  // A live job with a worker runs.
  return isOnly('running') || (worker !== undefined && places.live && !places.ended) ? 'running' : 'id';
}

/**
 * Where to go on after the last row that was examined. It may be another tenant's, whose ids nobody else may learn, so
 * its random digits are replaced by the highest; what is examined twice thereby was made within a fraction of a
 * millisecond. It never lies above a job that was found.
 */
export function positionAt(
  reach: string | null,
  lastFound: string | undefined,
  below: string,
): string | null {
  if (reach === null) return null;
  const hidden = `${reach.slice(0, 18)}-ffff-ffffffffffff`;
  const position = lastFound !== undefined && lastFound < hidden ? lastFound : hidden;
  // A search must get on, also through a page of ids that differ in nothing but those digits.
  return position < below ? position : reach;
}
