import { greatest } from '../core/long-lists.js';
import { COUNTERS, type Counter } from '../core/wire.js';
import { type Queryable, run, statement } from './database.js';
import { leaderStatement, runAsLeader, type TermKey, WHILE_TERM_LASTS } from './leader-statement.js';

/**
 * Statistics that survive crashes: counts are appended in the transactions they count, and folded here by the minute.
 */

const column = (counter: Counter) => counter.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
const COLUMNS = COUNTERS.map(column);
/** Everything that is added up by `sum`. */
const SUMMED = [...COLUMNS, 'lateness_ms'];
/** Null where nothing was counted. */
const SUMS = SUMMED.map((name) => `coalesce(sum(${name}), 0)::bigint AS ${name}`).join(', ');
const NO_HISTOGRAM = `'{}'::bigint[]`;

/** Adds the new counts to those of a conflicting row. */
const addTo = (table: string) =>
  [
    ...SUMMED.map((name) => `${name} = ${table}.${name} + excluded.${name}`),
    `lateness = punctual.add_histograms(${table}.lateness, excluded.lateness)`,
  ].join(', ');

/** Rows that one statement folds or deletes: a leader's statements must be short, whatever the backlog. */
const ROWS_PER_STEP = 5_000;

const FOLD = leaderStatement(
  'fold-tallies',
  `folded AS (
    DELETE FROM punctual.tallies t WHERE t.ctid = ANY (ARRAY(
      SELECT s.ctid FROM punctual.tallies s WHERE s.at < $4::bigint AND ${WHILE_TERM_LASTS} LIMIT $5::int))
    RETURNING t.*
  ), minutes AS (
    INSERT INTO punctual.tally_minutes AS m (minute, tenant, ${SUMMED.join(', ')}, lateness)
    SELECT (at / 60000) * 60000, tenant, ${SUMS}, coalesce(punctual.sum_histograms(lateness), ${NO_HISTOGRAM})
    FROM folded GROUP BY 1, 2
    ON CONFLICT (minute, tenant) DO UPDATE SET ${addTo('m')}
  ), totals AS (
    INSERT INTO punctual.tally_totals AS m (tenant, ${SUMMED.join(', ')}, lateness)
    SELECT tenant, ${SUMS}, coalesce(punctual.sum_histograms(lateness), ${NO_HISTOGRAM})
    FROM folded GROUP BY 1
    ON CONFLICT (tenant) DO UPDATE SET ${addTo('m')}
  ), answer AS (SELECT count(*) AS folded FROM folded)`,
);

const ADD_STALE = leaderStatement(
  'add-stale',
  `answer AS (
    INSERT INTO punctual.tallies (at, tenant, stale_completions, stale_failures)
    SELECT $7::bigint, u.tenant, u.completions, u.failures
    FROM unnest($4::text[], $5::bigint[], $6::bigint[]) u(tenant, completions, failures)
    WHERE ${WHILE_TERM_LASTS}
    RETURNING at
  )`,
);

const SOURCE = `tenant, ${SUMMED.join(', ')}, lateness`;

const TOTALS = statement(
  'tally-totals',
  `
    SELECT ${SUMS}, coalesce(punctual.sum_histograms(lateness), ${NO_HISTOGRAM}) AS lateness
    FROM (SELECT ${SOURCE} FROM punctual.tally_totals UNION ALL SELECT ${SOURCE} FROM punctual.tallies) t
    WHERE $1::text IS NULL OR tenant = $1`,
);

const HISTORY = statement(
  'tally-history',
  `
    SELECT minute, ${SUMS}, coalesce(punctual.sum_histograms(lateness), ${NO_HISTOGRAM}) AS lateness
    FROM (
      SELECT minute, ${SOURCE} FROM punctual.tally_minutes WHERE minute >= $2::bigint AND minute < $3::bigint
      UNION ALL SELECT (at / 60000) * 60000, ${SOURCE} FROM punctual.tallies
      WHERE at >= $2::bigint AND at < $3::bigint
    ) t
    WHERE $1::text IS NULL OR tenant = $1
    GROUP BY minute ORDER BY minute`,
);

/** The counts of a minute, or of all time. */
export type Tally = Record<Counter, number> & {
  readonly lateness: readonly number[];
  readonly latenessMs: number;
};

/** What was counted in one minute. */
export type MinuteTally = Tally & { readonly minute: number };

/** Adds up what several databases have counted. */
export function sumTallies(tallies: readonly Tally[]): Tally {
  const sum = (count: (tally: Tally) => number) => tallies.reduce((total, tally) => total + count(tally), 0);
  const counts = Object.fromEntries(COUNTERS.map((counter) => [counter, sum((tally) => tally[counter])]));
  const buckets = greatest(tallies.map(({ lateness }) => lateness.length));
  const lateness = Array.from({ length: buckets }, (_, i) => sum((tally) => tally.lateness[i] ?? 0));
  return { ...(counts as Record<Counter, number>), lateness, latenessMs: sum((tally) => tally.latenessMs) };
}

function toTally(row: Record<string, unknown>): Tally {
  const counts = Object.fromEntries(COUNTERS.map((counter) => [counter, Number(row[column(counter)] ?? 0)]));
  const lateness = (row.lateness as (string | number)[]).map(Number);
  return { ...counts, lateness, latenessMs: Number(row.lateness_ms ?? 0) } as unknown as Tally;
}

/** Folds some of the counts before the moment into minutes and totals; answers whether there may be more. */
export async function foldTallies(db: Queryable, term: TermKey, before: number): Promise<boolean> {
  const rows = await runAsLeader<{ folded: number }>(db, term, FOLD, [before, ROWS_PER_STEP]);
  return rows[0]!.folded === ROWS_PER_STEP;
}

/** Counts reports that were refused because their fence was old. */
export async function addStale(
  db: Queryable,
  term: TermKey,
  stale: readonly { tenant: string; completions: number; failures: number }[],
  now: number,
): Promise<void> {
  await runAsLeader(db, term, ADD_STALE, [
    stale.map((each) => each.tenant),
    stale.map((each) => each.completions),
    stale.map((each) => each.failures),
    now,
  ]);
}

/** The counts of all time, of one tenant or of all. */
export async function readTotals(db: Queryable, tenant: string | null): Promise<Tally> {
  const rows = await run(db, TOTALS, [tenant]);
  return toTally(rows[0]!);
}

/** Minutes between two moments, oldest first. */
export async function readMinutes(
  db: Queryable,
  tenant: string | null,
  from: number,
  to: number,
): Promise<MinuteTally[]> {
  const rows = await run(db, HISTORY, [tenant, from, to]);
  return rows.map((row) => ({ ...toTally(row), minute: Number(row.minute) }));
}
