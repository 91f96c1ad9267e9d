import type { Workflow } from '../../../../src/core/workflow.js';
import { nodeTime } from '../../api/client.js';
import { durationText } from '../../parts/duration-text.js';
import { eachSecond } from '../../parts/now.js';
import { SpanBar, SpanLegend } from '../../parts/span-bar.js';
import { StateBadge } from '../../parts/state-badge.js';
import { type Column, Table } from '../../parts/table.js';
import { type Gantt, type GanttRow, ganttOf } from './gantt-rows.js';
import './workflows.css';

interface GanttViewProps {
  /** Read with its attempts. */
  readonly workflow: Workflow;
  /** Steps that decide when the workflow ends. */
  readonly critical: ReadonlySet<string>;
}

/** When each step waited and ran, one below the other; those that decide when the workflow ends are marked. */
export function GanttView({ workflow, critical }: GanttViewProps) {
  const isOver = workflow.endedAt !== null;
  const gantt = ganttOf(workflow, isOver ? nodeTime() : Math.max(eachSecond.value, nodeTime()));
  return (
    <div class="stack">
      <p class="gantt-legend">
        <SpanLegend kinds={['waiting', 'running', 'backoff']} />
        <span class="soft">
          <CriticalMark /> on the critical path
        </span>
      </p>
      <Table
        label="Gantt chart of the steps"
        columns={columnsOf(gantt, critical)}
        rows={gantt.rows}
        keyOf={({ name }) => name}
        pathOf={({ id }) => `/jobs/${id}`}
        empty={<p class="soft">It has no steps.</p>}
        hasKeys
      />
    </div>
  );
}

function CriticalMark() {
  return (
    <svg class="gantt-mark" viewBox="0 0 10 10" aria-hidden="true">
      <path d="M5 0 10 5 5 10 0 5z" />
    </svg>
  );
}

function columnsOf(gantt: Gantt, critical: ReadonlySet<string>): readonly Column<GanttRow>[] {
  const scale = (at: number) => (at - gantt.from) / (gantt.to - gantt.from);
  return [
    {
      ...{ title: 'Step', width: '26%' },
      render: ({ name }) => (
        <>
          {critical.has(name) && (
            <>
              <CriticalMark /> <span class="visually-hidden">critical: </span>
            </>
          )}
          {name}
        </>
      ),
    },
    {
      ...{ title: 'State', width: '110px', hiddenBelow: 'medium' },
      render: ({ state }) => <StateBadge state={state} />,
    },
    {
      title: 'Time',
      head: <Axis totalMs={gantt.to - gantt.from} />,
      isWhole: true,
      render: ({ spans }) => <SpanBar spans={spans} scale={scale} />,
    },
    {
      ...{ title: 'Took', isNumber: true, width: '90px', hiddenBelow: 'narrow' },
      render: ({ spans }) => (spans.length === 0 ? '–' : durationText(spans.at(-1)!.to - spans[0]!.from)),
    },
  ];
}

const TICKS = [0, 1, 2, 3] as const;

/** Quarters of the time since the submission; the lines behind the bars stand at the same places. */
function Axis({ totalMs }: { readonly totalMs: number }) {
  return (
    <span class="gantt-axis">
      {TICKS.map((tick) => (
        <span key={tick}>{durationText((totalMs * tick) / TICKS.length)}</span>
      ))}
    </span>
  );
}
