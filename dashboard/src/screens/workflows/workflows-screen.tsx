import type { ListedWorkflow } from '../../../../src/core/workflow.js';
import { useListNews } from '../../api/fresh-list.js';
import { usePageList } from '../../api/page-list.js';
import { CopyAs } from '../../parts/action.js';
import { countText, durationText } from '../../parts/duration-text.js';
import { EmptyState } from '../../parts/empty-state.js';
import { Moment } from '../../parts/moment.js';
import { ScreenTop } from '../../parts/panel.js';
import { quoted } from '../../parts/quoted.js';
import { StateBadge } from '../../parts/state-badge.js';
import { StateFilter } from '../../parts/state-filter.js';
import { type Column, Table } from '../../parts/table.js';
import { query } from '../../routing/location.js';

const STATES = ['running', 'succeeded', 'failed', 'cancelled'];
const FILTERS = ['state', 'name', 'definition', 'schedule', 'key'];

/** Workflows, the newest first. */
export default function WorkflowsScreen() {
  const filters = FILTERS.flatMap((name) => {
    const value = query.value.get(name);
    return value ? [[name, value] as [string, string]] : [];
  });
  const search = new URLSearchParams(filters).toString();
  const path = search === '' ? '/v1/workflows' : `/v1/workflows?${search}`;
  const list = usePageList<ListedWorkflow>(path);
  useListNews(list, { keyOf: idOf, events: ['workflow.*'] });
  const options = filters.map(([name, value]) => ` --${name} ${quoted(value)}`).join('');
  return (
    <>
      <ScreenTop title="Workflows">
        <StateFilter states={STATES} />
        <CopyAs method="GET" path={path} cli={`punctual workflow list${options}`} />
      </ScreenTop>
      <Table
        label="Workflows"
        columns={COLUMNS}
        rows={list.rows.value}
        keyOf={idOf}
        pathOf={({ id }) => `/workflows/${id}`}
        list={list}
        hasKeys
        empty={
          <EmptyState title="No workflows that fit" command="punctual workflow submit workflow.json">
            <p>A workflow is a graph of jobs: each step runs when those before it have ended.</p>
          </EmptyState>
        }
      />
    </>
  );
}

const idOf = ({ id }: ListedWorkflow) => id;

const COLUMNS: readonly Column<ListedWorkflow>[] = [
  { title: 'Name', render: ({ name }) => name },
  {
    ...{ title: 'State', width: '110px' },
    render: ({ state, held }) =>
      held ? <StateBadge state="held" text="on hold" /> : <StateBadge state={state} />,
  },
  {
    ...{ title: 'Ended', isNumber: true, width: '120px' },
    render: ({ progress: { ended, steps } }) => `${countText(ended)} of ${countText(steps)}`,
  },
  {
    ...{ title: 'Failed', isNumber: true, width: '80px', hiddenBelow: 'narrow' },
    render: ({ progress: { failed } }) => countText(failed),
  },
  {
    ...{ title: 'Started by', hiddenBelow: 'medium' },
    render: ({ schedule, createdBy }) => (schedule === null ? createdBy : `schedule ${schedule}`),
  },
  {
    ...{ title: 'Took', isNumber: true, width: '100px', hiddenBelow: 'medium' },
    render: ({ createdAt, endedAt }) =>
      endedAt === null ? '–' : durationText(Date.parse(endedAt) - Date.parse(createdAt)),
  },
  {
    ...{ title: 'Submitted', width: '110px', hiddenBelow: 'narrow' },
    render: ({ createdAt }) => <Moment at={createdAt} />,
  },
];
