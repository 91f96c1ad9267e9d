import type { JobPart } from '../core/job.js';
import { LAST_UUID } from '../core/uuid.js';
import { type Queryable, statement } from './database.js';
import { earliestEndOf, type FoundJob, searchJobs } from './find-jobs.js';
import { UNBOUNDED_COLUMNS } from './job-columns.js';
import {
  ATTEMPT_COUNT,
  HISTORY_ARM,
  LATER_ARM,
  LIVE_ARM,
  NEWEST_ATTEMPTS,
  type PlacedRow,
  SMALL,
  STEP_COLUMNS_OF_JOB,
  STEP_OF_JOB,
  toPlacedRow,
} from './job-places.js';
import type { ExaminedLive, JobSearch } from './job-search.js';
import {
  bytesOf,
  isSmall,
  LARGE,
  type Portion,
  type PortionSize,
  portionOf,
  readPortion,
} from './portion.js';
import type { TenantReads } from './tenant-reads.js';

/**
 * Listing a tenant's jobs, newest first: a search finds them, and a second statement in the same snapshot reads what is
 * shown of them, behind row-level security. Large values stay in the database unless they are requested, and then no more
 * is read than fits into the portion.
 */

/** The parameter with the parts that are requested. */
const INCLUDED = 8;

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
    SELECT ${SMALL}, ${ATTEMPT_COUNT} AS earlier_count, ${STEP_COLUMNS_OF_JOB},
      CASE WHEN ${isShown('payload', 'payload')} THEN payload END AS payload,
      CASE WHEN ${isShown('result', 'result')} THEN result END AS result,
      CASE WHEN ${isShown('stack', 'error')} THEN error ELSE ${WITHOUT_STACK} END AS error,
      CASE WHEN ${isShown('attempts', 'earlier_attempts', LARGE_ATTEMPTS)} THEN ${NEWEST_ATTEMPTS}
        ELSE array_to_json(earlier_attempts[cardinality(earlier_attempts):]) END AS earlier_attempts,
      CASE WHEN ${isShown('attempts', 'execution', LARGE_ATTEMPTS)} THEN execution END AS execution,
      NOT ${isShown('attempts', 'execution', LARGE_ATTEMPTS)} AS without_execution,
      NOT ${isShown('payload', 'payload')} AS without_payload, NOT ${isShown('result', 'result')} AS without_result,
      NOT ${isShown('stack', 'error')} AS without_stack
    FROM (${list}) p ${STEP_OF_JOB} OFFSET 0) r`;

/** A portion of jobs by the places in which a search has found them: $2 to $4. */
const LIST_FOUND = statement(
  'list-found-jobs',
  portionOf(
    listed(`
    ${LIVE_ARM} WHERE j.tenant = $1 AND j.id = ANY ($2::uuid[])
    UNION ALL ${LATER_ARM} WHERE l.tenant = $1 AND l.id = ANY ($3::uuid[])
    UNION ALL ${HISTORY_ARM} WHERE h.tenant = $1 AND h.id = ANY ($4::uuid[]) AND h.finished_at >= $5::bigint`),
    'id DESC',
    { rows: '$6', bytes: '$7' },
  ),
);

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
  readonly without_execution: boolean;
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

/**
 * A portion of the jobs of one tenant; at most `examine` rows of each place are examined, and live ones are found through
 * the queues of the tenant if `byQueue` says so.
 */
export function listJobs(
  reads: TenantReads,
  tenant: string,
  filter: ListFilter,
  size: PortionSize,
  examine: number,
  byQueue = false,
): Promise<ListedPortion> {
  const { after: below = LAST_UUID, include = [] } = filter;
  return reads.readFound(
    tenant,
    // One row more than are wanted shows whether there are more.
    (db) => searchJobs(db, tenant, filter, below, size.rows + 1, examine, byQueue),
    async (db, { jobs, next, ...progress }) => {
      const { rows, more } = await listFound(db, tenant, jobs, size, include);
      return { ...progress, rows, next: more ? rows.at(-1)!.id : next, full: more };
    },
  );
}

/** Those of the jobs that fit into a portion. To be run with hot plans, in the snapshot in which they were found. */
export async function listFound(
  db: Queryable,
  tenant: string,
  jobs: readonly Pick<FoundJob, 'id' | 'place'>[],
  size: PortionSize,
  include: readonly JobPart[],
): Promise<Portion<ListedRow>> {
  if (jobs.length === 0) return { rows: [], more: false };
  const idsIn = (place: FoundJob['place']) => jobs.flatMap((job) => (job.place === place ? [job.id] : []));
  const ended = idsIn('history');
  const values = [
    tenant,
    idsIn('live'),
    idsIn('later'),
    ended,
    earliestEndOf(ended),
    size.rows,
    size.bytes,
    include,
  ];
  const { rows, more } = await readPortion<ListedRow>(db, LIST_FOUND, values);
  return { rows: rows.map((row) => toPlacedRow(tenant, row)), more };
}
