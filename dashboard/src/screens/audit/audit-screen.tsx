import { useMemo, useState } from 'preact/hooks';
import type { AuditView } from '../../../../src/core/audit.js';
import { usePageList } from '../../api/page-list.js';
import { CopyAs } from '../../parts/action.js';
import { EmptyState } from '../../parts/empty-state.js';
import { TextField } from '../../parts/form.js';
import { Moment } from '../../parts/moment.js';
import { ScreenTop } from '../../parts/panel.js';
import { quoted } from '../../parts/quoted.js';
import { StateBadge } from '../../parts/state-badge.js';
import { type Column, Table } from '../../parts/table.js';
import { isOfAllTenants, TenantScope } from '../../parts/tenant-scope.js';
import { query, setQuery } from '../../routing/location.js';
import { AuditEntryDialog } from './audit-entry.js';

/** What the list can be narrowed to; each is a parameter of the address, of the API and of the command. */
const FILTERS = [
  { name: 'action', label: 'Action', hint: 'Such as queue.pause' },
  { name: 'subject', label: 'Subject', hint: 'An id or a name' },
  { name: 'since', label: 'Since', hint: 'Such as 2h, or a moment' },
  { name: 'until', label: 'Until', hint: 'Such as 1h, or a moment' },
] as const;

/** Who did what, from where, when, and what it changed. */
export default function AuditScreen() {
  const parameters = query.value;
  const [chosen, setChosen] = useState<AuditView | null>(null);
  const path = useMemo(() => pathOf(parameters), [parameters.toString()]);
  const allTenants = isOfAllTenants();
  const list = usePageList<AuditView>(path, 100, allTenants);
  return (
    <>
      <ScreenTop title="Audit">
        <TenantScope />
        <CopyAs
          method="GET"
          path={path}
          cli={`punctual audit list${optionsOf(parameters)}`}
          allTenants={allTenants}
        />
      </ScreenTop>
      <search class="filters">
        {FILTERS.map(({ name, label, hint }) => (
          <TextField
            key={name}
            label={label}
            placeholder={hint}
            isLazy
            value={parameters.get(name) ?? ''}
            onChange={(text) => setQuery({ [name]: text.trim() })}
            problem={list.problem.value}
            pointer={`/${name}`}
          />
        ))}
      </search>
      <Table
        label="Audit"
        columns={columnsOf(setChosen)}
        rows={list.rows.value}
        keyOf={({ id }) => id}
        list={list}
        hasKeys
        empty={
          <EmptyState title="Nothing that fits" command="punctual audit list">
            <p>Every administrative and steering action is recorded together with its effect.</p>
          </EmptyState>
        }
      />
      {chosen && <AuditEntryDialog entry={chosen} onClose={() => setChosen(null)} />}
    </>
  );
}

function given(parameters: URLSearchParams): [name: string, value: string][] {
  return FILTERS.flatMap(({ name }) => {
    const value = parameters.get(name);
    return value ? [[name, value] as [string, string]] : [];
  });
}

function pathOf(parameters: URLSearchParams): string {
  const text = new URLSearchParams(given(parameters)).toString();
  return text === '' ? '/v1/audit' : `/v1/audit?${text}`;
}

function optionsOf(parameters: URLSearchParams): string {
  return given(parameters)
    .map(([name, value]) => ` --${name} ${quoted(value)}`)
    .join('');
}

function columnsOf(choose: (entry: AuditView) => void): readonly Column<AuditView>[] {
  return [
    {
      title: 'Action',
      render: (entry) => (
        <button type="button" class="link mono" onClick={() => choose(entry)}>
          {entry.action}
        </button>
      ),
    },
    { title: 'Subject', render: ({ subject }) => <span class="mono">{subject}</span> },
    { title: 'By', hiddenBelow: 'narrow', render: ({ keyName }) => keyName },
    { title: 'When', width: '110px', render: ({ at }) => <Moment at={at} /> },
    {
      ...{ title: 'From', hiddenBelow: 'medium' },
      render: ({ address }) => <span class="mono">{address ?? '–'}</span>,
    },
    {
      ...{ title: 'Tenant', hiddenBelow: 'medium' },
      render: ({ tenant }) => tenant ?? 'operator',
    },
    {
      ...{ title: 'Outcome', width: '90px', hiddenBelow: 'narrow' },
      render: ({ outcome }) => (
        <StateBadge
          state={outcome}
          tone={outcome === 'done' ? 'good' : outcome === 'failed' ? 'bad' : 'warn'}
        />
      ),
    },
  ];
}
