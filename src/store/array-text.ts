/**
 * Arrays as Postgres reads them. The driver can write them too, but it treats every value as the worst case; for
 * thousands of rows that is most of what sending them costs.
 */

/** The values of all rows; those that are not quoted must need no quotes: numbers, booleans, UUIDs. */
export function arrayText<Row>(
  rows: readonly Row[],
  of: (row: Row) => string | number | boolean | null,
  isQuoted: boolean,
): string {
  let text = '{';
  for (let i = 0; i < rows.length; i++) {
    const value = of(rows[i]!);
    if (i > 0) text += ',';
    if (value === null) text += 'NULL';
    else text += isQuoted ? quoted(String(value)) : value;
  }
  return `${text}}`;
}

const SPECIAL = /["\\]/;
const EVERY_SPECIAL = /["\\]/g;

function quoted(value: string): string {
  return SPECIAL.test(value) ? `"${value.replace(EVERY_SPECIAL, '\\$&')}"` : `"${value}"`;
}
