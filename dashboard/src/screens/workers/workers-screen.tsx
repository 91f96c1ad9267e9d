import type { WorkerView } from '../../../../src/core/wire.js';
import { useFreshList } from '../../api/fresh-list.js';
import { CopyAs } from '../../parts/action.js';
import { countText } from '../../parts/duration-text.js';
import { EmptyState } from '../../parts/empty-state.js';
import { Moment } from '../../parts/moment.js';
import { ScreenTop } from '../../parts/panel.js';
import { StateBadge } from '../../parts/state-badge.js';
import { type Column, Table } from '../../parts/table.js';
import { isOfAllTenants, TenantScope } from '../../parts/tenant-scope.js';
import { Words } from '../../parts/words.js';
import { Drain } from './drain.js';

/** Signs of life are no events. */
const SIGNS_EVERY_MS = 5_000;

/** Workers with their heartbeats and slots. */
export default function WorkersScreen() {
  const allTenants = isOfAllTenants();
  const list = useFreshList<WorkerView>('/v1/workers', {
    allTenants,
    keyOf: ({ id }) => id,
    events: ['worker.*'],
    everyMs: SIGNS_EVERY_MS,
  });
  const refresh = () => void list.restart();
  return (
    <>
      <ScreenTop title="Workers">
        <TenantScope />
        <CopyAs method="GET" path="/v1/workers" cli="punctual worker list" allTenants={allTenants} />
      </ScreenTop>
      <Table
        label="Workers"
        columns={columnsOf(allTenants, refresh)}
        rows={list.rows.value}
        keyOf={({ id }) => id}
        pathOf={({ id }) => `/workers/${encodeURIComponent(id)}`}
        list={list}
        hasKeys
        empty={
          <EmptyState title="No workers" command="punctual worker run --module tasks.js">
            <p>Jobs wait until a worker that serves their queue and can run their target registers.</p>
          </EmptyState>
        }
      />
    </>
  );
}

function columnsOf(allTenants: boolean, refresh: () => void): readonly Column<WorkerView>[] {
  return [
    { title: 'Worker', render: ({ name }) => name },
    { title: 'State', width: '90px', render: ({ state }) => <StateBadge state={state} /> },
    {
      ...{ title: 'Running', isNumber: true, width: '100px' },
      render: ({ running, slots }) => `${countText(running)} of ${countText(slots)}`,
    },
    {
      ...{ title: 'Last seen', width: '110px', hiddenBelow: 'narrow' },
      render: ({ lastSeen }) => <Moment at={lastSeen} />,
    },
    {
      ...{ title: 'Serves', width: '110px', hiddenBelow: 'medium' },
      render: ({ shared, tenant }) => (shared ? 'all tenants' : tenant),
    },
    {
      ...{ title: 'Version', width: '80px', hiddenBelow: 'medium' },
      render: ({ version }) => version ?? '–',
    },
    { title: 'Queues', hiddenBelow: 'medium', render: ({ queues }) => <Words words={queues} most={3} /> },
    { title: 'Runs', hiddenBelow: 'medium', render: ({ targets }) => targets.join(', ') },
    {
      ...{ title: 'Steer', width: '120px', hiddenBelow: 'narrow' },
      render: (worker) => <Drain worker={worker} allTenants={allTenants} isSmall onDone={refresh} />,
    },
  ];
}
