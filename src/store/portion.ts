import { type Queryable, type Row, run, type Statement } from './database.js';

/**
 * Lists are read in portions that are bounded in rows and in bytes: users decide how large a row is, and a thousand of
 * the largest must not be in memory at once.
 */

/** The most that one statement may answer with. There is always at least one row, however large. */
export interface PortionSize {
  readonly rows: number;
  readonly bytes: number;
}

/** A part of a list. */
export interface Portion<R> {
  readonly rows: readonly R[];
  /** Whether more rows follow. */
  readonly more: boolean;
}

/**
 * A statement that answers with as much of a list as fits. The list must have a column `bytes`, and a limit of one row
 * more than `rows`, which shows whether more follow.
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

/** The SQL for the bytes of a value. */
export const bytesOf = (value: string): string => `coalesce(octet_length(${value}::text), 0)`;

/**
 * The SQL for whether a value is small. A value whose compressed form is large is not decompressed to find out; the 8
 * bytes more are its header.
 */
export const isSmall = (value: string, bytes: number): string =>
  `pg_column_size(${value}) <= ${bytes + 8} AND octet_length(${value}::text) <= ${bytes}`;

/** Parts with more bytes are left out of lists unless they are requested. */
export const LARGE = 2_048;
