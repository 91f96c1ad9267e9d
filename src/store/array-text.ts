/**
 * Arrays as Postgres reads them. The driver can write them too, but it treats every value as the worst case; for
 * thousands of rows of twenty columns that is most of what sending them costs.
 */

/** Values that need no quotes: numbers, booleans, UUIDs. */
export function plainArray(values: readonly (string | number | boolean | null)[]): string {
  if (isUniform(values)) return repeated(String(values[0] ?? 'NULL'), values.length);
  let text = '{';
  for (let i = 0; i < values.length; i++) text += `${i === 0 ? '' : ','}${values[i] ?? 'NULL'}`;
  return `${text}}`;
}

const SPECIAL = /["\\]/;
const EVERY_SPECIAL = /["\\]/g;

/** Texts, whatever is in them. */
export function textArray(values: readonly (string | null)[]): string {
  if (isUniform(values)) return repeated(quoted(values[0] ?? null), values.length);
  let text = '{';
  for (let i = 0; i < values.length; i++) text += (i === 0 ? '' : ',') + quoted(values[i] ?? null);
  return `${text}}`;
}

function quoted(value: string | null): string {
  if (value === null) return 'NULL';
  return SPECIAL.test(value) ? `"${value.replace(EVERY_SPECIAL, '\\$&')}"` : `"${value}"`;
}

/** Most columns of a bulk hold the same value in every row. */
function isUniform(values: readonly unknown[]): boolean {
  if (values.length === 0) return false;
  for (let i = 1; i < values.length; i++) if (values[i] !== values[0]) return false;
  return true;
}

function repeated(text: string, times: number): string {
  return `{${`${text},`.repeat(times - 1)}${text}}`;
}
