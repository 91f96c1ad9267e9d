/** The hexadecimal digits of the first and of the second half of a surrogate pair. */
const FIRST_HALF = '[dD][89abAB][0-9a-fA-F]{2}';
const SECOND_HALF = '[dD][c-fC-F][0-9a-fA-F]{2}';

/**
 * The SQL for JSON that Postgres can look into. It stores an escaped NUL, and an escaped half of a surrogate pair without
 * the other half, but no operator reads a value that holds one anywhere; each of them becomes U+FFFD. Nothing else
 * changes, unlike with `punctual.readable`, which also replaces pairs and what follows an escaped backslash.
 *
 * A backslash that is escaped begins no escape, and a pair is no two halves. Both are put aside while the rest is replaced,
 * as control characters, which JSON never contains unescaped. Each step is linear in the text.
 */
export function readableJson(json: string): string {
  const aside = `regexp_replace(
              replace(${json}::text, '\\\\', chr(1)),
              '\\\\u(${FIRST_HALF})\\\\u(${SECOND_HALF})', chr(2) || '\\1' || chr(2) || '\\2', 'g')`;
  return `CASE WHEN strpos(${json}::text, '\\u') = 0 THEN ${json} ELSE
            replace(replace(regexp_replace(${aside},
              '\\\\u(0000|${FIRST_HALF}|${SECOND_HALF})', '\\\\ufffd', 'g'), chr(2), '\\u'), chr(1), '\\\\')::json END`;
}
