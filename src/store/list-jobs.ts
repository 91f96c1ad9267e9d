import { assertNever } from '../core/errors.js';
import type { JobState } from '../core/job.js';
import { type Queryable, run, type Statement } from './database.js';
import { HISTORY_ARM, LATER_ARM, LIVE_ARM, type PlacedRow } from './job-places.js';

/** Listing a tenant's jobs, newest first. Each arm reads at most a page from its index. */

interface Lists {
  readonly all: Statement;
  readonly pending: Statement;
  readonly running: Statement;
  readonly failed: Statement;
  readonly ended: Statement;
}

/** The lists with a further condition on each arm; `state` is the parameter that says how jobs have ended. */
function listsWhere(name: string, condition: (arm: 'j' | 'l' | 'h') => string, state: string): Lists {
  const live = `
    (${LIVE_ARM}
     WHERE j.tenant = $1 AND j.id < $2::uuid AND ($4::text IS NULL OR j.task = $4)
       AND ($5::text IS NULL OR q.name = $5) AND ($6::uuid IS NULL OR c.worker = $6)${condition('j')}`;
  const later = `
    (${LATER_ARM}
     WHERE l.tenant = $1 AND l.id < $2::uuid AND ($4::text IS NULL OR coalesce(l.task, s.raw ->> 'task') = $4)
       AND ($5::text IS NULL OR coalesce(q.name, s.raw ->> 'queue', 'default') = $5) AND $6::uuid IS NULL
       ${condition('l')} ORDER BY l.id DESC LIMIT $3)`;
  const history = `
    (${HISTORY_ARM}
     WHERE h.tenant = $1 AND h.id < $2::uuid AND ($4::text IS NULL OR h.task = $4)
       AND ($5::text IS NULL OR q.name = $5) AND ($6::uuid IS NULL OR h.worker = $6)${condition('h')}`;
  const newestLive = ' ORDER BY j.id DESC LIMIT $3)';
  const newestEnded = ' ORDER BY h.id DESC LIMIT $3)';
  const newest = ' ORDER BY id DESC LIMIT $3';
  const statement = (kind: string, text: string): Statement => ({ name: `list-${kind}jobs${name}`, text });
  return {
    all: statement(
      '',
      `${live}${newestLive} UNION ALL ${later} UNION ALL ${history}${newestEnded} ${newest}`,
    ),
    pending: statement('pending-', `${live} AND c.job IS NULL ${newestLive} UNION ALL ${later} ${newest}`),
    running: statement('running-', `${live} AND c.job IS NOT NULL ${newestLive}`),
    failed: statement('failed-', `${history} AND h.state = 'failed' ${newestEnded}`),
    ended: statement('ended-', `${history} AND h.state = ${state} ${newestEnded}`),
  };
}

const LISTS = listsWhere('', () => '', '$7');
/** Apart from the others, so that the jobs of a schedule are found by their own index. */
const LISTS_OF_SCHEDULE = listsWhere('-of-schedule', (arm) => ` AND ${arm}.schedule = $7`, '$8');

/** Above every UUID that is in use. */
const NEWEST_ID = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

export interface ListFilter {
  readonly state?: JobState | undefined;
  readonly task?: string | undefined;
  readonly queue?: string | undefined;
  readonly worker?: string | undefined;
  /** The name of the schedule that made the jobs. */
  readonly schedule?: string | undefined;
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
    ...(filter.schedule === undefined ? [] : [filter.schedule]),
  ];
  const lists = filter.schedule === undefined ? LISTS : LISTS_OF_SCHEDULE;
  switch (filter.state) {
    case undefined:
      return run(db, lists.all, values);
    case 'pending':
      return run(db, lists.pending, values);
    case 'running':
      return run(db, lists.running, values);
    case 'failed':
      return run(db, lists.failed, values);
    case 'succeeded':
    case 'cancelled':
    case 'skipped':
      return run(db, lists.ended, [...values, filter.state]);
    case 'blocked':
      return Promise.resolve([]);
    default:
      return assertNever(filter.state);
  }
}
