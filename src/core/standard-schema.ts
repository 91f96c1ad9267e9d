import type { FieldError } from './errors.js';

/**
 * The part of the Standard Schema interface (https://standardschema.dev) that is used here. zod, valibot, arktype and
 * others implement it, so none of them is a dependency.
 */
export interface StandardSchema<Input = unknown, Output = Input> {
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => SchemaResult<Output> | Promise<SchemaResult<Output>>;
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
  };
}

/** The outcome of a validation. */
type SchemaResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly SchemaIssue[] };

interface SchemaIssue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** The type of the values that a schema accepts. */
export type SchemaInput<S extends StandardSchema> = NonNullable<S['~standard']['types']>['input'];

/** The type of the values that a schema returns. */
export type SchemaOutput<S extends StandardSchema> = NonNullable<S['~standard']['types']>['output'];

/** Whether a value implements the interface; the schemas of some libraries are functions. */
export function isStandardSchema(value: unknown): value is StandardSchema {
  return (
    ((typeof value === 'object' && value !== null) || typeof value === 'function') &&
    typeof (value as Partial<StandardSchema>)['~standard']?.validate === 'function'
  );
}

/** A schema's issues as field errors, each with a JSON pointer below the given one. */
export function fieldErrorsOf(issues: readonly SchemaIssue[], pointer: string): FieldError[] {
  return issues.map((issue) => ({
    pointer: pointer + (issue.path ?? []).map((part) => `/${escapePart(part)}`).join(''),
    detail: issue.message,
  }));
}

function escapePart(part: PropertyKey | { readonly key: PropertyKey }): string {
  const key = typeof part === 'object' ? part.key : part;
  return String(key).replaceAll('~', '~0').replaceAll('/', '~1');
}
