import { byIndex, NOT_CLAIMED } from './batch-statement.js';
import { parametersOf } from './columns.js';
import type { Queryable } from './database.js';
import { type ColumnOf, insertMoved } from './job-columns.js';
import {
  type LeaderStatement,
  leaderStatement,
  runAsLeader,
  type TermKey,
  WHILE_TERM_LASTS,
} from './leader-statement.js';
import { admitJobs, PARSED_COLUMNS, type Parsed, unchanged } from './place-jobs.js';

/** Giving jobs that have not started what another submission with their key says. */

const PARSED = PARSED_COLUMNS.inSql(4);
const NEW_VALUES = PARSED_COLUMNS.names.split(', ') as ColumnOf<'later'>[];

/** Gives waiting jobs of `later` other values; they stay there, also if they are due. */
const REPLACE_LATER = leaderStatement(
  'replace-later',
  `answer AS (
    UPDATE punctual.later l SET (${PARSED_COLUMNS.names}) = ROW(${PARSED.all})
    FROM ${PARSED.source}
    WHERE ${byIndex('l.id', 'u.id')} AND l.submission IS NULL AND l.attempts = 0 AND ${WHILE_TERM_LASTS}
    RETURNING l.id
  )`,
);

/** Gives live jobs that have not started other values and moves them to `later`, also if they are due. */
const REPLACE_LIVE = leaderStatement(
  'replace-live',
  `gone AS (
    DELETE FROM punctual.jobs j USING ${PARSED.source}
    WHERE ${byIndex('j.id', 'u.id')} AND j.attempts = 0 AND ${NOT_CLAIMED} AND ${WHILE_TERM_LASTS}
    RETURNING j.*, ${NEW_VALUES.map((name) => `${PARSED.of(name)} AS new_${name}`).join(', ')}
  ), answer AS (
    ${insertMoved({
      from: 'jobs',
      to: 'later',
      rows: 'gone',
      set: Object.fromEntries(NEW_VALUES.map((name) => [name, `m.new_${name}`])),
    })}
    RETURNING id
  )`,
);

/** A job that is in another table than before. */
export interface MovedJob {
  readonly tenant: string;
  readonly isLive: boolean;
}

/**
 * Gives jobs that have not started other values, under their own ids, and moves those to the live table that belong
 * there; answers with those that were elsewhere before. Throws if one was not waiting: the caller holds their turns, so that
 * means that memory is wrong.
 */
export async function replaceJobs(
  db: Queryable,
  term: TermKey,
  jobs: readonly (Omit<Parsed, 'admitAt'> & { readonly admitAt: number | null })[],
  now: number,
): Promise<readonly MovedJob[]> {
  const all = jobs.map((job) => ({ ...job, admitAt: job.admitAt ?? now }));
  const replace = async (statement: LeaderStatement, some: readonly Parsed[]) => {
    const parameters = await parametersOf(PARSED_COLUMNS, some);
    const rows = await runAsLeader<{ id: string }>(db, term, statement, parameters);
    const replaced = new Set(rows.map(({ id }) => id));
    return some.filter(({ row }) => !replaced.has(row.id));
  };
  // In this order, because a job that was live is in `later` afterwards.
  const rest = await replace(REPLACE_LATER, all);
  const missed = rest.length === 0 ? [] : await replace(REPLACE_LIVE, rest);
  if (missed.length > 0) throw new Error('a job to be replaced was not waiting');
  const isDue = (job: (typeof jobs)[number]) => job.admitAt === null && !job.held;
  const due = jobs.filter(isDue).map(({ row }) => unchanged(row.id));
  if (due.length > 0) await admitJobs(db, term, due);
  const wereLive = new Set(rest.map(({ row }) => row.id));
  return jobs
    .filter((job) => isDue(job) !== wereLive.has(job.row.id))
    .map((job) => ({ tenant: job.row.definition.tenant, isLive: isDue(job) }));
}
