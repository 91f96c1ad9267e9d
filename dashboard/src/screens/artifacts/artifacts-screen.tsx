import type { ArtifactView } from '../../../../src/core/artifact.js';
import { usePageList } from '../../api/page-list.js';
import { CopyAs } from '../../parts/action.js';
import { EmptyState } from '../../parts/empty-state.js';
import { Moment } from '../../parts/moment.js';
import { ScreenTop } from '../../parts/panel.js';
import { StateBadge } from '../../parts/state-badge.js';
import { type Column, Table } from '../../parts/table.js';
import { bytesText } from './bytes-text.js';

/** What was uploaded for jobs to run, and what jobs left behind. */
export default function ArtifactsScreen() {
  const list = usePageList<ArtifactView>('/v1/artifacts', 100);
  return (
    <>
      <ScreenTop title="Artifacts">
        <CopyAs method="GET" path="/v1/artifacts" cli="punctual artifact list" />
      </ScreenTop>
      <Table
        label="Artifacts"
        columns={COLUMNS}
        rows={list.rows.value}
        keyOf={({ id }) => id}
        pathOf={({ id }) => `/artifacts/${id}`}
        list={list}
        hasKeys
        empty={
          <EmptyState
            title="No artifacts"
            command="punctual artifact push ./packer --name packer --version 1.0.0"
          >
            <p>Programs that jobs run, by name and version, and the files that jobs leave.</p>
          </EmptyState>
        }
      />
    </>
  );
}

const COLUMNS: readonly Column<ArtifactView>[] = [
  {
    title: 'Name',
    render: ({ id, name, output }) => <span class="mono">{name ?? output ?? id}</span>,
  },
  { title: 'Version', width: '120px', render: ({ version }) => version ?? '–' },
  {
    title: 'State',
    width: '100px',
    render: ({ state }) => <StateBadge state={state} tone={state === 'ready' ? 'good' : 'warn'} />,
  },
  {
    ...{ title: 'Kind', width: '110px', hiddenBelow: 'medium' },
    render: ({ kind, machine }) => [kind, machine].filter((each) => each !== null).join(', '),
  },
  {
    ...{ title: 'Size', width: '90px', isNumber: true, hiddenBelow: 'narrow' },
    render: ({ size }) => bytesText(size),
  },
  {
    ...{ title: 'Created', width: '110px', hiddenBelow: 'narrow' },
    render: ({ createdAt }) => <Moment at={createdAt} />,
  },
  { title: 'By', width: '120px', hiddenBelow: 'medium', render: ({ createdBy }) => createdBy },
];
