import type { Batch, BatchMember, BatchWhy } from '../../../../src/core/batch.js';
import { useResource } from '../../api/resource.js';
import { ActionButton, CopyAs } from '../../parts/action.js';
import { Facts } from '../../parts/facts.js';
import { Moment } from '../../parts/moment.js';
import { Panel, ScreenTop } from '../../parts/panel.js';
import { quoted } from '../../parts/quoted.js';
import { StateBadge } from '../../parts/state-badge.js';
import { type Column, Table } from '../../parts/table.js';
import type { ScreenProps } from '../../routing/routes.js';

/** The members of one batch and what they wait for. */
export default function BatchScreen({ params: { id = '' } }: ScreenProps) {
  const path = `/v1/batches/${encodeURIComponent(id)}`;
  const batch = useResource<Batch>(path, { events: ['batch.*', 'job.*'], about: id });
  const view = batch.data.value;
  return (
    <>
      <ScreenTop title="Batch">
        {view && <Steering batch={view} onDone={() => void batch.refresh()} />}
        <CopyAs method="GET" path={path} cli={`punctual batch get ${quoted(id)}`} />
      </ScreenTop>
      <div class="stack">
        {view?.state === 'pending' && <Waiting path={path} />}
        <Panel title="State" resource={batch}>
          {(now) => <State batch={now} />}
        </Panel>
        <Panel title="Jobs" resource={batch}>
          {({ jobs }) => (
            <Table
              label="Jobs of the batch"
              columns={COLUMNS}
              rows={jobs}
              keyOf={(member) => member.id}
              pathOf={(member) => `/jobs/${member.id}`}
              empty={<p class="soft">It has no jobs.</p>}
              hasKeys
            />
          )}
        </Panel>
      </div>
    </>
  );
}

const COLUMNS: readonly Column<BatchMember>[] = [
  { title: 'Job', render: ({ id }) => <span class="mono">{id}</span> },
  { title: 'State', width: '120px', render: ({ state }) => <StateBadge state={state} /> },
];

/** Why it has not started: what of it finds no place. */
function Waiting({ path }: { readonly path: string }) {
  const why = useResource<BatchWhy>(`${path}/why`, { everyMs: 3_000, events: ['worker.*', 'batch.*'] });
  const text = why.data.value?.detail;
  return text === undefined ? null : (
    <p class="notice notice-warn" role="status">
      {text}
    </p>
  );
}

function State({ batch }: { readonly batch: Batch }) {
  const { id, state, size, onFailure, startTimeout, run, dueAt, schedule, error } = batch;
  return (
    <Facts
      facts={[
        ['State', <StateBadge key="state" state={state} />],
        ['Why it failed', error?.message],
        ['Jobs', size],
        ['Due', <Moment key="due" at={dueAt} />],
        ['Must start within', startTimeout],
        ['When one fails', onFailure === 'continue' ? 'the others go on' : 'the others are cancelled'],
        ['Started', batch.startedAt && <Moment key="started" at={batch.startedAt} />],
        ['Ended', batch.endedAt && <Moment key="ended" at={batch.endedAt} />],
        ['Schedule', schedule],
        ['Time it runs', run > 1 ? run : null],
        [
          'Id',
          <span key="id" class="mono">
            {id}
          </span>,
        ],
      ]}
    />
  );
}

interface SteeringProps {
  readonly batch: Batch;
  readonly onDone: () => void;
}

function Steering({ batch: { id, state }, onDone }: SteeringProps) {
  const path = `/v1/batches/${id}`;
  if (state === 'failed' || state === 'cancelled') {
    return (
      <ActionButton
        isMain
        action={{
          label: 'Retry',
          method: 'POST',
          path: `${path}/retry`,
          cli: `punctual batch retry ${id}`,
          scope: 'submit',
          done: 'All of its jobs start together again.',
          onDone,
        }}
      />
    );
  }
  if (state === 'succeeded') return null;
  return (
    <ActionButton
      action={{
        label: 'Cancel',
        method: 'POST',
        path: `${path}/cancel`,
        cli: `punctual batch cancel ${id}`,
        scope: 'submit',
        done: 'The batch is cancelled with all its jobs.',
        isDangerous: true,
        question: {
          title: 'Cancel this batch?',
          text: 'All of its jobs are cancelled; those that run are told to stop. A retry can start it again.',
          verb: 'Cancel it',
          isDangerous: true,
        },
        onDone,
      }}
    />
  );
}
