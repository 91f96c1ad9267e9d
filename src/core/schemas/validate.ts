import type { Static, TObject, TSchema } from 'typebox';
import { Compile, type Validator } from 'typebox/compile';
import { type FieldError, invalid } from '../errors.js';
import { explain, isPlainObject } from './explain.js';

const validators = new WeakMap<TSchema, Validator>();

/** Whether the value is as the schema describes it. A schema is compiled when it is first needed. */
function fits<S extends TSchema>(schema: S, value: unknown): value is Static<S> {
  let validator = validators.get(schema);
  if (!validator) {
    validator = Compile(schema);
    validators.set(schema, validator);
  }
  return validator.Check(value);
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
