import { useEffect } from 'preact/hooks';
import type { OccurrenceView } from '../../../../src/core/wire.js';
import { usePageList } from '../../api/page-list.js';
import { onEvents } from '../../live/live.js';
import { durationText, exactText } from '../../parts/duration-text.js';
import { Moment } from '../../parts/moment.js';
import { StateBadge, toneOf } from '../../parts/state-badge.js';
import { type Column, Table } from '../../parts/table.js';
import { addressOf } from '../../routing/root.js';
import './schedules.css';

const STRIP = 120;
const LEAST_BETWEEN_MS = 2_000;

/** What became of each occurrence: a strip of the newest, and a list of all. */
export function Ledger({ name }: { readonly name: string }) {
  const list = usePageList<OccurrenceView>(`/v1/schedules/${encodeURIComponent(name)}/occurrences`, STRIP);
  useEffect(() => {
    let timer: number | undefined;
    const stop = onEvents(['schedule.*', 'job.*'], () => {
      timer ??= window.setTimeout(() => {
        timer = undefined;
        void list.restart();
      }, LEAST_BETWEEN_MS);
    });
    return () => {
      clearTimeout(timer);
      stop();
    };
  }, [list]);
  const rows = list.rows.value;
  return (
    <>
      <Strip rows={rows.slice(0, STRIP)} />
      <Table
        label="Ledger"
        columns={COLUMNS}
        rows={rows}
        keyOf={({ at }) => at}
        list={list}
        hasKeys
        empty={<p class="soft">Nothing was due yet.</p>}
      />
    </>
  );
}

function Strip({ rows }: { readonly rows: readonly OccurrenceView[] }) {
  if (rows.length === 0) return null;
  return (
    <ul class="strip" aria-label="The newest occurrences, the oldest of them first">
      {[...rows].reverse().map((row) => (
        <li
          key={row.at}
          class={`strip-mark strip-${toneOf(row.state)}`}
          title={`${exactText(row.at)}: ${stateText(row)}`}
        >
          <span class="visually-hidden">{row.state}</span>
        </li>
      ))}
    </ul>
  );
}

function stateText({ state, count, reason }: OccurrenceView): string {
  return [state, count !== undefined && count > 1 && `× ${count}`, reason && `(${reason})`]
    .filter(Boolean)
    .join(' ');
}

const COLUMNS: readonly Column<OccurrenceView>[] = [
  { title: 'Due', render: ({ at }) => <span title={at}>{exactText(at)}</span> },
  {
    ...{ title: 'State', width: '150px' },
    render: ({ state, count }) => (
      <StateBadge state={state} text={count !== undefined && count > 1 ? `${state} × ${count}` : state} />
    ),
  },
  { title: 'Reason', hiddenBelow: 'narrow', render: ({ reason }) => reason ?? '–' },
  {
    ...{ title: 'Late by', isNumber: true, width: '90px', hiddenBelow: 'narrow' },
    render: ({ lateBy }) => (lateBy === undefined ? '–' : durationText(lateBy)),
  },
  {
    ...{ title: 'Ago', width: '100px', hiddenBelow: 'medium' },
    render: ({ at }) => <Moment at={at} />,
  },
  {
    ...{ title: 'Run', width: '100px' },
    render: ({ jobId, workflowId, batchId }) => {
      if (workflowId) return <a href={addressOf(`/workflows/${workflowId}`)}>workflow</a>;
      if (batchId) return <a href={addressOf(`/batches/${batchId}`)}>batch</a>;
      return jobId ? <a href={addressOf(`/jobs/${jobId}`)}>job</a> : '–';
    },
  },
];
