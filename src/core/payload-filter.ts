/**
 * Conditions on fields of payloads: `payload.customer=7` in a query, `{"payload": {"customer": 7}}` in a body. A path is
 * the names of objects and the indexes of lists on the way to a value, with dots between them.
 */

/** A value that a field can be compared with. */
export type Scalar = string | number | boolean | null;

/** The most conditions of one filter, and the most parts of a path. */
export const MAX_PAYLOAD_CONDITIONS = 8;
const MAX_PATH_PARTS = 16;

/** What a path looks like; a name may contain everything but dots and control characters. */
export const PAYLOAD_PATH = `^[^.\\u0000-\\u001f]{1,128}(\\.[^.\\u0000-\\u001f]{1,128}){0,${MAX_PATH_PARTS - 1}}$`;

/** A field of the payload must have this value. */
export interface PayloadCondition {
  readonly path: readonly string[];
  readonly kind: 'string' | 'number' | 'boolean' | 'null';
  /** The string itself, or the JSON text of another value: numbers keep their digits. */
  readonly value: string;
}

/** The conditions of a body, whose values are JSON. */
export function conditionsOf(fields: Readonly<Record<string, Scalar>>): PayloadCondition[] {
  return Object.entries(fields).map(([path, value]) => ({
    path: path.split('.'),
    kind: value === null ? 'null' : (typeof value as 'string' | 'number' | 'boolean'),
    value: String(value),
  }));
}

/**
 * The conditions of a query, whose values are texts. A text that is a JSON number, `true`, `false`, `null` or a string in
 * quotes means that value; every other text means itself as a string.
 */
export function conditionsOfQuery(fields: Readonly<Record<string, string>>): PayloadCondition[] {
  return Object.entries(fields).map(([path, text]) => ({ path: path.split('.'), ...readScalar(text) }));
}

/**
 * The value that a text of a query means; null for a number with more digits than a JSON number keeps in a program, which
 * would be another number in a body.
 */
export function scalarOf(text: string): { readonly value: Scalar } | null {
  const { kind, value } = readScalar(text);
  if (kind === 'string') return { value };
  const parsed = JSON.parse(value) as Scalar;
  const keeps = kind !== 'number' || Math.abs(parsed as number) <= Number.MAX_SAFE_INTEGER;
  return keeps ? { value: parsed } : null;
}

const NUMBER = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/;

function readScalar(text: string): Pick<PayloadCondition, 'kind' | 'value'> {
  if (NUMBER.test(text)) return { kind: 'number', value: text };
  if (text === 'true' || text === 'false') return { kind: 'boolean', value: text };
  if (text === 'null') return { kind: 'null', value: text };
  return { kind: 'string', value: text.startsWith('"') ? unquoted(text) : text };
}

function unquoted(text: string): string {
  try {
    const value: unknown = JSON.parse(text);
    // Postgres holds no NUL in texts; in payloads it is compared in the same way.
    return typeof value === 'string' ? value.replaceAll('\u0000', '\ufffd') : text;
  } catch {
    return text;
  }
}

/** The value as a query takes it. */
export function scalarText(value: Scalar): string {
  const { kind } = readScalar(String(value));
  // A string that would be read as something else is put in quotes.
  const isPlain = typeof value !== 'string' || (kind === 'string' && !value.startsWith('"'));
  return isPlain ? String(value) : JSON.stringify(value);
}
