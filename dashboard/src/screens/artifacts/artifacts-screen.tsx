import type { ArtifactView } from '../../../../src/core/artifact.js';
import { usePageList } from '../../api/page-list.js';
import { CopyAs } from '../../parts/action.js';
import { bytesText } from '../../parts/bytes-text.js';
import { EmptyState } from '../../parts/empty-state.js';
import { TextField } from '../../parts/form.js';
import { Moment } from '../../parts/moment.js';
import { ScreenTop } from '../../parts/panel.js';
import { quoted } from '../../parts/quoted.js';
import { StateBadge } from '../../parts/state-badge.js';
import { StateFilter } from '../../parts/state-filter.js';
import { type Column, Table } from '../../parts/table.js';
import { query, setQuery } from '../../routing/location.js';
import { kindText } from './artifact-words.js';
import { DeleteArtifact } from './delete-artifact.js';
import { DownloadArtifact } from './download-artifact.js';

const STATES = ['pending', 'ready'];
const FILTERS = ['name', 'state', 'job'];

/** What was uploaded for jobs to run, and what jobs have left, the newest first. */
export default function ArtifactsScreen() {
  const filters = FILTERS.flatMap((name) => {
    const value = query.value.get(name);
    return value ? [[name, value] as [string, string]] : [];
  });
  const search = new URLSearchParams(filters).toString();
  const path = search === '' ? '/v1/artifacts' : `/v1/artifacts?${search}`;
  const list = usePageList<ArtifactView>(path, 100);
  // The command does not narrow by state.
  const options = filters
    .filter(([name]) => name !== 'state')
    .map(([name, value]) => ` --${name} ${quoted(value)}`)
    .join('');
  return (
    <>
      <ScreenTop title="Artifacts">
        <StateFilter states={STATES} />
        <CopyAs method="GET" path={path} cli={`punctual artifact list${options}`} />
      </ScreenTop>
      <search class="filters">
        <TextField
          label="Name"
          placeholder="All names"
          hint="The whole name, without its version"
          isLazy
          value={query.value.get('name') ?? ''}
          onChange={(text) => setQuery({ name: text.trim() })}
          problem={list.problem.value}
          pointer="/name"
        />
      </search>
      <Table
        label="Artifacts"
        columns={columnsOf(() => void list.restart())}
        rows={list.rows.value}
        keyOf={({ id }) => id}
        pathOf={({ id }) => `/artifacts/${id}`}
        list={list}
        hasKeys
        empty={
          <EmptyState
            title="No artifacts that fit"
            command="punctual artifact push ./packer --name packer --version 1.0.0"
          >
            <p>
              An artifact is a program or a file that was uploaded for jobs with an exec target, or that a job
              has left in its folder <code>output</code>.
            </p>
          </EmptyState>
        }
      />
    </>
  );
}

function columnsOf(refresh: () => void): readonly Column<ArtifactView>[] {
  return [
    {
      title: 'Artifact',
      render: ({ name, version, output, sha256 }) => (
        <span class="mono">{name === null ? (output ?? sha256.slice(0, 16)) : `${name}@${version}`}</span>
      ),
    },
    {
      ...{ title: 'State', width: '100px' },
      render: ({ state }) => <StateBadge state={state} tone={state === 'ready' ? 'good' : 'warn'} />,
    },
    { title: 'What', width: '150px', hiddenBelow: 'medium', render: kindText },
    { title: 'Size', isNumber: true, width: '90px', render: ({ size }) => bytesText(size) },
    { title: 'By', width: '130px', hiddenBelow: 'medium', render: ({ createdBy }) => createdBy },
    {
      ...{ title: 'Made', width: '110px', hiddenBelow: 'narrow' },
      render: ({ createdAt }) => <Moment at={createdAt} />,
    },
    {
      ...{ title: 'Change', width: '220px', hiddenBelow: 'narrow' },
      render: (artifact) => (
        <>
          <DownloadArtifact artifact={artifact} isSmall />{' '}
          <DeleteArtifact artifact={artifact} isSmall onDone={refresh} />
        </>
      ),
    },
  ];
}
