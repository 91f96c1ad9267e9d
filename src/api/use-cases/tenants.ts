import { PunctualError } from '../../core/errors.js';
import { DEFAULT_TENANT_LIMITS } from '../../core/limits.js';
import { rateOf, rateView } from '../../core/rate.js';
import { NewTenant, TenantChange } from '../../core/schemas/limits.js';
import { validate } from '../../core/schemas/validate.js';
import type { Page, TenantView } from '../../core/wire.js';
import { rateOfRow } from '../../store/queues.js';
import { findTenant, listTenants, type TenantRow } from '../../store/tenants.js';
import type { NodeContext } from '../context.js';
import type { Caller, TenantUseCases } from '../use-cases.js';

/** Tenants with their shares and limits. Work can be submitted for a tenant that nobody made: it has the defaults. */
export class Tenants implements TenantUseCases {
  constructor(private readonly node: NodeContext) {}

  async create(caller: Caller, body: unknown): Promise<TenantView> {
    mustOperate(caller);
    const { id, name, weight, rate } = validate(NewTenant, body);
    const { governing } = await this.node.leader();
    const row = await governing.addTenant(id, name ?? id, {
      weight: weight ?? DEFAULT_TENANT_LIMITS.weight,
      rate: rate ? rateOf(rate) : null,
    });
    if (!row) throw new PunctualError('TENANT_EXISTS', `There is a tenant ${id} already.`);
    return this.view(row);
  }

  async list(caller: Caller, after: string | undefined, limit: number): Promise<Page<TenantView>> {
    mustOperate(caller);
    const rows = await listTenants(this.node.pool, after ?? '', limit + 1);
    const data = rows.slice(0, limit).map((row) => this.view(row));
    return { data, next: rows.length > limit ? data.at(-1)!.id : null };
  }

  async get(caller: Caller, id: string): Promise<TenantView> {
    mustOperate(caller);
    const row = await findTenant(this.node.pool, id);
    if (!row) throw notFound(id);
    return this.view(row);
  }

  async change(caller: Caller, id: string, body: unknown): Promise<TenantView> {
    mustOperate(caller);
    const { name, weight, rate } = validate(TenantChange, body);
    const { governing } = await this.node.leader();
    const row = await governing.changeTenant(id, (now) => ({
      name: name ?? now.name,
      weight: weight ?? now.weight,
      rate: rate === undefined ? rateOfRow(now) : rate && rateOf(rate),
    }));
    if (!row) throw notFound(id);
    return this.view(row);
  }

  private view(row: TenantRow): TenantView {
    const rate = rateOfRow(row);
    return {
      id: row.id,
      name: row.name,
      shard: this.node.shard,
      weight: row.weight,
      rate: rate && rateView(rate),
      createdAt: new Date(row.created_at).toISOString(),
    };
  }
}

function mustOperate(caller: Caller): void {
  if (!caller.operator) throw new PunctualError('FORBIDDEN', 'Only an operator may see or change tenants.');
}

function notFound(id: string): PunctualError {
  return new PunctualError('TENANT_NOT_FOUND', `There is no tenant ${id}.`);
}
