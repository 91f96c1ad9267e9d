import type { JobPart } from '../core/job.js';
import { LAST_UUID } from '../core/uuid.js';
import { type Queryable, run, type Statement, statement } from './database.js';
import { UNBOUNDED_COLUMNS } from './job-columns.js';
import {
  ATTEMPT_COUNT,
  HISTORY_ARM,
  LATER_ARM,
  LIVE_ARM,
  NEWEST_ATTEMPTS,
  type PlacedRow,
  SMALL,
  toPlacedRow,
} from './job-places.js';
import {
  type ExaminedLive,
  FIRST_OWN,
  type JobSearch,
  positionAt,
  prepareSearch,
  type SearchIndex,
  searchParts,
} from './job-search.js';
import { bytesOf, isSmall, LARGE, type PortionSize, portionOf } from './portion.js';

/**
 * Listing a tenant's jobs, newest first. Large values stay in the database unless they are requested, and then no more is
 * read than fits into the portion.
 */

/** The parameters of the statements beside those of the search: bytes of a portion, and parts that are requested. */
const BYTES = FIRST_OWN;
const INCLUDED = FIRST_OWN + 1;

/** If the attempts of a job have more bytes than this, lists show only the newest. */
const LARGE_ATTEMPTS = 8_192;
/** About how many bytes the small columns of a job have. */
const SMALL_BYTES = 1_024;

const isAskedFor = (part: JobPart) => `'${part}' = ANY ($${INCLUDED}::text[])`;

const isShown = (part: JobPart, value: string, bytes = LARGE) =>
  `(${value} IS NULL OR ${isAskedFor(part)} OR ${isSmall(value, bytes)})`;

/** The error without its stack. `readable` replaces characters in it that Postgres cannot parse as JSON. */
const READABLE_ERROR = 'punctual.readable(error)';
const WITHOUT_STACK = `(concat('{"message":', ${READABLE_ERROR} -> 'message',
  ',"code":' || (${READABLE_ERROR} -> 'code')::text, '}'))::json`;

const WEIGHED = UNBOUNDED_COLUMNS.map(bytesOf);

/** The jobs of a list without large values that were not requested. */
const listed = (list: string) => `
  SELECT *, ${SMALL_BYTES} + ${WEIGHED.join(' + ')} AS bytes
  FROM (
    SELECT ${SMALL}, ${ATTEMPT_COUNT} AS earlier_count,
      CASE WHEN ${isShown('payload', 'payload')} THEN payload END AS payload,
      CASE WHEN ${isShown('result', 'result')} THEN result END AS result,
      CASE WHEN ${isShown('stack', 'error')} THEN error ELSE ${WITHOUT_STACK} END AS error,
      CASE WHEN ${isShown('attempts', 'earlier_attempts', LARGE_ATTEMPTS)} THEN ${NEWEST_ATTEMPTS}
        ELSE array_to_json(earlier_attempts[cardinality(earlier_attempts):]) END AS earlier_attempts,
      NOT ${isShown('payload', 'payload')} AS without_payload, NOT ${isShown('result', 'result')} AS without_result,
      NOT ${isShown('stack', 'error')} AS without_stack
    FROM (${list}) p OFFSET 0) r`;

/** A portion of the jobs that a search finds; read in the same statement, so that they are as they were found. */
function listing(name: string, index: SearchIndex): Statement {
  const ofPlace = (place: string) => `ANY (ARRAY(SELECT id FROM found WHERE place = '${place}'))`;
  const list = `
    ${LIVE_ARM} WHERE j.tenant = $1 AND j.id = ${ofPlace('live')}
    UNION ALL ${LATER_ARM} WHERE l.tenant = $1 AND l.id = ${ofPlace('later')}
    UNION ALL ${HISTORY_ARM} WHERE h.tenant = $1 AND h.id = ${ofPlace('history')} AND h.finished_at >= $9::bigint`;
  return statement(
    name,
    `
    WITH ${searchParts(index)}
    SELECT t.*, p.reach, p.own AS examined, p.live, p.others, p.few FROM position p LEFT JOIN (
      ${portionOf(listed(list), 'id DESC', { rows: '($5::int - 1)', bytes: `$${BYTES}` })}) t ON true
    ORDER BY t.id DESC`,
  );
}

const LISTS: Readonly<Record<SearchIndex, Statement>> = {
  id: listing('list-jobs', 'id'),
  queue: listing('list-jobs-by-queue', 'queue'),
  failed: listing('list-failed-jobs', 'failed'),
  running: listing('list-running-jobs', 'running'),
  schedule: listing('list-jobs-of-schedule', 'schedule'),
  ids: listing('list-named-jobs', 'ids'),
};

/** Which jobs to list, and what to show of them. */
export interface ListFilter extends JobSearch {
  /** Lists jobs older than this one. */
  readonly after?: string | undefined;
  /** Parts of the jobs that are included even if they are large. */
  readonly include?: readonly JobPart[] | undefined;
}

/** A job in a list, and which parts were left out because they are large. */
export interface ListedRow extends PlacedRow {
  readonly without_payload: boolean;
  readonly without_result: boolean;
  readonly without_stack: boolean;
}

/** A part of a list. */
export interface ListedPortion {
  readonly rows: readonly ListedRow[];
  /** The id below which to go on; null when there are no more. */
  readonly next: string | null;
  /** Whether the part ended because it is full, rather than because enough rows were examined. */
  readonly full: boolean;
  /** How many rows of the tenant were examined, and how many in all; others are no business of the tenant. */
  readonly examined: number;
  readonly examinedInAll: number;
  readonly examinedLive: ExaminedLive;
}

const NOTHING: ListedPortion = {
  ...{ rows: [], next: null, full: false, examined: 0, examinedInAll: 0 },
  examinedLive: { live: 0, others: 0, few: null },
};

/**
 * A portion of the jobs of one tenant; at most `examine` rows of each place are examined, and live ones are found through
 * the queues of the tenant if it says so. To be run with hot plans.
 */
export async function listJobs(
  db: Queryable,
  tenant: string,
  filter: ListFilter,
  size: PortionSize,
  examine: number,
  byQueue = false,
): Promise<ListedPortion> {
  const { after: below = LAST_UUID, include = [] } = filter;
  const prepared = prepareSearch(filter, byQueue);
  if (prepared === null) return NOTHING;
  const { index, from, values } = prepared;
  // One row more than are wanted shows whether there are more.
  const before = [tenant, below, from, examine, size.rows + 1];
  const read = await run<ListedRow & Progress>(db, LISTS[index], [...before, ...values, size.bytes, include]);
  const { reach, examined, live, others, few } = read[0]!;
  const rows = read.filter((row) => row.id !== null);
  const last = rows.at(-1);
  const full = last?.more ?? false;
  return {
    rows: rows.map(toPlacedRow),
    next: full ? last!.id : positionAt(reach ?? null, last?.id, below),
    full,
    examined,
    examinedInAll: Math.max(examined, live),
    examinedLive: { live, others, few },
  };
}

interface Progress extends ExaminedLive, Record<string, unknown> {
  readonly more: boolean;
  readonly reach: string | null;
  readonly examined: number;
}
