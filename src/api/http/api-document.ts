import swagger, { type FastifyDynamicSwaggerOptions } from '@fastify/swagger';
import { fastify } from 'fastify';
import { type Route, TAGS } from '../route.js';
import { OPTIONAL_BODY, routeDescriber } from './describe-route.js';
import type { OpenApiDocument } from './docs-page.js';

interface OpenApiPaths {
  readonly paths?: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
}

interface Operation {
  readonly parameters?: QueryParameter[];
  readonly requestBody?: { required?: boolean };
  [OPTIONAL_BODY]?: true;
}

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

/**
 * The OpenAPI document, generated from the declarations that the routes are served from, so that the two cannot differ. The
 * generator reads it from a server. That is one of its own, which serves nothing, because descriptions of all routes take
 * longer to make than all else at the start of a node, and most nodes are never asked for them.
 */
export async function apiDocument(routes: readonly Route[], version: string): Promise<OpenApiDocument> {
  const server = fastify({ exposeHeadRoutes: false });
  // Nothing is checked against the schemas, so nothing is compiled from them.
  server.setValidatorCompiler(() => () => true);
  server.setSerializerCompiler(() => String);
  await server.register(swagger, generatorOptions(version));
  const describe = routeDescriber(server);
  for (const route of routes) {
    server.route({
      method: route.method,
      url: route.path,
      schema: describe(route),
      handler: () => undefined,
    });
  }
  await server.ready();
  const document = server.swagger() as OpenApiDocument;
  await server.close();
  return document;
}

function generatorOptions(version: string): FastifyDynamicSwaggerOptions {
  return {
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
  };
}
