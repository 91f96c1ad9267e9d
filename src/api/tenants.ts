import { PunctualError } from '../core/errors.js';
import { DEFAULT_TENANT_LIMITS } from '../core/limits.js';
import { changeQuotas, NO_QUOTAS } from '../core/quotas.js';
import { rateOf, rateView } from '../core/rate.js';
import { NewTenant, TenantChange, TenantPage, TenantView } from '../core/schemas/limits.js';
import { PageQuery, TenantPath } from '../core/schemas/query.js';
import type * as wire from '../core/wire.js';
import { rateOfRow } from '../store/queues.js';
import { findTenant, listTenants, quotasOfRow, type TenantRow } from '../store/tenants.js';
import type { Caller } from './caller.js';
import type { NodeContext } from './context.js';
import { answerOf } from './idempotency.js';
import { json, type Route, route } from './route.js';

/**
 * Tenants with their weights and limits. Jobs can be submitted for a tenant that was not added: it has the defaults.
 */
export const tenantRoutes: readonly Route[] = [
  route({
    id: 'createTenant',
    audit: 'tenant.create',
    method: 'POST',
    path: '/v1/tenants',
    tag: 'tenants',
    summary: 'Make a tenant. One with this id exists: 409.',
    scope: 'operator',
    body: json(NewTenant),
    answers: { 201: TenantView },
    idempotent: true,
    run: async ({ node, body: { id, name, weight, rate, quotas }, call }) => {
      const shard = node.shardOf(id);
      const { settings } = await shard.leader();
      const limits = {
        weight: weight ?? DEFAULT_TENANT_LIMITS.weight,
        rate: rate ? rateOf(rate) : null,
        quotas: changeQuotas(NO_QUOTAS, quotas),
      };
      return answerOf<TenantRow | null, wire.TenantView>(
        shard,
        call,
        (requested) => settings.addTenant(id, name ?? id, limits, requested),
        (_, row) => {
          if (!row) throw new PunctualError('TENANT_EXISTS', `There is a tenant ${id} already.`);
          return viewOf(node, row);
        },
      );
    },
  }),
  route({
    id: 'listTenants',
    method: 'GET',
    path: '/v1/tenants',
    tag: 'tenants',
    summary: 'List the tenants, by id; a key of a tenant is shown its own.',
    scope: 'read',
    query: PageQuery,
    answers: { 200: TenantPage },
    run: async ({ node, caller, query: { after = '', limit } }) => {
      const rows = caller.operator
        ? await listTenants(node.shards[0].pool, after, limit + 1)
        : await ownRows(node, caller, after);
      const data = rows.slice(0, limit).map((row) => viewOf(node, row));
      return { data, next: rows.length > limit ? data.at(-1)!.id : null };
    },
  }),
  route({
    id: 'getTenant',
    method: 'GET',
    path: '/v1/tenants/:id',
    tag: 'tenants',
    summary: 'Read a tenant; for a key of a tenant, there is no other than its own.',
    scope: 'read',
    params: TenantPath,
    answers: { 200: TenantView },
    run: async ({ node, caller, params: { id } }) => {
      const isShown = caller.operator || id === caller.tenant;
      const row = isShown ? await findTenant(node.shardOf(id).pool, id) : null;
      if (!row) throw notFound(id);
      return viewOf(node, row);
    },
  }),
  route({
    id: 'changeTenant',
    audit: 'tenant.change',
    method: 'PATCH',
    path: '/v1/tenants/:id',
    tag: 'tenants',
    summary: 'Change the name, share, rate or quotas of a tenant.',
    scope: 'operator',
    params: TenantPath,
    body: json(TenantChange),
    answers: { 200: TenantView },
    run: async ({ node, params: { id }, body: { name, weight, rate, quotas }, call }) => {
      const { settings } = await node.shardOf(id).leader();
      const change = (now: TenantRow) => ({
        name: name ?? now.name,
        weight: weight ?? now.weight,
        rate: rate === undefined ? rateOfRow(now) : rate && rateOf(rate),
        quotas: changeQuotas(quotasOfRow(now), quotas),
      });
      const row = await settings.changeTenant(id, change, call.author);
      if (!row) throw notFound(id);
      return viewOf(node, row);
    },
  }),
];

/** What the list shows to a key of a tenant: its own tenant, if that was added. */
async function ownRows(node: NodeContext, { tenant }: Caller, after: string): Promise<TenantRow[]> {
  const own = await findTenant(node.shardOf(tenant).pool, tenant);
  return own && own.id > after ? [own] : [];
}

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
