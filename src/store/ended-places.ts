import { type ColumnOf, columnsOf, select } from './job-columns.js';

/**
 * Ended jobs are in two tables: the days of history, and what is kept of days that were removed because its workflow or
 * batch still needs it. Whoever reads by id reads both in one statement, so that a job on its way from one to the other is
 * found in exactly one. Jobs that are neither steps nor members are never kept, and only such jobs have keys.
 */
const TABLES = ['job_history', 'job_history_kept'] as const;
type Ended = (typeof TABLES)[number];

const COLUMNS = columnsOf('job_history').map(({ name }) => name);

/** Both tables as one, for FROM. The planner takes it apart and reads each by its own index. */
export function allEnded(alias: string): string {
  const arms = TABLES.map((table) => `SELECT ${select('e', COLUMNS)} FROM punctual.${table} e`);
  return `(${arms.join(' UNION ALL ')}) ${alias}`;
}

/** The parts of a WITH that lock rows of either table; the part `locked` has the ids of all. */
export function lockedInHistory(rowsOf: (table: Ended) => string): string {
  const parts = TABLES.map(
    (table) => `locked_in_${table} AS MATERIALIZED (
    ${rowsOf(table)}
  )`,
  );
  const all = TABLES.map((table) => `SELECT id FROM locked_in_${table}`).join(' UNION ALL ');
  return `${parts.join(', ')}, locked AS MATERIALIZED (${all})`;
}

/** The parts of a WITH that delete rows `h` from both tables; the part `name` has them all, and what else they return. */
export function takenFromHistory(
  name: string,
  deletion: (table: Ended) => string,
  also: string | null = null,
  columns: readonly ColumnOf<'job_history'>[] = COLUMNS,
): string {
  const parts = TABLES.map(
    (table) => `${name}_from_${table} AS (
    ${deletion(table)}
    RETURNING ${select('h', columns)}${also === null ? '' : `, ${also}`}
  )`,
  );
  const all = TABLES.map((table) => `SELECT * FROM ${name}_from_${table}`).join(' UNION ALL ');
  return `${parts.join(', ')}, ${name} AS (${all})`;
}
