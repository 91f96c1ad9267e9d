import { type Queryable, type Row, run, type Statement } from './database.js';

/**
 * Lists are read in portions that are bounded in rows and in bytes: what a row weighs is for its owner to say, and a
 * thousand of the heaviest must not come into the process at once.
 */

/** How much one statement may answer with. There is always at least one row, however heavy. */
export interface PortionSize {
  readonly rows: number;
  readonly bytes: number;
}

/** A part of a list. */
export interface Portion<R> {
  readonly rows: readonly R[];
  /** Whether more follow the last of them. */
  readonly more: boolean;
}

/**
 * A statement that answers with as much of a list as fits. The list has a column `bytes`, and one row more than `rows`,
 * so that it is seen whether there is one.
 */
export function portionOf(list: string, order: string, size: { rows: string; bytes: string }): string {
  return `
    SELECT * FROM (
      SELECT s.*, lead(true, 1, false) OVER in_order AS more, row_number() OVER in_order AS place_in_portion,
        sum(bytes) OVER in_order - bytes AS bytes_before
      FROM (${list}) s WINDOW in_order AS (ORDER BY ${order})) t
    WHERE place_in_portion <= ${size.rows}::int AND bytes_before < ${size.bytes}::bigint ORDER BY ${order}`;
}

/** Runs a statement that was made by `portionOf`. */
export async function readPortion<R extends Row>(
  db: Queryable,
  statement: Statement,
  values: unknown[],
): Promise<Portion<R>> {
  const rows = await run<R & { readonly more: boolean }>(db, statement, values);
  return { rows, more: rows.at(-1)?.more ?? false };
}

/** The SQL for what a value weighs. */
export const bytesOf = (value: string): string => `coalesce(octet_length(${value}::text), 0)`;

/**
 * The SQL for whether a value is small. One whose stored form is large is large when it is unpacked, too, and is not
 * unpacked to find out; the few bytes more are its header.
 */
export const isSmall = (value: string, bytes: number): string =>
  `pg_column_size(${value}) <= ${bytes + 8} AND octet_length(${value}::text) <= ${bytes}`;

/** Larger parts of what a list shows are left out of it unless they are asked for, in bytes. */
export const LARGE = 2_048;
