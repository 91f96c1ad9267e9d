const HEX = '[0-9a-fA-F]';
/** The digits of the escapes of the first and of the second half of a surrogate pair. */
const FIRST_HALF = `[dD][89abAB]${HEX}{2}`;
const SECOND_HALF = `[dD][c-fC-F]${HEX}{2}`;
/** The digits of every escape that means a character by itself, but for NUL. */
const WHOLE = `[1-9a-cA-CeEfF]${HEX}{3}|[dD][0-7]${HEX}{2}|0[1-9a-fA-F]${HEX}{2}|00[1-9a-fA-F]${HEX}|000[1-9a-fA-F]`;

/** A text of JSON that Postgres can look into. Anchored, and without a choice that matters, it is one pass over the text. */
const READABLE = `^(?:[^\\\\]|\\\\[^u]|\\\\u(?:${WHOLE}|${FIRST_HALF}\\\\u${SECOND_HALF}))*$`;

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
  return `CASE WHEN strpos(${json}::text, '\\u') = 0 OR ${json}::text ~ '${READABLE}' THEN ${json} ELSE
            replace(replace(regexp_replace(${aside},
              '\\\\u(0000|${FIRST_HALF}|${SECOND_HALF})', '\\\\ufffd', 'g'), chr(2), '\\u'), chr(1), '\\\\')::json END`;
}
