import type { FastifyInstance } from 'fastify';
import { NewTenant, TenantChange, TenantPage, TenantView } from '../../core/schemas/limits.js';
import { NoQuery, PageQuery, TenantPath } from '../../core/schemas/query.js';
import { validate } from '../../core/schemas/validate.js';
import { callerOf } from './access.js';
import { queryOf } from './input.js';
import type { RouteParts } from './route-parts.js';

const DEFAULT_LIMIT = 100;

/** Tenants, their shares and limits. */
export function tenantRoutes(server: FastifyInstance, { useCases, describe }: RouteParts): void {
  server.post(
    '/v1/tenants',
    {
      schema: describe({
        id: 'createTenant',
        tag: 'tenants',
        summary: 'Make a tenant. One with this id exists: 409.',
        body: NewTenant,
        answers: { 201: TenantView },
      }),
    },
    async (request, reply) => {
      queryOf(request, NoQuery);
      return reply.code(201).send(await useCases.tenants.create(callerOf(request), request.body));
    },
  );

  server.get(
    '/v1/tenants',
    {
      schema: describe({
        id: 'listTenants',
        tag: 'tenants',
        summary: 'List the tenants, by id.',
        query: PageQuery,
        answers: { 200: TenantPage },
      }),
    },
    async (request) => {
      const { after, limit } = queryOf(request, PageQuery);
      return useCases.tenants.list(callerOf(request), after, limit ?? DEFAULT_LIMIT);
    },
  );

  server.get(
    '/v1/tenants/:id',
    {
      schema: describe({
        id: 'getTenant',
        tag: 'tenants',
        summary: 'Read a tenant.',
        params: TenantPath,
        answers: { 200: TenantView },
      }),
    },
    async (request) => {
      queryOf(request, NoQuery);
      return useCases.tenants.get(callerOf(request), tenantOf(request.params));
    },
  );

  server.patch(
    '/v1/tenants/:id',
    {
      schema: describe({
        id: 'changeTenant',
        tag: 'tenants',
        summary: 'Change the name, share or rate of a tenant.',
        params: TenantPath,
        body: TenantChange,
        answers: { 200: TenantView },
      }),
    },
    async (request) => {
      queryOf(request, NoQuery);
      return useCases.tenants.change(callerOf(request), tenantOf(request.params), request.body);
    },
  );
}

function tenantOf(params: unknown): string {
  return validate(TenantPath, params).id;
}
