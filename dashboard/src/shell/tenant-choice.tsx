import type { Page, TenantView } from '../../../src/core/wire.js';
import { chooseTenant, DEFAULT_TENANT, tenant } from '../api/client.js';
import { useResource } from '../api/resource.js';
import { session } from '../api/session.js';

/** Where an operator says whose jobs to show. Others see the name of their tenant. */
export function TenantChoice() {
  const who = session.value;
  if (!who) return null;
  if (who.operator) return <Choice />;
  return (
    <span class="top-tenant" title="The tenant of your key">
      {who.tenant}
    </span>
  );
}

function Choice() {
  const { data } = useResource<Page<TenantView>>('/v1/tenants?limit=1000', { events: ['leader.elected'] });
  const chosen = tenant.value ?? DEFAULT_TENANT;
  const names = [
    ...new Set([DEFAULT_TENANT, chosen, ...(data.value?.data.map(({ id }) => id) ?? [])]),
  ].sort();
  return (
    <label class="top-tenant">
      <span class="visually-hidden">Tenant</span>
      <select value={chosen} onChange={({ currentTarget }) => chooseTenant(currentTarget.value)}>
        {names.map((name) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </select>
    </label>
  );
}
