import { type FieldError, MOST_ERRORS, pointerStep } from './errors.js';
import { PayloadCheck, referred, type Schema, TooCostly } from './payload-check.js';
import { SafePattern } from './safe-pattern.js';
import { isPlainObject } from './schemas/explain.js';
import { FORMATS } from './text-formats.js';

/**
 * JSON Schemas that tenants give for the payloads of their tasks. They are read and never compiled: a compiler would
 * make code of a tenant's text. They are a part of draft 2020-12 whose cost is known: no regular expressions beyond those
 * of `SafePattern`, and no references beyond the schema itself. Every comparison is a step, and a payload that takes too
 * many is refused, so that no schema can hold the event loop. A keyword that is not checked is refused and not ignored,
 * because whoever wrote it relies on it.
 */

/** Bounds of a schema. */
const MAX_LEVELS = 32;
const MAX_SUBSCHEMAS = 1_000;

/** What a keyword takes, for the check of a schema. */
type Takes = (value: unknown, pointer: string, reader: SchemaReader) => void;

const expects =
  (what: string, isRight: (value: unknown) => boolean): Takes =>
  (value, pointer, { errors }) => {
    if (!isRight(value)) errors.push({ pointer, detail: `must be ${what}` });
  };

const anything: Takes = () => undefined;
const count = expects(
  'a whole number from 0 on',
  (value) => Number.isSafeInteger(value) && Number(value) >= 0,
);
const number = expects('a number', (value) => Number.isFinite(value));
const schema: Takes = (value, pointer, reader) => reader.read(value, pointer);

const schemas: Takes = (value, pointer, reader) => {
  if (!Array.isArray(value) || value.length === 0)
    reader.errors.push({ pointer, detail: 'must be a list of schemas' });
  else for (const [i, each] of value.entries()) reader.read(each, `${pointer}/${i}`);
};

const namedSchemas: Takes = (value, pointer, reader) => {
  if (!isPlainObject(value)) reader.errors.push({ pointer, detail: 'must be an object of schemas' });
  else for (const [name, each] of Object.entries(value)) reader.read(each, pointer + pointerStep(name));
};

const TYPES: readonly unknown[] = ['string', 'number', 'integer', 'boolean', 'null', 'object', 'array'];
const isNames = (value: unknown): boolean =>
  Array.isArray(value) && value.every((name) => typeof name === 'string');

const reference: Takes = (value, pointer, reader) => {
  if (typeof value === 'string' && reader.find(value) !== undefined) return;
  reader.errors.push({ pointer, detail: 'must lead to a schema below "$defs" of this one: "#/$defs/name"' });
};

const pattern: Takes = (value, pointer, reader) => {
  if (typeof value === 'string' && reader.addPattern(value)) return;
  const detail =
    'must be a regular expression without groups, alternatives, references and lazy repetitions, because others could hold nodes up; check the rest in the handler';
  reader.errors.push({ pointer, detail });
};

const format = expects(`one of ${Object.keys(FORMATS).join(', ')}; nodes check no others`, (value) =>
  Object.hasOwn(FORMATS, String(value)),
);

const KEYWORDS: ReadonlyMap<string, Takes> = new Map<string, Takes>([
  ...['$schema', '$comment', 'title', 'description', 'default', 'examples'].map(
    (name) => [name, anything] as const,
  ),
  ...['deprecated', 'readOnly', 'writeOnly'].map((name) => [name, anything] as const),
  ['$defs', namedSchemas],
  ['definitions', namedSchemas],
  ['$ref', reference],
  [
    'type',
    expects(
      'a type of JSON, or a list of them',
      (value) =>
        TYPES.includes(value) ||
        (Array.isArray(value) && value.length > 0 && value.every((type) => TYPES.includes(type))),
    ),
  ],
  ['enum', expects('a list of values', (value) => Array.isArray(value) && value.length > 0)],
  ['const', anything],
  ['minimum', number],
  ['maximum', number],
  ['exclusiveMinimum', number],
  ['exclusiveMaximum', number],
  ['multipleOf', expects('a number above 0', (value) => Number.isFinite(value) && Number(value) > 0)],
  ['minLength', count],
  ['maxLength', count],
  ['items', schema],
  ['prefixItems', schemas],
  ['minItems', count],
  ['maxItems', count],
  ['properties', namedSchemas],
  ['required', expects('a list of names', isNames)],
  ['additionalProperties', schema],
  ['propertyNames', schema],
  ['minProperties', count],
  ['maxProperties', count],
  ['allOf', schemas],
  ['anyOf', schemas],
  ['oneOf', schemas],
  ['not', schema],
  ['pattern', pattern],
  ['format', format],
]);

/** Checks a schema, with everything below it. */
class SchemaReader {
  readonly patterns = new Map<string, SafePattern>();
  private levels = 0;
  private subschemas = 0;

  constructor(
    private readonly root: unknown,
    readonly errors: FieldError[],
  ) {}

  read(value: unknown, pointer: string): void {
    if (this.errors.length > MOST_ERRORS) return;
    this.subschemas += 1;
    if (this.subschemas === MAX_SUBSCHEMAS + 1)
      this.errors.push({ pointer, detail: `has more than ${MAX_SUBSCHEMAS} schemas in it` });
    if (this.subschemas > MAX_SUBSCHEMAS || typeof value === 'boolean') return;
    if (!isPlainObject(value)) {
      this.errors.push({ pointer, detail: 'must be a JSON Schema: an object, true or false' });
      return;
    }
    if (this.levels === MAX_LEVELS) {
      this.errors.push({ pointer, detail: `must not be nested deeper than ${MAX_LEVELS} levels` });
      return;
    }
    this.levels += 1;
    for (const [keyword, given] of Object.entries(value)) {
      const at = pointer + pointerStep(keyword);
      const takes = KEYWORDS.get(keyword);
      if (takes) takes(given, at, this);
      else this.errors.push({ pointer: at, detail: 'is not a keyword that Punctual checks' });
    }
    this.levels -= 1;
  }

  /** False for a regular expression that cannot be taken. */
  addPattern(source: string): boolean {
    const found = this.patterns.get(source) ?? SafePattern.read(source);
    if (found) this.patterns.set(source, found);
    return found !== null;
  }

  find(target: string): Schema | undefined {
    return referred(this.root, target);
  }
}

/** A schema that was found good. */
export class PayloadSchema {
  private constructor(
    private readonly root: Schema,
    private readonly patterns: ReadonlyMap<string, SafePattern>,
  ) {}

  /** Checks a schema; null after saying what is wrong with it. */
  static read(given: unknown, pointer: string, errors: FieldError[]): PayloadSchema | null {
    const before = errors.length;
    const reader = new SchemaReader(given, errors);
    reader.read(given, pointer);
    return errors.length > before ? null : new PayloadSchema(given as Schema, reader.patterns);
  }

  /** Adds what is wrong with a payload to the errors. */
  check(payload: unknown, pointer: string, errors: FieldError[]): void {
    try {
      // What is wrong is looked for only when something is: pointers cost more than comparisons.
      if (new PayloadCheck(this.root, this.patterns, null).fits(this.root, payload, '')) return;
      const before = errors.length;
      new PayloadCheck(this.root, this.patterns, errors).fits(this.root, payload, pointer);
      if (errors.length === before) errors.push({ pointer, detail: 'does not fit the schema of the task' });
    } catch (error) {
      if (!(error instanceof TooCostly)) throw error;
      errors.push({ pointer, detail: 'takes too long to check against the schema of the task' });
    }
  }
}
