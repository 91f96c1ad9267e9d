import { type Queryable, run, statement } from './database.js';

/** How many jobs wait outside the live table, and as what. The newest are looked at, so that no count takes long. */

/** Jobs that are looked at. */
const MOST_LOOKED_AT = 10_000;

const count = (jobs: string) => `
    SELECT count(*) AS jobs, count(*) FILTER (WHERE l.blocked) AS blocked, count(*) FILTER (WHERE l.held AND NOT l.blocked) AS held
    FROM (SELECT l.held, l.blocked FROM punctual.later l ${jobs} ORDER BY l.id DESC LIMIT ${MOST_LOOKED_AT} + 1) l`;

const COUNT_LATER_OF_TENANT = statement('count-later-of-tenant', count('WHERE l.tenant = $1'));
const COUNT_ALL_LATER = statement('count-all-later', count(''));

/** Jobs outside the live table. */
export interface LaterCounts {
  /** Jobs on hold. */
  readonly held: number;
  /** Steps that wait for others, for an event or a time, and members of batches that wait. */
  readonly blocked: number;
  /** Jobs that are not due for long. */
  readonly notDue: number;
  /** Whether these are all. */
  readonly complete: boolean;
}

interface CountRow extends Record<string, unknown> {
  readonly jobs: number;
  readonly blocked: number;
  readonly held: number;
}

/** Counts the jobs of a tenant, or of all, that wait outside the live table. */
export async function countWaitingLater(db: Queryable, tenant: string | null): Promise<LaterCounts> {
  const [row] =
    tenant === null
      ? await run<CountRow>(db, COUNT_ALL_LATER, [])
      : await run<CountRow>(db, COUNT_LATER_OF_TENANT, [tenant]);
  const [jobs, blocked, held] = [Number(row!.jobs), Number(row!.blocked), Number(row!.held)];
  return { held, blocked, notDue: jobs - blocked - held, complete: jobs <= MOST_LOOKED_AT };
}
