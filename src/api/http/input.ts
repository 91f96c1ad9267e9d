import type { FastifyRequest } from 'fastify';
import type { Static, TSchema } from 'typebox';
import { Nothing } from '../../core/schemas/object.js';
import { IdPath, NamePath } from '../../core/schemas/query.js';
import { validate } from '../../core/schemas/validate.js';

/** What a request says outside of its body. Bodies are checked by the use-cases. */

/** The query, checked; numbers arrive as text and become numbers where the schema wants one. */
export function queryOf<S extends TSchema>(request: FastifyRequest, schema: S): Static<S> {
  const { properties } = schema as { properties?: Readonly<Record<string, { type?: unknown }>> };
  const entries = Object.entries(request.query as Record<string, unknown>).map(([name, value]) => {
    const wantsNumber = properties?.[name]?.type === 'integer';
    const isNumber = typeof value === 'string' && /^-?\d{1,15}$/.test(value);
    return [name, wantsNumber && isNumber ? Number(value) : value] as const;
  });
  return validate(schema, Object.fromEntries(entries));
}

/** The id in the path. */
export function idOf(request: FastifyRequest): string {
  return validate(IdPath, request.params).id;
}

/** The name in the path. */
export function nameOf(request: FastifyRequest): string {
  return validate(NamePath, request.params).name;
}

/** Makes sure that a call without a body brings none, or an empty object. */
export function expectNothing(request: FastifyRequest): void {
  if (request.body !== undefined && request.body !== null) validate(Nothing, request.body);
}
