/**
 * Array literals of Postgres. The driver can write them too, but it quotes and escapes every value, which for thousands
 * of rows is most of the cost of sending them.
 */

/** An array of arbitrary texts. */
export function textArray(values: readonly (string | null)[]): string {
  // JSON quotes most texts exactly as Postgres does, and much faster; the exceptions are those that it writes as \n or \u.
  if (values.every((value) => value === null || !WRITTEN_OTHERWISE.test(value)))
    return `{${JSON.stringify(values).slice(1, -1)}}`;
  return `{${values.map(quoted).join(',')}}`;
}

/** Control characters and surrogates. JSON escapes only lone surrogates, but telling them apart is not worth it. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are among what is looked for.
const WRITTEN_OTHERWISE = /[\0-\x1f\ud800-\udfff]/;
const SPECIAL = /["\\]/g;

function quoted(value: string | null): string {
  return value === null ? 'NULL' : `"${value.replace(SPECIAL, '\\$&')}"`;
}
