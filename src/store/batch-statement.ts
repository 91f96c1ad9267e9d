/** Parts of statements over many rows: look-ups by index, the order of locks, and which rows were changed. */

/**
 * The condition that a column, which has an index, has the value; written so that the planner can only look it up.
 *
 * A vacuum that finds a table empty, as between two bursts, records it as empty, and the planner then prefers to read
 * all of it: once for each of a thousand jobs when the next burst comes. With an equality it may scan the whole index
 * in order, as for a merge join; with a range of one value it cannot. (`id = ANY(ids)` needs no such care, because
 * nothing is joined. The tests of the plans check both.)
 */
export function byIndex(column: string, value: string): string {
  return `${column} BETWEEN ${value} AND ${value}`;
}

/** The condition that job `j` is not running: one look-up per job, never a scan of all claims. */
export const NOT_CLAIMED = '(SELECT true FROM punctual.claims c WHERE c.job = j.id) IS NULL';

/**
 * The condition that the workflow of job `j`, if it is a step of one, is not on hold. A job outside of workflows pays for one
 * look at a column; it is no EXISTS, which the planner might answer by reading all workflows.
 */
export const NOT_HELD =
  '(j.workflow IS NULL OR (SELECT w.held FROM punctual.workflows w WHERE w.id = j.workflow) IS NOT TRUE)';

/**
 * The order in which statements lock claims. Because all of them use the same order, two such statements may wait for
 * each other but never deadlock.
 */
export function inClaimOrder<T extends { readonly id: string }>(items: readonly T[]): T[] {
  // Jobs that were stored together mostly come in this order.
  if (isInClaimOrder(items)) return [...items];
  return [...items].sort((a, b) => (a.id < b.id ? -1 : a.id > b.id ? 1 : 0));
}

function isInClaimOrder(items: readonly { readonly id: string }[]): boolean {
  for (let i = 1; i < items.length; i++) if (items[i]!.id < items[i - 1]!.id) return false;
  return true;
}

/**
 * The answer of a statement over many jobs: how many it changed, and which ones only if it did not change them all. In
 * the usual case one number is sent and parsed instead of a thousand ids.
 */
export interface Changed extends Record<string, unknown> {
  readonly changed: number;
  readonly ids: readonly string[] | null;
}

/**
 * The SQL of that answer for the rows of `part`, of which there should be `expected`, and of what else it returns. The ids
 * are a query of their own, because an aggregate would collect them even when they are not asked for.
 */
export function changedRows(part: string, id: string, expected: string, also?: string): string {
  const ids = `CASE WHEN count(*) < ${expected} THEN ARRAY(SELECT ${id} FROM ${part}) END AS ids`;
  return `SELECT count(*) AS changed, ${ids}${also ? `, ${also}` : ''} FROM ${part}`;
}

/** The jobs that a statement should have changed and did not. */
export function refusedOf(
  asked: readonly { readonly id: string }[],
  answer: Changed | undefined,
): ReadonlySet<string> {
  if (answer?.changed === asked.length) return NONE;
  const done = new Set(answer?.ids);
  return new Set(asked.map(({ id }) => id).filter((id) => !done.has(id)));
}

const NONE: ReadonlySet<string> = new Set();
