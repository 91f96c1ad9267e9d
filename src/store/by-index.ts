/**
 * Conditions that only an index can serve.
 *
 * A vacuum that finds a table empty, as between two bursts, leaves it on record as empty, and the planner then rather
 * reads "all" of it than look anything up: for each of a thousand jobs, when the next burst comes. An equality lets it
 * walk the whole index in order as if for a merge; a range of one value does not. (`id = ANY(ids)` needs no such care:
 * nothing is joined. The tests of the plans look at both.)
 */

/** The rows whose column, which has an index, has the value. */
export function byIndex(column: string, value: string): string {
  return `${column} BETWEEN ${value} AND ${value}`;
}

/** That job `j` is not running; a look-up for each job, never a look at all claims. */
export const NOT_CLAIMED = '(SELECT true FROM punctual.claims c WHERE c.job = j.id) IS NULL';
