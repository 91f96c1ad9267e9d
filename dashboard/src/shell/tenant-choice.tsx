import { useRef, useState } from 'preact/hooks';
import type { Page, TenantView } from '../../../src/core/wire.js';
import { chooseTenant, DEFAULT_TENANT, tenant } from '../api/client.js';
import { useResource } from '../api/resource.js';
import { session } from '../api/session.js';
import { Dialog } from '../parts/dialog.js';

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

/** No name, so it can be nobody's. */
const ANOTHER = '';

function Choice() {
  const [isAsking, setAsking] = useState(false);
  const { data } = useResource<Page<TenantView>>('/v1/tenants?limit=1000', { allTenants: true });
  const chosen = tenant.value ?? DEFAULT_TENANT;
  const names = [
    ...new Set([DEFAULT_TENANT, chosen, ...(data.value?.data.map(({ id }) => id) ?? [])]),
  ].sort();
  const choose = (select: HTMLSelectElement) => {
    const { value } = select;
    select.value = chosen;
    if (value === ANOTHER) setAsking(true);
    else chooseTenant(value);
  };
  return (
    <>
      <label class="top-tenant">
        <span class="visually-hidden">Tenant</span>
        <select value={chosen} onChange={({ currentTarget }) => choose(currentTarget)}>
          {names.map((name) => (
            <option key={name} value={name}>
              {name}
            </option>
          ))}
          <option value={ANOTHER}>Another …</option>
        </select>
      </label>
      {isAsking && <TenantName onClose={() => setAsking(false)} />}
    </>
  );
}

/** A tenant need not have been made to have jobs, and there may be more of them than a list shows. */
function TenantName({ onClose }: { readonly onClose: () => void }) {
  const input = useRef<HTMLInputElement>(null);
  const submit = (event: Event) => {
    event.preventDefault();
    onClose();
    chooseTenant(input.current!.value);
  };
  return (
    <Dialog title="Show another tenant" onClose={onClose}>
      <form class="form" onSubmit={submit}>
        <label for="tenant-name">Name of the tenant</label>
        <input
          ref={input}
          id="tenant-name"
          required
          autofocus
          pattern="[A-Za-z0-9._:\-]{1,128}"
          spellcheck={false}
        />
        <button type="submit" class="button button-main">
          Show
        </button>
      </form>
    </Dialog>
  );
}
