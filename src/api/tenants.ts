import { PunctualError } from '../core/errors.js';
import { DEFAULT_TENANT_LIMITS } from '../core/limits.js';
import { changeQuotas, NO_QUOTAS } from '../core/quotas.js';
import { rateOf, rateView } from '../core/rate.js';
import { NewTenant, TenantChange, TenantPage, TenantView } from '../core/schemas/limits.js';
import { PageQuery, TenantPath } from '../core/schemas/query.js';
import type * as wire from '../core/wire.js';
import { rateOfRow } from '../store/queues.js';
import { findTenant, listTenants, quotasOfRow, type TenantRow } from '../store/tenants.js';
import type { NodeContext } from './context.js';
import { json, type Route, route } from './route.js';

/**
 * Tenants with their weights and limits. Jobs can be submitted for a tenant that was not added: it has the defaults.
 */
export const tenantRoutes: readonly Route[] = [
  route({
    id: 'createTenant',
    method: 'POST',
    path: '/v1/tenants',
    tag: 'tenants',
    summary: 'Make a tenant. One with this id exists: 409.',
    scope: 'operator',
    body: json(NewTenant),
    answers: { 201: TenantView },
    run: async ({ node, body: { id, name, weight, rate, quotas } }) => {
      const { settings } = await node.shardOf(id).leader();
      const row = await settings.addTenant(id, name ?? id, {
        weight: weight ?? DEFAULT_TENANT_LIMITS.weight,
        rate: rate ? rateOf(rate) : null,
        quotas: changeQuotas(NO_QUOTAS, quotas),
      });
      if (!row) throw new PunctualError('TENANT_EXISTS', `There is a tenant ${id} already.`);
      return viewOf(node, row);
    },
  }),
  route({
    id: 'listTenants',
    method: 'GET',
    path: '/v1/tenants',
    tag: 'tenants',
    summary: 'List the tenants, by id.',
    scope: 'operator',
    query: PageQuery,
    answers: { 200: TenantPage },
    run: async ({ node, query: { after = '', limit } }) => {
      const rows = await listTenants(node.shards[0].pool, after, limit + 1);
      const data = rows.slice(0, limit).map((row) => viewOf(node, row));
      return { data, next: rows.length > limit ? data.at(-1)!.id : null };
    },
  }),
  route({
    id: 'getTenant',
    method: 'GET',
    path: '/v1/tenants/:id',
    tag: 'tenants',
    summary: 'Read a tenant.',
    scope: 'operator',
    params: TenantPath,
    answers: { 200: TenantView },
    run: async ({ node, params: { id } }) => {
      const row = await findTenant(node.shardOf(id).pool, id);
      if (!row) throw notFound(id);
      return viewOf(node, row);
    },
  }),
  route({
    id: 'changeTenant',
    method: 'PATCH',
    path: '/v1/tenants/:id',
    tag: 'tenants',
    summary: 'Change the name, share, rate or quotas of a tenant.',
    scope: 'operator',
    params: TenantPath,
    body: json(TenantChange),
    answers: { 200: TenantView },
    run: async ({ node, params: { id }, body: { name, weight, rate, quotas } }) => {
      const { settings } = await node.shardOf(id).leader();
      const row = await settings.changeTenant(id, (now) => ({
        name: name ?? now.name,
        weight: weight ?? now.weight,
        rate: rate === undefined ? rateOfRow(now) : rate && rateOf(rate),
        quotas: changeQuotas(quotasOfRow(now), quotas),
      }));
      if (!row) throw notFound(id);
      return viewOf(node, row);
    },
  }),
];

function viewOf(node: NodeContext, row: TenantRow): wire.TenantView {
  const rate = rateOfRow(row);
  return {
    id: row.id,
    name: row.name,
    shard: node.shardOf(row.id).id,
    weight: row.weight,
    rate: rate && rateView(rate),
    quotas: quotasOfRow(row),
    createdAt: new Date(row.created_at).toISOString(),
  };
}

function notFound(id: string): PunctualError {
  return new PunctualError('TENANT_NOT_FOUND', `There is no tenant ${id}.`);
}
