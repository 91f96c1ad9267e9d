/**
 * Arrays as Postgres reads them. The driver can write them too, but it treats every value as the worst case; for
 * thousands of rows that is most of what sending them costs.
 */

/** Values that need no quotes: numbers, booleans, UUIDs. */
export function plainArray(values: readonly (string | number | boolean | null)[]): string {
  return `{${values.map((value) => value ?? 'NULL').join(',')}}`;
}

/** Texts, whatever is in them. */
export function textArray(values: readonly (string | null)[]): string {
  // JSON puts the same texts into the same quotes, much faster, but for what it writes as letters behind a backslash.
  if (values.every((value) => value === null || !WRITTEN_OTHERWISE.test(value)))
    return `{${JSON.stringify(values).slice(1, -1)}}`;
  return `{${values.map(quoted).join(',')}}`;
}

/** Control characters, and halves of surrogate pairs (or whole ones, which are not worth telling apart). */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are among what is looked for.
const WRITTEN_OTHERWISE = /[\0-\x1f\ud800-\udfff]/;
const SPECIAL = /["\\]/g;

function quoted(value: string | null): string {
  return value === null ? 'NULL' : `"${value.replace(SPECIAL, '\\$&')}"`;
}
