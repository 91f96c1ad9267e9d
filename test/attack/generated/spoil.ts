import type { Random } from '../../fault/random.js';

/** Ways to spoil a value or its text. Each tells what it did, for the report. */
export interface Spoilt {
  readonly about: string;
  readonly body: string | Buffer;
}

const UNKNOWN_FIELDS = 200;
const LONG = 300 * 1024;
const DEEP = 100_000;

/** Values that hardly any field wants. */
const ODD_VALUES: readonly (readonly [about: string, json: string])[] = [
  ['null', 'null'],
  ['a boolean', 'true'],
  ['a negative number', '-1'],
  ['a fraction', '0.5'],
  ['a huge number', '1e308'],
  ['a number beyond all doubles', '1e999'],
  ['a whole number beyond 2⁵³', '9007199254740993'],
  ['a whole number beyond 2⁶³', '9223372036854775808'],
  ['a whole number beyond 2³¹', '2147483648'],
  ['an empty text', '""'],
  ['a NUL', '"a\\u0000b"'],
  ['half a surrogate pair', '"\\ud800"'],
  ['odd letters', '"é\u202e\ufeff😀\u2028"'],
  ['a long text', `"${'x'.repeat(LONG)}"`],
  ['a path', '"../../etc/passwd"'],
  ['SQL', `"'; DROP TABLE punctual.jobs; --"`],
  ['a format', '"%s%n{{7*7}}"'],
  ['an empty object', '{}'],
  ['an empty array', '[]'],
  ['an array of nothing', '[[],[null],[{}]]'],
  ['a deep array', `${'['.repeat(65)}${']'.repeat(65)}`],
  ['a proto field', '{"__proto__":{"admin":true},"constructor":{"prototype":{}}}'],
  ['many fields', `{${Array.from({ length: UNKNOWN_FIELDS }, (_, n) => `"u${n}":${n}`).join(',')}}`],
  ['many values', `[${'0,'.repeat(20_000)}0]`],
];

/** Stands in a value where the text of another is put afterwards. */
const MARK = 'here it is spoilt';

/**
 * A leader believes a registered worker that has seen a later term, and takes a new one, as it must after a database
 * was replaced. So this is left alone; what strangers say about it is sent by the attack `odd-requests`.
 */
export const TRUSTED = 'epoch';

/** A body in which one value, at any depth, is an odd one. */
export function withOddValue(value: unknown, random: Random): Spoilt {
  const [about, json] = random.pick(ODD_VALUES);
  const places = placesIn(value).filter((place) => place.at(-1) !== TRUSTED);
  const place = random.pick(places);
  const text = JSON.stringify(put(value, place, MARK)).replace(JSON.stringify(MARK), () => json);
  return { about: `${about} at /${place.join('/')}`, body: text };
}

/** A body in which a field is missing, or some are there that nobody knows. */
export function withOtherFields(value: unknown, random: Random): Spoilt {
  const fields = typeof value === 'object' && value !== null ? { ...value } : {};
  const names = Object.keys(fields);
  if (names.length > 0 && random.next() < 0.5) {
    const name = random.pick(names);
    const { [name]: _gone, ...rest } = fields as Record<string, unknown>;
    return { about: `without ${name}`, body: JSON.stringify(rest) };
  }
  const count = random.pick([1, 3, UNKNOWN_FIELDS]);
  const unknown = Object.fromEntries(Array.from({ length: count }, (_, n) => [`unknown${n}`, n]));
  return { about: `${count} unknown fields`, body: JSON.stringify({ ...fields, ...unknown }) };
}

/** A body that is no JSON, or hardly. */
export function asBrokenText(value: unknown, random: Random): Spoilt {
  const text = JSON.stringify(value) ?? '{}';
  const ways: readonly (readonly [about: string, body: string | Buffer])[] = [
    ['cut off', text.slice(0, random.between(0, text.length - 1))],
    ['with more behind it', `${text}${text}`],
    ['with a comma too many', text.replace(/[}\]]$/, (end) => `,${end}`)],
    ['with a mark of byte order', `\ufeff${text}`],
    ['in UTF-16', Buffer.from(text, 'utf16le')],
    ['in Latin-1', Buffer.from(`${text.slice(0, -1)},"é":1}`, 'latin1')],
    ['random bytes', Buffer.from(Array.from({ length: 64 }, () => random.between(0, 255)))],
    ['empty', ''],
    ['blanks', ' \n\t '],
    ['a raw NUL', `{"a\0":1}`],
    ['no number', '{"a":NaN}'],
    ['a comment', `/* */${text}`],
    ['single quotes', text.replaceAll('"', "'")],
    ['the same field twice', text.replace(/^\{/, '{"task":"a","task":"b",')],
    ['an array', `[${text}]`],
    ['a text', JSON.stringify(text)],
    ['deep brackets', `${'['.repeat(DEEP)}${']'.repeat(DEEP)}`],
    ['deep objects', `${'{"a":'.repeat(DEEP / 5)}1${'}'.repeat(DEEP / 5)}`],
    ['open brackets', '['.repeat(DEEP)],
  ];
  const [about, body] = random.pick(ways);
  return { about, body };
}

/** Values for a part of a path or of a query that hardly any wants. */
export const ODD_TEXTS: readonly string[] = [
  '..',
  '%2e%2e',
  '%00',
  '%ff',
  '%zz',
  '%',
  '%u0041',
  '%F0%9F%98%80',
  '%E2%80%AE',
  '*',
  '-1',
  '0',
  '1e3',
  '1.5',
  'NaN',
  'null',
  'undefined',
  '__proto__',
  'constructor',
  '99999999999999999999',
  '2147483648',
  '9007199254740993',
  'true',
  '-1s',
  '0s',
  '61s',
  '999999999999999d',
  '1e9s',
  'P1D',
  "'",
  '%22',
  '%5C',
  '%0d%0aset-cookie:a=b',
  '%3Cscript%3E',
  '00000000-0000-0000-0000-000000000000',
  'FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF',
  '2031-05-06',
  '0001-01-01T00:00:00Z',
  '275760-09-13T00:00:00Z',
  'x'.repeat(600),
  'x'.repeat(3_000),
  '%F0%9F%98%80'.repeat(100),
  'e30',
  'eyJhIjoxfQ',
  'W10',
  'eyJpZCI6bnVsbH0',
  'MDAwMDAwMDA',
  '=',
  '====',
  '%2B%2F',
  'AAAAAAAAAAAAAAAAAAAAAA',
];

type Place = readonly (string | number)[];

/** Every place in a value, its root included. */
function placesIn(value: unknown, at: Place = []): Place[] {
  if (typeof value !== 'object' || value === null) return [at];
  return [at, ...Object.entries(value).flatMap(([name, child]) => placesIn(child, [...at, name]))];
}

/** The same value with another one at a place. */
function put(value: unknown, [step, ...rest]: Place, other: unknown): unknown {
  if (step === undefined) return other;
  if (Array.isArray(value))
    return value.map((child, n) => (n === Number(step) ? put(child, rest, other) : child));
  const fields = value as Record<string, unknown>;
  return { ...fields, [step]: put(fields[step], rest, other) };
}
