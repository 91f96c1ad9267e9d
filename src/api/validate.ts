import type { Static, TSchema } from 'typebox';
import { Compile, type Validator } from 'typebox/compile';
import { type FieldError, invalid } from '../core/errors.js';
import { explain } from './schemas/explain.js';

const validators = new WeakMap<TSchema, Validator>();

/**
 * The value as the schema describes it, unchanged; throws INVALID_REQUEST with a pointer to each wrong field.
 * A schema is compiled once, and what is wrong is looked for only when something is.
 */
export function validate<S extends TSchema>(schema: S, value: unknown): Static<S> {
  let validator = validators.get(schema);
  if (!validator) {
    validator = Compile(schema);
    validators.set(schema, validator);
  }
  if (validator.Check(value)) return value as Static<S>;
  const errors: FieldError[] = explain(schema, value);
  if (errors.length === 0) errors.push({ pointer: '', detail: 'is not valid' });
  throw invalid(errors);
}
