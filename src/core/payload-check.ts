import { type FieldError, MOST_ERRORS, pointerStep } from './errors.js';
import type { SafePattern } from './safe-pattern.js';
import { isPlainObject } from './schemas/explain.js';
import { FORMATS } from './text-formats.js';

/** Holds a payload against a schema that was found good, in a bounded number of steps. */

/** A JSON Schema. */
export type Schema = boolean | { readonly [keyword: string]: unknown };

/** Comparisons that one payload may take: a few milliseconds. */
const MAX_STEPS = 250_000;
/** The engine of regular expressions compares faster than we do. */
const COMPARISONS_PER_STEP = 8;
/** Schemas that are open at once while a payload is checked; references could go round in circles. */
const MAX_OPEN = 500;

const REFERENCE = /^#(?:\/(\$defs|definitions)\/([^/]+))?$/;

/** The schema that a reference means; undefined if there is none. */
export function referred(root: unknown, target: string): Schema | undefined {
  const match = REFERENCE.exec(target);
  if (!match || !isPlainObject(root)) return undefined;
  const [, holder, name] = match;
  if (holder === undefined) return root;
  const named = root[holder];
  const key = name!.replaceAll('~1', '/').replaceAll('~0', '~');
  return isPlainObject(named) && Object.hasOwn(named, key) ? (named[key] as Schema) : undefined;
}

/** A payload takes more steps than are allowed. */
export class TooCostly extends Error {}

/** One walk over a payload. */
export class PayloadCheck {
  private steps = 0;
  private open = 0;

  constructor(
    private readonly root: Schema,
    private readonly patterns: ReadonlyMap<string, SafePattern>,
    /** Where mistakes are told; null only tells whether there are any. */
    private errors: FieldError[] | null,
  ) {}

  fits(rules: Schema, value: unknown, pointer: string): boolean {
    this.step(1);
    if (rules === true) return true;
    if (rules === false) return this.wrong(pointer, 'is not allowed');
    this.open += 1;
    if (this.open > MAX_OPEN) throw new TooCostly();
    const isRight =
      this.fitsAny(rules, value, pointer) &&
      this.fitsKind(rules, value, pointer) &&
      this.fitsCombined(rules, value, pointer);
    this.open -= 1;
    return isRight;
  }

  private fitsAny(rules: Exclude<Schema, boolean>, value: unknown, pointer: string): boolean {
    const { type, enum: choices } = rules as { type?: string | string[]; enum?: unknown[] };
    if (type !== undefined && !hasType(type, value)) {
      const types = typeof type === 'string' ? [type] : type;
      return this.wrong(pointer, `must be ${types.map((each) => WORDS[each]).join(' or ')}`);
    }
    if (choices && !choices.some((choice) => this.same(choice, value))) {
      return this.wrong(pointer, `must be one of ${JSON.stringify(choices).slice(1, -1)}`);
    }
    if (Object.hasOwn(rules, 'const') && !this.same(rules.const, value))
      return this.wrong(pointer, `must be ${JSON.stringify(rules.const)}`);
    return true;
  }

  private fitsKind(rules: Exclude<Schema, boolean>, value: unknown, pointer: string): boolean {
    if (typeof value === 'number') return this.fitsNumber(rules as NumberRules, value, pointer);
    if (typeof value === 'string') return this.fitsText(rules as TextRules, value, pointer);
    if (Array.isArray(value)) return this.fitsList(rules as ListRules, value, pointer);
    if (isPlainObject(value)) return this.fitsObject(rules as ObjectRules, value, pointer);
    return true;
  }

  private fitsNumber(rules: NumberRules, value: number, pointer: string): boolean {
    const { minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf } = rules;
    if (minimum !== undefined && value < minimum) return this.wrong(pointer, `must be at least ${minimum}`);
    if (maximum !== undefined && value > maximum) return this.wrong(pointer, `must be at most ${maximum}`);
    if (exclusiveMinimum !== undefined && value <= exclusiveMinimum)
      return this.wrong(pointer, `must be more than ${exclusiveMinimum}`);
    if (exclusiveMaximum !== undefined && value >= exclusiveMaximum)
      return this.wrong(pointer, `must be less than ${exclusiveMaximum}`);
    if (multipleOf !== undefined && !isMultiple(value, multipleOf))
      return this.wrong(pointer, `must be a multiple of ${multipleOf}`);
    return true;
  }

  private fitsText(rules: TextRules, value: string, pointer: string): boolean {
    const { minLength = 0, maxLength, pattern, format } = rules;
    // Lengths are in characters, of which some take two places in a string.
    const length = minLength > 0 || (maxLength ?? value.length) < value.length ? this.lengthOf(value) : 0;
    if (length < minLength) return this.wrong(pointer, `must have at least ${minLength} characters`);
    if (maxLength !== undefined && length > maxLength)
      return this.wrong(pointer, `must have at most ${maxLength} characters`);
    if (pattern !== undefined && !this.matches(pattern, value))
      return this.wrong(pointer, `must match ${pattern}`);
    if (format !== undefined && !FORMATS[format]!(value)) return this.wrong(pointer, `must be a ${format}`);
    return true;
  }

  private matches(source: string, text: string): boolean {
    const pattern = this.patterns.get(source)!;
    this.step(pattern.cost(text.length) / COMPARISONS_PER_STEP);
    return pattern.test(text);
  }

  private lengthOf(text: string): number {
    this.step(text.length / 16);
    let length = 0;
    for (const _ of text) length += 1;
    return length;
  }

