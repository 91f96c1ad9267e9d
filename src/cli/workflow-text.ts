import type { Style } from '../core/paint.js';
import type { ListedWorkflow, Workflow, WorkflowState } from '../core/workflow.js';
import { STATE_STYLES } from './job-text.js';
import { type Cell, type Column, elapsed, type Output, relativeTime } from './output.js';

/** Workflows as text. */

const WORKFLOW_STYLES: Readonly<Record<WorkflowState, Style>> = {
  running: 'cyan',
  succeeded: 'green',
  failed: 'red',
  cancelled: 'dim',
};

/** A state in its colour. */
function stateCell(state: WorkflowState): Cell {
  return { text: state, style: WORKFLOW_STYLES[state] };
}

const COLUMNS: readonly Column[] = [
  { header: 'ID', shrink: 'id' },
  { header: 'STATE' },
  { header: 'NAME', shrink: 'name' },
  { header: 'ENDED', align: 'right' },
  { header: 'FAILED', align: 'right', drop: 2 },
  { header: 'CREATED', drop: 4 },
  { header: 'TOOK', align: 'right', drop: 3 },
  { header: 'KEY', shrink: 'name', drop: 1 },
];

/** A table of workflows. */
export function workflowTable(output: Output, workflows: readonly ListedWorkflow[], now: number): string {
  const rows = workflows.map((workflow): Cell[] => [
    workflow.id,
    stateCell(workflow.state),
    workflow.name,
    `${workflow.progress.ended}/${workflow.progress.steps}`,
    String(workflow.progress.failed),
    relativeTime(workflow.createdAt, now),
    elapsed(workflow.createdAt, workflow.endedAt) ?? '-',
    workflow.key ?? '-',
  ]);
  return output.table(COLUMNS, rows);
}

/** How far a workflow is, on one line. */
export function workflowLine({ state, progress, stopping }: Workflow): string {
  const { steps, ended, failed } = progress;
  const failures = failed > 0 ? `, ${failed} failed` : '';
  const stop = state === 'running' && stopping !== null ? `, stopping (${stopping})` : '';
  return `${state}, ${ended} of ${steps} steps ended${failures}${stop}`;
}

const STEP_COLUMNS: readonly Column[] = [
  { header: 'STEP', shrink: 'name' },
  { header: 'STATE' },
  { header: 'AFTER', shrink: true, drop: 2 },
  { header: 'RUN IF', drop: 3 },
  { header: 'FINISHED', drop: 1 },
  { header: 'JOB', shrink: 'id' },
];

/** Steps that a person reads; of larger workflows, `--json` shows all. */
const MOST_STEPS_SHOWN = 200;

/** One workflow in detail. */
export function workflowDetails(output: Output, workflow: Workflow, now: number): string {
  const details = output.details([
    ['id', workflow.id],
    ['name', workflow.name],
    ['state', stateCell(workflow.state)],
    ['steps', workflowLine(workflow)],
    ['tenant', workflow.tenant],
    ['key', workflow.key],
    ['run', workflow.run > 1 ? String(workflow.run) : null],
    ['step of', workflow.parent && `workflow ${workflow.parent.workflow}`],
    ['on failure', workflow.onFailure === 'stop' ? `stop, running steps ${workflow.running}` : 'continue'],
    ['created', `${workflow.createdAt} by ${workflow.createdBy}`],
    ['ended', workflow.endedAt],
    ['took', elapsed(workflow.createdAt, workflow.endedAt)],
  ]);
  const steps = Object.entries(workflow.jobs);
  const rows = steps
    .slice(0, MOST_STEPS_SHOWN)
    .map(([name, step]): Cell[] => [
      name,
      { text: step.state, style: STATE_STYLES[step.state] },
      step.after.join(', ') || '-',
      step.runIf,
      relativeTime(step.finishedAt, now),
      step.id,
    ]);
  const more =
    steps.length > MOST_STEPS_SHOWN
      ? `… ${steps.length - MOST_STEPS_SHOWN} more steps; --json shows all\n`
      : '';
  return `${details}\n${output.table(STEP_COLUMNS, rows)}${more}`;
}
