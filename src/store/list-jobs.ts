import { assertNever } from '../core/errors.js';
import type { JobState } from '../core/job.js';
import { type Queryable, run, type Statement } from './database.js';
import { HISTORY_ARM, LATER_ARM, LIVE_ARM, type PlacedRow } from './job-places.js';

/** Listing a tenant's jobs, newest first. Each arm reads at most a page from its index. */

const LIVE = `
  (${LIVE_ARM}
   WHERE j.tenant = $1 AND j.id < $2::uuid AND ($4::text IS NULL OR j.task = $4) AND ($5::text IS NULL OR q.name = $5)
     AND ($6::uuid IS NULL OR c.worker = $6)`;
const LATER = `
  (${LATER_ARM}
   WHERE l.tenant = $1 AND l.id < $2::uuid AND ($4::text IS NULL OR coalesce(l.task, s.raw ->> 'task') = $4)
     AND ($5::text IS NULL OR coalesce(q.name, s.raw ->> 'queue', 'default') = $5) AND $6::uuid IS NULL
   ORDER BY l.id DESC LIMIT $3)`;
const HISTORY = `
  (${HISTORY_ARM}
   WHERE h.tenant = $1 AND h.id < $2::uuid AND ($4::text IS NULL OR h.task = $4) AND ($5::text IS NULL OR q.name = $5)
     AND ($6::uuid IS NULL OR h.worker = $6)`;
const NEWEST_LIVE = ' ORDER BY j.id DESC LIMIT $3)';
const NEWEST_ENDED = ' ORDER BY h.id DESC LIMIT $3)';
const NEWEST = ' ORDER BY id DESC LIMIT $3';

const LIST_ALL: Statement = {
  name: 'list-jobs',
  text: `${LIVE}${NEWEST_LIVE} UNION ALL ${LATER} UNION ALL ${HISTORY}${NEWEST_ENDED} ${NEWEST}`,
};
const LIST_PENDING: Statement = {
  name: 'list-pending-jobs',
  text: `${LIVE} AND c.job IS NULL ${NEWEST_LIVE} UNION ALL ${LATER} ${NEWEST}`,
};
const LIST_RUNNING: Statement = {
  name: 'list-running-jobs',
  text: `${LIVE} AND c.job IS NOT NULL ${NEWEST_LIVE}`,
};
const LIST_FAILED: Statement = {
  name: 'list-failed-jobs',
  text: `${HISTORY} AND h.state = 'failed' ${NEWEST_ENDED}`,
};
const LIST_ENDED: Statement = {
  name: 'list-ended-jobs',
  text: `${HISTORY} AND h.state = $7 ${NEWEST_ENDED}`,
};

/** Above every UUID that is in use. */
const NEWEST_ID = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

export interface ListFilter {
  readonly state?: JobState | undefined;
  readonly task?: string | undefined;
  readonly queue?: string | undefined;
  readonly worker?: string | undefined;
  /** Lists what is older than this job. */
  readonly after?: string | undefined;
  readonly limit: number;
}

/** A page of jobs of one tenant. */
export function listJobs(db: Queryable, tenant: string, filter: ListFilter): Promise<PlacedRow[]> {
  const values: unknown[] = [
    tenant,
    filter.after ?? NEWEST_ID,
    filter.limit,
    filter.task ?? null,
    filter.queue ?? null,
    filter.worker ?? null,
  ];
  switch (filter.state) {
    case undefined:
      return run(db, LIST_ALL, values);
    case 'pending':
      return run(db, LIST_PENDING, values);
    case 'running':
      return run(db, LIST_RUNNING, values);
    case 'failed':
      return run(db, LIST_FAILED, values);
    case 'succeeded':
    case 'cancelled':
    case 'skipped':
      return run(db, LIST_ENDED, [...values, filter.state]);
    case 'blocked':
      return Promise.resolve([]);
    default:
      return assertNever(filter.state);
  }
}