  private fitsList(rules: ListRules, value: readonly unknown[], pointer: string): boolean {
    const { items, prefixItems = [], minItems = 0, maxItems = Number.POSITIVE_INFINITY } = rules;
    if (value.length < minItems) return this.wrong(pointer, `must have at least ${minItems} entries`);
    if (value.length > maxItems) return this.wrong(pointer, `must have at most ${maxItems} entries`);
    let isRight = true;
    for (let i = 0; i < value.length; i++) {
      const rule = prefixItems[i] ?? items;
      if (rule === undefined || this.fits(rule, value[i], this.errors ? `${pointer}/${i}` : '')) continue;
      isRight = false;
      if (this.isEnough) break;
    }
    return isRight;
  }

  private fitsObject(rules: ObjectRules, value: Record<string, unknown>, pointer: string): boolean {
    const { properties = {}, required = [], additionalProperties: others = true, propertyNames } = rules;
    const names = Object.keys(value);
    this.step(required.length + names.length);
    const { minProperties = 0, maxProperties = Number.POSITIVE_INFINITY } = rules;
    if (names.length < minProperties)
      return this.wrong(pointer, `must have at least ${minProperties} entries`);
    if (names.length > maxProperties)
      return this.wrong(pointer, `must have at most ${maxProperties} entries`);
    let isRight = true;
    for (const name of required) {
      if (Object.hasOwn(value, name)) continue;
      isRight = this.wrong(this.below(pointer, name), 'is required');
      if (this.isEnough) return false;
    }
    for (const name of names) {
      const at = this.below(pointer, name);
      const fitsName = propertyNames === undefined || this.fits(propertyNames, name, at);
      const rule = Object.hasOwn(properties, name) ? properties[name]! : others;
      if (
        fitsName &&
        (rule === false ? this.wrong(at, 'is not a known field') : this.fits(rule, value[name], at))
      )
        continue;
      isRight = false;
      if (this.isEnough) break;
    }
    return isRight;
  }

  private fitsCombined(rules: Exclude<Schema, boolean>, value: unknown, pointer: string): boolean {
    const { $ref, allOf, anyOf, oneOf, not } = rules as CombinedRules;
    if ($ref !== undefined && !this.fits(referred(this.root, $ref)!, value, pointer)) return false;
    for (const each of allOf ?? []) if (!this.fits(each, value, pointer)) return false;
    if (anyOf && !anyOf.some((each) => this.fitsQuietly(each, value)))
      return this.wrong(pointer, 'fits none of the schemas of "anyOf"');
    if (oneOf && oneOf.filter((each) => this.fitsQuietly(each, value)).length !== 1)
      return this.wrong(pointer, 'must fit exactly one of the schemas of "oneOf"');
    if (not !== undefined && this.fitsQuietly(not, value))
      return this.wrong(pointer, 'fits the schema of "not"');
    return true;
  }

  private fitsQuietly(rules: Schema, value: unknown): boolean {
    const { errors } = this;
    this.errors = null;
    const isRight = this.fits(rules, value, '');
    this.errors = errors;
    return isRight;
  }

  /** Whether two JSON values are the same. */
  private same(a: unknown, b: unknown): boolean {
    this.step(1);
    if (a === b) return true;
    if (Array.isArray(a) || Array.isArray(b)) {
      return (
        Array.isArray(a) &&
        Array.isArray(b) &&
        a.length === b.length &&
        a.every((each, i) => this.same(each, b[i]))
      );
    }
    if (!isPlainObject(a) || !isPlainObject(b)) return false;
    const names = Object.keys(a);
    return (
      names.length === Object.keys(b).length &&
      names.every((name) => Object.hasOwn(b, name) && this.same(a[name], b[name]))
    );
  }

  /** Nobody reads more errors than are told, and one is enough where none is told. */
  private get isEnough(): boolean {
    return this.errors === null || this.errors.length > MOST_ERRORS;
  }

  private below(pointer: string, name: string): string {
    return this.errors ? pointer + pointerStep(name) : '';
  }

  private wrong(pointer: string, detail: string): false {
    this.errors?.push({ pointer, detail });
    return false;
  }

  private step(count: number): void {
    this.steps += count;
    if (this.steps > MAX_STEPS) throw new TooCostly();
  }
}

interface NumberRules {
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: number;
  readonly exclusiveMaximum?: number;
  readonly multipleOf?: number;
}

interface TextRules {
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly pattern?: string;
  readonly format?: string;
}

interface ListRules {
  readonly items?: Schema;
  readonly prefixItems?: readonly Schema[];
  readonly minItems?: number;
  readonly maxItems?: number;
}

interface ObjectRules {
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: Schema;
  readonly propertyNames?: Schema;
  readonly minProperties?: number;
  readonly maxProperties?: number;
}

interface CombinedRules {
  readonly $ref?: string;
  readonly allOf?: readonly Schema[];
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly not?: Schema;
}

const WORDS: Readonly<Record<string, string>> = {
  string: 'text',
  number: 'a number',
  integer: 'a whole number',
  boolean: 'true or false',
  null: 'null',
  object: 'an object',
  array: 'an array',
};

function hasType(type: string | readonly string[], value: unknown): boolean {
  if (typeof type !== 'string') return type.some((each) => hasType(each, value));
  if (type === 'null') return value === null;
  if (type === 'array') return Array.isArray(value);
  if (type === 'object') return isPlainObject(value);
  if (type === 'integer') return Number.isInteger(value);
  return typeof value === type;
}

/** Quotients of decimal fractions are rarely whole: 0.3 / 0.1 is a little less than 3. */
function isMultiple(value: number, of: number): boolean {
  const quotient = value / of;
  return Math.abs(quotient - Math.round(quotient)) <= 1e-9 * Math.max(1, Math.abs(quotient));
}
