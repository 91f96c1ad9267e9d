import { DEFAULT_TENANT, tenant } from '../api/client.js';
import { session } from '../api/session.js';
import { query, setQuery } from '../routing/location.js';
import { Choice } from './choice.js';

/** What belongs to no tenant is only in the list of all, so operators see that one unless they choose otherwise. */

const PARAMETER = 'of';

/** Whether a list that can be of all tenants is. */
export function isOfAllTenants(): boolean {
  return session.value?.operator === true && query.value.get(PARAMETER) !== 'tenant';
}

/** Where an operator narrows such a list to the chosen tenant; nothing for others. */
export function TenantScope() {
  if (!session.value?.operator) return null;
  return (
    <Choice
      label="Whose"
      options={[
        ['all', 'All tenants'],
        ['tenant', `Of ${tenant.value ?? DEFAULT_TENANT}`],
      ]}
      chosen={isOfAllTenants() ? 'all' : 'tenant'}
      onChoose={(value) => setQuery({ [PARAMETER]: value === 'all' ? null : value })}
    />
  );
}
