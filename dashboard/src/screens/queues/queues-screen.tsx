import { useState } from 'preact/hooks';
import type { QueueView, UnservedView } from '../../../../src/core/wire.js';
import { useFreshList } from '../../api/fresh-list.js';
import { useResource } from '../../api/resource.js';
import { may } from '../../api/session.js';
import { CopyAs } from '../../parts/action.js';
import { countText, durationText } from '../../parts/duration-text.js';
import { EmptyState } from '../../parts/empty-state.js';
import { rateText } from '../../parts/limit-text.js';
import { Moment } from '../../parts/moment.js';
import { ScreenTop } from '../../parts/panel.js';
import { StateBadge } from '../../parts/state-badge.js';
import { type Column, Table } from '../../parts/table.js';
import { QueueLimitsDialog } from './queue-limits.js';
import { QueuePause } from './queue-pause.js';

/** Figures of queues move with every job, so they are read again by time and not by events. */
const FIGURES_EVERY_MS = 5_000;

/** Queues with their depth, age and limits. */
export default function QueuesScreen() {
  const list = useFreshList<QueueView>('/v1/queues', {
    keyOf: ({ name }) => name,
    events: ['queue.*'],
    everyMs: FIGURES_EVERY_MS,
  });
  const [limited, setLimited] = useState<QueueView | null>(null);
  const refresh = () => void list.restart();
  return (
    <>
      <ScreenTop title="Queues">
        <CopyAs method="GET" path="/v1/queues" cli="punctual queue list" />
      </ScreenTop>
      <Unserved />
      <Table
        label="Queues"
        columns={columnsOf(refresh, setLimited)}
        rows={list.rows.value}
        keyOf={({ name }) => name}
        pathOf={({ name }) => `/queues/${encodeURIComponent(name)}`}
        list={list}
        hasKeys
        empty={
          <EmptyState title="No queues yet" command="punctual job submit greet --queue mail">
            <p>A queue comes into being with the first job that is submitted to it.</p>
          </EmptyState>
        }
      />
      {limited && <QueueLimitsDialog queue={limited} onClose={() => setLimited(null)} onDone={refresh} />}
    </>
  );
}

function columnsOf(refresh: () => void, limit: (queue: QueueView) => void): readonly Column<QueueView>[] {
  return [
    { title: 'Queue', render: ({ name }) => <span class="mono">{name}</span> },
    {
      title: 'State',
      width: '90px',
      render: ({ paused }) => (
        <StateBadge state={paused ? 'paused' : 'open'} tone={paused ? 'held' : 'good'} />
      ),
    },
    {
      ...{ title: 'Ready', isNumber: true, width: '90px' },
      render: ({ ready, more }) => `${countText(ready)}${more ? '+' : ''}`,
    },
    {
      ...{ title: 'Oldest', isNumber: true, width: '100px', hiddenBelow: 'narrow' },
      render: ({ oldestReadyMs }) => (oldestReadyMs === null ? '–' : durationText(oldestReadyMs)),
    },
    { title: 'Running', isNumber: true, width: '80px', render: ({ running }) => countText(running) },
    {
      ...{ title: 'Soon due', isNumber: true, width: '90px', hiddenBelow: 'medium' },
      render: ({ upcoming }) => countText(upcoming),
    },
    { title: 'Limits', hiddenBelow: 'medium', render: (queue) => limitsText(queue) },
    {
      ...{ title: 'Change', width: '205px', hiddenBelow: 'narrow' },
      render: (queue) => (
        <span class="actions">
          {may('admin') && (
            <button type="button" class="button button-small" onClick={() => limit(queue)}>
              Limits
            </button>
          )}
          <QueuePause queue={queue} isSmall onDone={refresh} />
        </span>
      ),
    },
  ];
}

/** The limits of a queue in a few words. */
export function limitsText({ concurrency, rate, weight }: QueueView): string {
  const parts = [
    concurrency !== null && `${concurrency} at a time`,
    rate !== null && `${rateText(rate)}`,
    weight !== 1 && `weight ${weight}`,
  ].filter(Boolean);
  return parts.length === 0 ? 'none' : parts.join(', ');
}

/** What no worker serves: it would wait for ever, so it stands above everything else. */
function Unserved() {
  const found = useResource<{ readonly data: readonly UnservedView[] }>('/v1/unserved', {
    everyMs: FIGURES_EVERY_MS,
    events: ['worker.*'],
  });
  const rows = found.data.value?.data ?? [];
  if (rows.length === 0) return null;
  return (
    <ul class="notice notice-warn" aria-label="Not served by any worker">
      {rows.slice(0, 10).map((row) => (
        <li key={`${row.queue} ${row.task} ${JSON.stringify(row.requires)}`}>
          {row.detail} (since <Moment at={row.since} />)
        </li>
      ))}
    </ul>
  );
}
