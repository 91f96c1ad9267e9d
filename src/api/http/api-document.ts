import swagger from '@fastify/swagger';
import type { FastifyInstance } from 'fastify';
import { TAGS } from '../route.js';

interface OpenApiPaths {
  readonly paths?: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
}

interface Operation {
  readonly parameters?: QueryParameter[];
  readonly requestBody?: { required?: boolean };
  [OPTIONAL_BODY]?: true;
}

/** Marks an operation whose body may be left out, until the document is complete. */
export const OPTIONAL_BODY = 'x-optional-body';

interface QueryParameter {
  readonly in: string;
  readonly schema?: { readonly type?: unknown };
  style?: string;
  explode?: boolean;
}

/** Says how a parameter that holds an object is written: `payload[customer]=7`. The generator has no option for that. */
function describeObjects({ paths = {} }: OpenApiPaths): void {
  const parameters = Object.values(paths)
    .flatMap((path) => Object.values(path))
    .flatMap((operation) => operation.parameters ?? []);
  for (const parameter of parameters) {
    if (parameter.in !== 'query' || parameter.schema?.type !== 'object') continue;
    parameter.style = 'deepObject';
    parameter.explode = true;
  }
}

/** The generator declares every body as required. */
function describeOptionalBodies({ paths = {} }: OpenApiPaths): void {
  for (const operation of Object.values(paths).flatMap((path) => Object.values(path))) {
    if (operation[OPTIONAL_BODY] && operation.requestBody) operation.requestBody.required = false;
    delete operation[OPTIONAL_BODY];
  }
}

/** Makes the server generate its OpenAPI document from its routes, so that the two cannot differ. */
export function documentApi(server: FastifyInstance, version: string): void {
  server.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Punctual',
        version,
        description:
          'A distributed task scheduler. Times are RFC 3339 in UTC, durations are texts such as 30s, and ' +
          'errors are application/problem+json with a stable code.',
        license: { name: 'MIT', identifier: 'MIT' },
      },
      servers: [
        { url: '/', description: 'The node that serves this document.' },
        { url: 'http://127.0.0.1:8080', description: 'A node on this machine, with the default port.' },
      ],
      tags: Object.entries(TAGS).map(([name, description]) => ({ name, description })),
      components: {
        securitySchemes: {
          key: {
            type: 'http',
            scheme: 'bearer',
            description:
              'A key. An operator key acts for the tenant in the header punctual-tenant, or for `default`.',
          },
          attemptToken: {
            type: 'http',
            scheme: 'bearer',
            description:
              'The token of an attempt; it can report about its own job, and add steps to its workflow, only.',
          },
        },
      },
    },
    transformObject: (document) => {
      const { openapiObject } = document as { openapiObject: OpenApiPaths };
      describeObjects(openapiObject);
      describeOptionalBodies(openapiObject);
      return openapiObject;
    },
    refResolver: { buildLocalReference: (schema) => String(schema.$id) },
  });
}
