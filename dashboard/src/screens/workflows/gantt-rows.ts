import type { Workflow, WorkflowStepView } from '../../../../src/core/workflow.js';
import type { Span } from '../../parts/span-bar.js';

/** The steps of a workflow in the order in which they could run, each with where its time went: pure, for the Gantt chart. */

/** One line of the chart. */
export interface GanttRow extends WorkflowStepView {
  readonly name: string;
  readonly spans: readonly Span[];
}

/** The chart of a workflow: its lines, and the time that they lie in. */
export interface Gantt {
  readonly rows: readonly GanttRow[];
  readonly from: number;
  readonly to: number;
}

/** The chart of a workflow that was read with its attempts; what has not ended goes on until now. */
export function ganttOf({ jobs, createdAt, endedAt }: Workflow, now: number): Gantt {
  const from = Date.parse(createdAt);
  const rows = Object.entries(jobs).map(([name, step]) => ({ name, ...step, spans: spansOf(step, now) }));
  // Steps that cannot run yet are last, in the order of the workflow.
  const startOf = ({ spans }: GanttRow) => spans[0]?.from ?? Number.POSITIVE_INFINITY;
  rows.sort((a, b) => compare(startOf(a), startOf(b)) || compare(firstRun(a), firstRun(b)));
  const last = endedAt === null ? now : Date.parse(endedAt);
  const to = rows.reduce((most, { spans }) => Math.max(most, spans.at(-1)?.to ?? most), last);
  return { rows, from, to: Math.max(to, from + 1) };
}

function compare(a: number, b: number): number {
  return a === b ? 0 : a - b;
}

function firstRun({ spans }: GanttRow): number {
  return spans.find(({ kind }) => kind === 'running')?.from ?? Number.POSITIVE_INFINITY;
}

function spansOf(
  { readyAt = null, attempts = [], finishedAt, state }: WorkflowStepView,
  now: number,
): Span[] {
  if (readyAt === null) return [];
  const spans: Span[] = [];
  // Clocks of workers may be a little behind the database's.
  let since = Date.parse(readyAt);
  const end = finishedAt === null ? Math.max(now, since) : Math.max(since, Date.parse(finishedAt));
  for (const [i, attempt] of attempts.entries()) {
    const began = Math.max(since, Date.parse(attempt.startedAt));
    const isOver = attempt.finishedAt !== null;
    const ended = Math.max(began, isOver ? Date.parse(attempt.finishedAt!) : end);
    if (began > since) spans.push({ kind: i === 0 ? 'waiting' : 'backoff', from: since, to: began });
    spans.push({ kind: 'running', from: began, to: ended, outcome: attempt.outcome });
    since = ended;
  }
  // What was skipped has done nothing, whenever that was decided.
  if (state === 'skipped' && attempts.length === 0) return [];
  const isBetween = attempts.length === 0 || attempts.at(-1)!.finishedAt !== null;
  if (isBetween && end > since)
    spans.push({ kind: attempts.length === 0 ? 'waiting' : 'backoff', from: since, to: end });
  return spans;
}
