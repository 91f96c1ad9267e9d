import type { Static, TArray, TObject, TSchema } from 'typebox';
import { Compile, type Validator } from 'typebox/compile';
import { type FieldError, invalid, MOST_ERRORS } from '../errors.js';
import { PORTION, TimeSlice } from '../time-slice.js';
import { explain, isPlainObject } from './explain.js';

const validators = new WeakMap<TSchema, Validator>();

/** The compiled schema. It is compiled when it is first needed. */
function validatorOf(schema: TSchema): Validator {
  let validator = validators.get(schema);
  if (!validator) {
    validator = Compile(schema);
    validators.set(schema, validator);
  }
  return validator;
}

/** Compiles schemas ahead of their first use, in slices: a large one takes some ten milliseconds. */
export async function compileAhead(schemas: Iterable<TSchema>): Promise<void> {
  const slice = new TimeSlice();
  for (const schema of schemas) {
    if (slice.isOver) await slice.next();
    validatorOf(schema);
  }
}

/** Whether the value is as the schema describes it. */
function fits<S extends TSchema>(schema: S, value: unknown): value is Static<S> {
  return validatorOf(schema).Check(value);
}

/**
 * The value as the schema describes it, unchanged; throws INVALID_REQUEST with a pointer to each wrong field. What is
 * wrong is looked for only when something is.
 */
export function validate<S extends TSchema>(schema: S, value: unknown): Static<S> {
  if (fits(schema, value)) return value;
  const errors: FieldError[] = [];
  tell(schema, value, '', errors);
  throw invalid(errors);
}

/** The same for an object with fields that hold lists, which may be empty: long ones are checked in slices. */
export async function validateLong<S extends TSchema>(
  schema: S,
  value: unknown,
  lists: readonly string[],
): Promise<Static<S>> {
  const long = lists.filter((name) => {
    const list = isPlainObject(value) && value[name];
    // What is too long is refused for that, and its items are not looked at.
    return Array.isArray(list) && list.length > PORTION && list.length <= maxItemsOf(schema, name);
  });
  if (long.length === 0) return validate(schema, value);
  const whole = value as Record<string, unknown[]>;
  const rest = { ...whole, ...Object.fromEntries(long.map((name) => [name, []])) };
  const errors: FieldError[] = [];
  if (!fits(schema, rest)) tell(schema, rest, '', errors);
  const slice = new TimeSlice();
  for (const name of long) {
    const { items } = arrayOf(schema, name);
    const validator = validatorOf(items);
    const list = whole[name]!;
    for (let i = 0; i < list.length; i++) {
      const item = list[i];
      if (!validator.Check(item)) tell(items, item, `/${name}/${i}`, errors);
      if (errors.length > MOST_ERRORS) throw invalid(errors);
      if (i % PORTION === PORTION - 1 && slice.isOver) await slice.next();
    }
  }
  if (errors.length > 0) throw invalid(errors);
  return value as Static<S>;
}

/** The most items of a field that holds a list. */
export function maxItemsOf(schema: TSchema, name: string): number {
  return arrayOf(schema, name).maxItems;
}

function arrayOf(schema: TSchema, name: string): TArray & { readonly maxItems: number } {
  const { properties } = schema as unknown as TObject;
  return properties[name] as TArray & { readonly maxItems: number };
}

/**
 * The same for an object that has rules between its fields, which are to be told of together with its form: where that
 * is wrong, the errors are added to those that are there, and the answer holds the fields that are right. Null when
 * the value is no object.
 */
export function readFields<S extends TObject>(
  schema: S,
  value: unknown,
  pointer: string,
  errors: FieldError[],
): Partial<Static<S>> | null {
  if (fits(schema, value)) return value;
  tell(schema, value, pointer, errors);
  if (!isPlainObject(value)) return null;
  const right = Object.entries(schema.properties).filter(
    ([name, rules]) => value[name] !== undefined && explain(rules, value[name]).length === 0,
  );
  return Object.fromEntries(right.map(([name]) => [name, value[name]])) as Partial<Static<S>>;
}

function tell(schema: TSchema, value: unknown, pointer: string, errors: FieldError[]): void {
  const before = errors.length;
  explain(schema, value, pointer, errors);
  if (errors.length === before) errors.push({ pointer, detail: 'is not valid' });
}
