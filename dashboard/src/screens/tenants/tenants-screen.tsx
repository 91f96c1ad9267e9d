import { useState } from 'preact/hooks';
import type { Quotas } from '../../../../src/core/quotas.js';
import type { Page, TenantView } from '../../../../src/core/wire.js';
import { chooseTenant } from '../../api/client.js';
import { usePageList } from '../../api/page-list.js';
import { useResource } from '../../api/resource.js';
import { may } from '../../api/session.js';
import { CopyAs } from '../../parts/action.js';
import { countText } from '../../parts/duration-text.js';
import { EmptyState } from '../../parts/empty-state.js';
import { rateText } from '../../parts/limit-text.js';
import { Moment } from '../../parts/moment.js';
import { ScreenTop } from '../../parts/panel.js';
import { type Column, Table } from '../../parts/table.js';
import { Words } from '../../parts/words.js';
import { goTo } from '../../routing/location.js';
import { QUOTA_LABELS, TenantForm } from './tenant-form.js';

/** The tenants with their shares and quotas; a tenant sees itself. */
export default function TenantsScreen() {
  const list = usePageList<TenantView>('/v1/tenants', 100);
  // The choice at the top of the page has those that it knows.
  const known = useResource<Page<TenantView>>('/v1/tenants?limit=1000', { allTenants: true });
  const refresh = () => {
    void list.restart();
    void known.refresh();
  };
  const [form, setForm] = useState<{ readonly tenant?: TenantView } | null>(null);
  return (
    <>
      <ScreenTop title="Tenants">
        {may('operator') && (
          <button type="button" class="button button-main" onClick={() => setForm({})}>
            New tenant
          </button>
        )}
        <CopyAs method="GET" path="/v1/tenants" cli="punctual tenant list" allTenants />
      </ScreenTop>
      <Table
        label="Tenants"
        columns={columnsOf((tenant) => setForm({ tenant }))}
        rows={list.rows.value}
        keyOf={({ id }) => id}
        list={list}
        hasKeys
        empty={
          <EmptyState title="No tenants" command="punctual tenant create acme">
            <p>
              Any name can be used as a tenant. One that was made can also have a share, a rate and quotas of
              its own.
            </p>
          </EmptyState>
        }
      />
      {form && <TenantForm {...form} onClose={() => setForm(null)} onDone={refresh} />}
    </>
  );
}

function quotaWords(quotas: Quotas): string[] {
  return (Object.keys(QUOTA_LABELS) as (keyof Quotas)[])
    .filter((each) => quotas[each] !== null && quotas[each] !== undefined)
    .map((each) => `${QUOTA_LABELS[each]} ${countText(quotas[each]!)}`);
}

function look(id: string): void {
  chooseTenant(id);
  goTo('/');
}

function columnsOf(change: (tenant: TenantView) => void): readonly Column<TenantView>[] {
  const isOperator = may('operator');
  return [
    { title: 'Tenant', render: ({ id }) => <span class="mono">{id}</span> },
    { title: 'Name', hiddenBelow: 'narrow', render: ({ name }) => name },
    { title: 'Weight', isNumber: true, width: '80px', render: ({ weight }) => weight },
    { title: 'Rate', width: '90px', hiddenBelow: 'medium', render: ({ rate }) => rateText(rate) },
    {
      ...{ title: 'Quotas', hiddenBelow: 'medium' },
      render: ({ quotas }) => <Words words={quotaWords(quotas)} none="none" most={3} />,
    },
    { title: 'Shard', isNumber: true, width: '70px', hiddenBelow: 'medium', render: ({ shard }) => shard },
    {
      ...{ title: 'Made', width: '110px', hiddenBelow: 'narrow' },
      render: ({ createdAt }) => <Moment at={createdAt} />,
    },
    {
      ...{ title: 'Change', width: '200px' },
      render: (tenant) =>
        isOperator && (
          <span class="actions">
            <button type="button" class="button button-small" onClick={() => look(tenant.id)}>
              Look at it
            </button>
            <button type="button" class="button button-small" onClick={() => change(tenant)}>
              Limits
            </button>
          </span>
        ),
    },
  ];
}
