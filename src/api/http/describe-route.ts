import type { FastifyInstance, FastifySchema } from 'fastify';
import type { TSchema } from 'typebox';
import { Problem } from '../../core/schemas/problem.js';

/** What the OpenAPI document says about a route. */
export interface RouteDescription {
  readonly id: string;
  readonly tag: 'jobs' | 'attempts' | 'workers' | 'queues' | 'schedules' | 'tenants' | 'cluster' | 'health';
  readonly summary: string;
  readonly access?: 'public' | 'attempt';
  readonly params?: TSchema;
  readonly query?: TSchema;
  readonly body?: TSchema;
  /** Schemas of the answers by status, or a sentence for an answer without JSON. */
  readonly answers: Readonly<Record<number, TSchema | string>>;
}

/** Turns descriptions into the form that the OpenAPI generator reads, naming every schema that has a title. */
export type DescribeRoute = (description: RouteDescription) => FastifySchema;

/** A describer that registers titled schemas with the server, so that the document holds each of them once. */
export function routeDescriber(server: FastifyInstance): DescribeRoute {
  const refer = (schema: unknown): unknown => {
    if (typeof schema !== 'object' || schema === null) return schema;
    if (Array.isArray(schema)) return schema.map(refer);
    const { title } = schema as { title?: unknown };
    const plain = Object.fromEntries(
      Object.entries(schema).map(([name, part]) => [name === 'x-format' ? 'format' : name, refer(part)]),
    );
    if (typeof title !== 'string') return plain;
    if (!server.getSchema(title)) server.addSchema({ ...plain, $id: title });
    return { $ref: `${title}#` };
  };
  const problem = {
    description: 'What went wrong',
    content: { 'application/problem+json': { schema: refer(Problem) } },
  };
  return ({ id, tag, summary, access, params, query, body, answers }) => ({
    operationId: id,
    tags: [tag],
    summary,
    security: securityOf(access),
    ...(params && { params: refer(params) }),
    ...(query && { querystring: refer(query) }),
    ...(body && { body: refer(body) }),
    response: {
      ...Object.fromEntries(
        Object.entries(answers).map(([status, answer]) => [status, describe(status, answer, refer)]),
      ),
      default: problem,
    },
  });
}

function describe(status: string, answer: TSchema | string, refer: (schema: unknown) => unknown): unknown {
  if (status === '204') return { type: 'null', description: answer };
  if (typeof answer === 'string') {
    return { description: answer, content: { 'text/plain': { schema: { type: 'string' } } } };
  }
  const { title = 'The answer' } = answer as { title?: string };
  return { description: title, content: { 'application/json': { schema: refer(answer) } } };
}

function securityOf(access: RouteDescription['access']): Record<string, string[]>[] {
  if (access === 'public') return [];
  return access === 'attempt' ? [{ key: [] }, { attemptToken: [] }] : [{ key: [] }];
}
