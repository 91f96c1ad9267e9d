/**
 * Arrays as Postgres reads them. The driver can write them too, but it treats every value as the worst case; for
 * thousands of rows of twenty columns that is most of what sending them costs.
 */

/** Values that need no quotes: numbers, booleans, UUIDs. */
export function plainArray(values: readonly (string | number | boolean | null)[]): string {
  let text = '{';
  for (let i = 0; i < values.length; i++) text += `${i === 0 ? '' : ','}${values[i] ?? 'NULL'}`;
  return `${text}}`;
}

const SPECIAL = /["\\]/;
const EVERY_SPECIAL = /["\\]/g;

/** Texts, whatever is in them. */
export function textArray(values: readonly (string | null)[]): string {
  let text = '{';
  for (let i = 0; i < values.length; i++) {
    const value = values[i] ?? null;
    if (i > 0) text += ',';
    if (value === null) text += 'NULL';
    else if (SPECIAL.test(value)) text += `"${value.replace(EVERY_SPECIAL, '\\$&')}"`;
    else text += `"${value}"`;
  }
  return `${text}}`;
}
