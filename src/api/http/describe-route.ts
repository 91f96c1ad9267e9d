import type { FastifyInstance, FastifySchema } from 'fastify';
import { Problem } from '../../core/schemas/problem.js';
import type { Scope } from '../caller.js';
import type { OtherAnswer, Route } from '../route.js';

/** Marks an operation whose body may be left out, until the document is complete. */
export const OPTIONAL_BODY = 'x-optional-body';

/** Turns a declaration into the form that the OpenAPI generator reads; schemas with a title become references. */
export type DescribeRoute = (route: Route) => FastifySchema;

/** A describer that registers titled schemas with the server, so that the document contains each once. */
export function routeDescriber(server: FastifyInstance): DescribeRoute {
  const refer = (schema: unknown, told = tellDefault): unknown => {
    if (typeof schema !== 'object' || schema === null) return schema;
    if (Array.isArray(schema)) return schema.map((part) => refer(part, told));
    const { title } = schema as { title?: unknown };
    const plain = Object.fromEntries(
      Object.entries(told(schema)).map(([name, part]) => [
        name === 'x-format' ? 'format' : name,
        refer(part, told),
      ]),
    );
    if (typeof title !== 'string') return plain;
    if (!server.getSchema(title)) server.addSchema({ ...plain, $id: title });
    return { $ref: `${title}#` };
  };
  const problem = (description: string) => ({
    description,
    content: { 'application/problem+json': { schema: refer(Problem) } },
  });
  return ({ id, tag, summary, scope, params, query, body, answers, idempotent }) => {
    if (tag === 'internal') return { hide: true };
    return {
      operationId: id,
      tags: [tag],
      summary,
      security: securityOf(scope),
      'x-scope': scope,
      ...(params && { params: refer(params) }),
      ...(query && { querystring: refer(query, (schema) => schema) }),
      ...(idempotent === true && { headers: IDEMPOTENCY_HEADER }),
      ...describeBody(body, refer),
      response: {
        ...Object.fromEntries(
          Object.entries(answers).map(([status, answer]) => [status, describeAnswer(answer, refer)]),
        ),
        '4xx': problem('What is wrong with the request'),
        default: problem('What went wrong'),
      },
    };
  };
}

/** The header of requests that may be repeated. */
const IDEMPOTENCY_HEADER = {
  type: 'object',
  properties: {
    'idempotency-key': {
      type: 'string',
      minLength: 1,
      maxLength: 255,
      pattern: '^[ -~]+$',
      description:
        'Makes the request safe to repeat: within 24 hours the same request with the same key takes effect once and ' +
        'gets the first answer again, with the header `idempotency-replayed: true`. While the first is being carried ' +
        'out: 409 IDEMPOTENCY_IN_FLIGHT. Another request with the key: 422 IDEMPOTENCY_KEY_REUSED.',
    },
  },
};

/**
 * Moves the default of a body's field into its description. Generators of clients take a field with a default for one that
 * is always there, and then demand it in requests; with parameters they do not.
 */
function tellDefault(schema: object): object {
  const { default: value, description, ...rest } = schema as { default?: unknown; description?: unknown };
  if (value === undefined || typeof value === 'object') return schema;
  const told = `Default: ${JSON.stringify(value)}.`;
  return { ...rest, description: description === undefined ? told : `${description} ${told}` };
}

type Refer = (schema: unknown) => unknown;

function describeBody(body: Route['body'], refer: Refer): FastifySchema {
  if (!body) return {};
  if (body.kind === 'json')
    return { body: refer(body.schema), ...(body.optional === true && { [OPTIONAL_BODY]: true }) };
  return { body: { content: { [body.type]: { schema: { type: 'string', format: 'binary' } } } } };
}

function describeAnswer(answer: Route['answers'][number], refer: Refer): unknown {
  if (typeof answer === 'string') return { type: 'null', description: answer };
  if ('kind' in answer) {
    const { description, type } = answer as OtherAnswer;
    return { description, content: { [type.split(';')[0]!]: { schema: { type: 'string' } } } };
  }
  const { title = 'The answer' } = answer as { title?: string };
  return { description: title, content: { 'application/json': { schema: refer(answer) } } };
}

function securityOf(scope: Scope): Record<string, string[]>[] {
  if (scope === 'public') return [];
  return scope === 'attempt' || scope === 'step' ? [{ key: [] }, { attemptToken: [] }] : [{ key: [] }];
}
