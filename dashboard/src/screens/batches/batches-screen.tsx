import type { BatchSummary } from '../../../../src/core/batch.js';
import { useListNews } from '../../api/fresh-list.js';
import { usePageList } from '../../api/page-list.js';
import { CopyAs } from '../../parts/action.js';
import { countText } from '../../parts/duration-text.js';
import { EmptyState } from '../../parts/empty-state.js';
import { Moment } from '../../parts/moment.js';
import { ScreenTop } from '../../parts/panel.js';
import { quoted } from '../../parts/quoted.js';
import { StateBadge } from '../../parts/state-badge.js';
import { StateFilter } from '../../parts/state-filter.js';
import { type Column, Table } from '../../parts/table.js';
import { query } from '../../routing/location.js';

const STATES = ['pending', 'running', 'succeeded', 'failed', 'cancelled'];

/** Batches, the newest first. */
export default function BatchesScreen() {
  const state = query.value.get('state');
  const path = state ? `/v1/batches?state=${encodeURIComponent(state)}` : '/v1/batches';
  const list = usePageList<BatchSummary>(path);
  useListNews(list, { keyOf: idOf, events: ['batch.*'] });
  return (
    <>
      <ScreenTop title="Batches">
        <StateFilter states={STATES} />
        <CopyAs
          method="GET"
          path={path}
          cli={`punctual batch list${state ? ` --state ${quoted(state)}` : ''}`}
        />
      </ScreenTop>
      <Table
        label="Batches"
        columns={COLUMNS}
        rows={list.rows.value}
        keyOf={idOf}
        pathOf={({ id }) => `/batches/${id}`}
        list={list}
        hasKeys
        empty={
          <EmptyState title="No batches that fit" command="punctual batch submit batch.json">
            <p>A batch is a set of jobs that start together, or not at all.</p>
          </EmptyState>
        }
      />
    </>
  );
}

const idOf = ({ id }: BatchSummary) => id;

const COLUMNS: readonly Column<BatchSummary>[] = [
  { title: 'Batch', render: ({ id }) => <span class="mono">{id}</span> },
  { title: 'State', width: '110px', render: ({ state }) => <StateBadge state={state} /> },
  { title: 'Jobs', isNumber: true, width: '80px', render: ({ size }) => countText(size) },
  {
    ...{ title: 'Started by', hiddenBelow: 'medium' },
    render: ({ schedule, createdBy }) => (schedule === null ? createdBy : `schedule ${schedule}`),
  },
  {
    ...{ title: 'Started', width: '110px', hiddenBelow: 'narrow' },
    render: ({ startedAt }) => (startedAt === null ? '–' : <Moment at={startedAt} />),
  },
  {
    ...{ title: 'Submitted', width: '110px', hiddenBelow: 'narrow' },
    render: ({ createdAt }) => <Moment at={createdAt} />,
  },
];
