import { assertNever } from '../core/errors.js';
import type { JobPart, JobState } from '../core/job.js';
import { FIRST_UUID, LAST_UUID } from '../core/uuid.js';
import { type Queryable, type Statement, statement } from './database.js';
import { hasErrorCode } from './find-jobs.js';
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
  bytesOf,
  isSmall,
  LARGE,
  type Portion,
  type PortionSize,
  portionOf,
  readPortion,
} from './portion.js';

/**
 * Listing a tenant's jobs, newest first. Each arm reads at most a portion from its index. Large values stay in the
 * database unless they are requested, and then no more is read than fits into the portion.
 */

/** If the attempts of a job have more bytes than this, lists show only the newest. */
const LARGE_ATTEMPTS = 8_192;
/** About how many bytes the small columns of a job have. */
const SMALL_BYTES = 1_024;

const isAskedFor = (part: JobPart) => `'${part}' = ANY ($8::text[])`;

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

interface Lists {
  readonly all: Statement;
  readonly pending: Statement;
  readonly running: Statement;
  readonly failed: Statement;
  readonly ended: Statement;
}

/** The lists with a further condition on each arm; `state` is the parameter for the state of ended jobs. */
function listsWhere(name: string, condition: (arm: 'j' | 'l' | 'h') => string, state: string): Lists {
  const live = `
    (${LIVE_ARM}
     WHERE j.tenant = $1 AND j.id < $2::uuid AND ($4::text IS NULL OR j.task = $4)
       AND ($5::text IS NULL OR q.name = $5) AND ($6::uuid IS NULL OR c.worker = $6)
       AND j.id >= $9::uuid AND $10::text IS NULL${condition('j')}`;
  const later = `
    (${LATER_ARM}
     WHERE l.tenant = $1 AND l.id < $2::uuid AND ($4::text IS NULL OR coalesce(l.task, s.raw ->> 'task') = $4)
       AND ($5::text IS NULL OR coalesce(q.name, s.raw ->> 'queue', 'default') = $5) AND $6::uuid IS NULL
       AND l.id >= $9::uuid AND $10::text IS NULL${condition('l')} ORDER BY l.id DESC LIMIT $3::int + 1)`;
  const history = `
    (${HISTORY_ARM}
     WHERE h.tenant = $1 AND h.id < $2::uuid AND ($4::text IS NULL OR h.task = $4)
       AND ($5::text IS NULL OR q.name = $5) AND ($6::uuid IS NULL OR h.worker = $6)
       AND h.id >= $9::uuid AND ($10::text IS NULL OR ${hasErrorCode('h.error', '$10')})${condition('h')}`;
  const newestLive = ' ORDER BY j.id DESC LIMIT $3::int + 1)';
  const newestEnded = ' ORDER BY h.id DESC LIMIT $3::int + 1)';
  const newest = ' ORDER BY id DESC LIMIT $3::int + 1';
  const listing = (kind: string, list: string) =>
    statement(`list-${kind}jobs${name}`, portionOf(listed(list), 'id DESC', { rows: '$3', bytes: '$7' }));
  return {
    all: listing('', `${live}${newestLive} UNION ALL ${later} UNION ALL ${history}${newestEnded} ${newest}`),
    pending: listing('pending-', `${live} AND c.job IS NULL ${newestLive} UNION ALL ${later} ${newest}`),
    running: listing('running-', `${live} AND c.job IS NOT NULL ${newestLive}`),
    failed: listing('failed-', `${history} AND h.state = 'failed' ${newestEnded}`),
    ended: listing('ended-', `${history} AND h.state = ${state} ${newestEnded}`),
  };
}

const LISTS = listsWhere('', () => '', '$11');
/** Separate statements, so that the jobs of a schedule are found by their own index. */
const LISTS_OF_SCHEDULE = listsWhere('-of-schedule', (arm) => ` AND ${arm}.schedule = $11`, '$12');

/** Which jobs to list, and what to show of them. */
export interface ListFilter {
  readonly state?: JobState | undefined;
  readonly task?: string | undefined;
  readonly queue?: string | undefined;
  readonly worker?: string | undefined;
  /** The name of the schedule that made the jobs. */
  readonly schedule?: string | undefined;
  /** The code of the error with which a job ended. */
  readonly errorCode?: string | undefined;
  /** The lowest id. */
  readonly from?: string | undefined;
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

/** A portion of the jobs of one tenant. */
export async function listJobs(
  db: Queryable,
  tenant: string,
  filter: ListFilter,
  size: PortionSize,
): Promise<Portion<ListedRow>> {
  const chosen = statementOf(filter);
  if (chosen === null) return { rows: [], more: false };
  const values: unknown[] = [
    tenant,
    filter.after ?? LAST_UUID,
    size.rows,
    filter.task ?? null,
    filter.queue ?? null,
    filter.worker ?? null,
    size.bytes,
    filter.include ?? [],
    filter.from ?? FIRST_UUID,
    filter.errorCode ?? null,
    ...(filter.schedule === undefined ? [] : [filter.schedule]),
    ...(chosen.byState ? [filter.state] : []),
  ];
  const { rows, more } = await readPortion<ListedRow>(db, chosen.list, values);
  return { rows: rows.map(toPlacedRow), more };
}

function statementOf(filter: ListFilter): { readonly list: Statement; readonly byState?: true } | null {
  const lists = filter.schedule === undefined ? LISTS : LISTS_OF_SCHEDULE;
  switch (filter.state) {
    case undefined:
      return { list: lists.all };
    case 'pending':
      return { list: lists.pending };
    case 'running':
      return { list: lists.running };
    case 'failed':
      return { list: lists.failed };
    case 'succeeded':
    case 'cancelled':
    case 'skipped':
      return { list: lists.ended, byState: true };
    case 'blocked':
      return null;
    default:
      return assertNever(filter.state);
  }
}
