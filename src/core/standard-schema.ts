import type { FieldError } from './errors.js';

/**
 * The interface that schema libraries share (https://standardschema.dev), as far as it is needed here: zod,
 * valibot, arktype and others have it, so none of them is a dependency.
 */
export interface StandardSchema<Input = unknown, Output = Input> {
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => SchemaResult<Output> | Promise<SchemaResult<Output>>;
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
  };
}

/** What a schema says about a value. */
type SchemaResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly SchemaIssue[] };

interface SchemaIssue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** The type a schema takes in. */
export type SchemaInput<S extends StandardSchema> = NonNullable<S['~standard']['types']>['input'];

/** The type a schema gives out. */
export type SchemaOutput<S extends StandardSchema> = NonNullable<S['~standard']['types']>['output'];

/** Whether a value is such a schema; some libraries make theirs functions. */
export function isStandardSchema(value: unknown): value is StandardSchema {
  return (
    ((typeof value === 'object' && value !== null) || typeof value === 'function') &&
    typeof (value as Partial<StandardSchema>)['~standard']?.validate === 'function'
  );
}

/** A schema's complaints with a JSON pointer each, below the given pointer. */
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
