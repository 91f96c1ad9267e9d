import { humanDuration } from '../core/duration.js';
import type { JobError } from '../core/job.js';
import { nearestName } from '../core/nearest-name.js';
import type { Style } from '../core/paint.js';
import type {
  EventOutcome,
  ListedWorkflow,
  StepWait,
  Workflow,
  WorkflowState,
  WorkflowStepView,
} from '../core/workflow.js';
import { errorLine, STATE_STYLES, waitedFor } from './job-text.js';
import { type Cell, type Column, elapsed, type Output, relativeTime } from './output.js';
import { truncate } from './text-width.js';

/** Workflows as text. */

/** Why steps failed or were cancelled, by their names. */
export type Failures = ReadonlyMap<string, JobError | null>;

const WORKFLOW_STYLES: Readonly<Record<WorkflowState, Style>> = {
  running: 'cyan',
  succeeded: 'green',
  failed: 'red',
  cancelled: 'dim',
};

/** The state in its colour. */
function stateOf({ state, held }: ListedWorkflow): Cell {
  return held ? `${state} (on hold)` : { text: state, style: WORKFLOW_STYLES[state] };
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
    stateOf(workflow),
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
export function workflowLine(workflow: Workflow): string {
  return `${workflow.state}, ${progressLine(workflow)}${workflow.held ? ', on hold' : ''}`;
}

/** How many steps have ended, and how. */
function progressLine({ state, progress, stopping }: Workflow): string {
  const { steps, ended, failed } = progress;
  const failures = failed > 0 ? `, ${failed} failed` : '';
  const stop = state === 'running' && stopping !== null ? `, stopping (${stopping})` : '';
  return `${ended} of ${steps} steps ended${failures}${stop}`;
}

/** What became of an event. */
export function eventLine({ completed, repeated }: EventOutcome): string {
  if (repeated) return 'an event of that name had come before, nothing was changed';
  if (completed.length === 0) return 'kept for steps that will wait for it';
  const names = completed.slice(0, MOST_NAMES).join(', ');
  return `ended ${names}${completed.length > MOST_NAMES ? ` and ${completed.length - MOST_NAMES} more` : ''}`;
}

/** What is said about an event that no step waits for. */
export function unexpectedEvent({ name, awaited }: EventOutcome): string {
  const meant = nearestName(name, awaited);
  const others = awaited.length > 0 ? ` Steps wait for: ${awaited.join(', ')}.` : '';
  const hint = meant === undefined ? others : ` Did you mean ${meant}?`;
  return `No step that has not ended waits for an event ${name}.${hint}`;
}

const STEP_COLUMNS: readonly Column[] = [
  { header: 'STEP', shrink: 'name' },
  { header: 'STATE' },
  { header: 'AFTER', shrink: true, drop: 2 },
  { header: 'RUN IF', drop: 4 },
  { header: 'FINISHED', drop: 1 },
  { header: 'JOB', shrink: 'id' },
];
/** Where attempts were asked for. */
const TIME_COLUMNS: readonly Column[] = [
  { header: 'WAITED', align: 'right' },
  { header: 'RAN', align: 'right' },
  { header: 'ATTEMPTS', align: 'right' },
];
/** Why steps failed, and what they wait for. */
const WHY_COLUMN: Column = { header: 'WHY', shrink: true };
/** How much of a reason a table shows, where it is not narrower. */
const MOST_REASON = 100;

/** Steps that a person reads; of larger workflows, `--json` shows all. */
const MOST_STEPS_SHOWN = 200;

/** One workflow in detail. */
export function workflowDetails(
  output: Output,
  workflow: Workflow,
  now: number,
  failures: Failures = new Map(),
): string {
  const details = output.details([
    ['id', workflow.id],
    ['name', workflow.name],
    ['state', stateOf(workflow)],
    ['steps', progressLine(workflow)],
    ['tenant', workflow.tenant],
    ['key', workflow.key],
    [
      'definition',
      workflow.definition && `${workflow.definition.name} version ${workflow.definition.version}`,
    ],
    ['schedule', workflow.schedule],
    ['scheduled at', workflow.scheduledAt],
    ['rerun of', workflow.rerunOf],
    ['run', workflow.run > 1 ? String(workflow.run) : null],
    ['step of', workflow.parent && `workflow ${workflow.parent.workflow}`],
    ['on failure', workflow.onFailure === 'stop' ? `stop, running steps ${workflow.running}` : 'continue'],
    ['created', `${workflow.createdAt} by ${workflow.createdBy}`],
    ['ended', workflow.endedAt],
    ['took', elapsed(workflow.createdAt, workflow.endedAt)],
  ]);
  return `${details}\n${stepTable(output, workflow, now, failures)}${criticalPathTable(output, workflow)}`;
}

/** The steps, those that failed first: of many steps, only some are shown. */
function stepTable(output: Output, { jobs }: Workflow, now: number, failures: Failures): string {
  const all = Object.entries(jobs);
  const steps = [
    ...all.filter(([, { state }]) => state === 'failed'),
    ...all.filter(([, { state }]) => state !== 'failed'),
  ].slice(0, MOST_STEPS_SHOWN);
  const whys = steps.map(([name, { waitsFor }]) => reasonOf(failures.get(name)) ?? waitText(waitsFor));
  const hasWhy = whys.some((why) => why !== null);
  const hasTimes = steps.some(([, { attempts }]) => attempts !== undefined);
  const rows = steps.map(([name, step], i): Cell[] => [
    ...[name, { text: step.state, style: STATE_STYLES[step.state] }],
    ...[step.after.join(', ') || '-', step.runIf, relativeTime(step.finishedAt, now), step.id],
    ...(hasTimes ? timeCells(step, now) : []),
    ...(hasWhy ? [truncate(whys[i] ?? '', MOST_REASON)] : []),
  ]);
  const columns = [...STEP_COLUMNS, ...(hasTimes ? TIME_COLUMNS : []), ...(hasWhy ? [WHY_COLUMN] : [])];
  const left = all.length - steps.length;
  const more = left > 0 ? `… ${left} more steps; --json shows all\n` : '';
  return `${output.table(columns, rows)}${more}`;
}

/** How long a step waited and ran, until now if it still does. */
function timeCells({ readyAt = null, finishedAt, attempts = [] }: WorkflowStepView, now: number): Cell[] {
  const end = finishedAt === null ? now : Date.parse(finishedAt);
  const [first] = attempts;
  const started = first ? Date.parse(first.startedAt) : end;
  // A worker's clock may be a little behind the database's.
  const waited = readyAt === null ? '-' : humanDuration(Math.max(0, started - Date.parse(readyAt)));
  return [waited, first ? humanDuration(Math.max(0, end - started)) : '-', String(attempts.length)];
}

function reasonOf(error: JobError | null | undefined): string | null {
  return error ? errorLine(error) : null;
}

function waitText(wait: StepWait | null): string | null {
  const what = waitedFor(wait);
  return what === null ? null : `waits for ${what}`;
}

/** Lines about steps that wait below a drawing. */
const MOST_WAITS = 10;

/** What steps wait for besides steps, for below a drawing. */
export function waitLines({ jobs }: Pick<Workflow, 'jobs'>, width?: number): string {
  const waits = Object.entries(jobs).flatMap(([name, { waitsFor }]) => {
    const text = waitText(waitsFor);
    return text === null ? [] : [`${name} ${text}`];
  });
  const left = waits.length - MOST_WAITS;
  const lines = left > 0 ? [...waits.slice(0, MOST_WAITS), `… and ${left} more`] : waits;
  return lines.map((line) => `${width === undefined ? line : truncate(line, width)}\n`).join('');
}

const PATH_COLUMNS: readonly Column[] = [
  { header: 'CRITICAL PATH', shrink: 'name' },
  { header: 'STATE', drop: 1 },
  { header: 'WAITED', align: 'right' },
  { header: 'RAN', align: 'right' },
  { header: 'TOTAL', align: 'right' },
];

/** Steps of the critical path that a person reads: those that took longest. */
const MOST_OF_PATH_SHOWN = 20;

/** The steps that determined the end of a workflow, or determine how far it is; nothing before the first one has ended. */
function criticalPathTable(output: Output, { criticalPath, progress }: Workflow): string {
  if (progress.ended === 0) return '';
  const { steps, left, totalMs, waitedMs, ranMs } = criticalPath;
  const byLength = [...steps].sort((a, b) => b.totalMs - a.totalMs);
  const shown = new Set(byLength.slice(0, MOST_OF_PATH_SHOWN));
  const rows = steps
    .filter((step) => shown.has(step))
    .map((step): Cell[] => [
      step.name,
      { text: step.state, style: STATE_STYLES[step.state] },
      humanDuration(step.waitedMs),
      humanDuration(step.ranMs),
      humanDuration(step.totalMs),
    ]);
  const hidden = steps.length - rows.length + left;
  const others = hidden > 0 ? `(and ${hidden} shorter)` : '';
  const sums: Cell[] = [
    others === '' ? 'in all' : `in all ${others}`,
    '',
    humanDuration(waitedMs),
    humanDuration(ranMs),
    humanDuration(totalMs),
  ];
  return `\n${output.table(PATH_COLUMNS, [...rows, sums])}`;
}

/** The most names of steps on one line. */
const MOST_NAMES = 20;

/**
 * The critical path on one line, for below a drawing; empty before the first step has ended. Where it does not fit, names in the
 * middle are left out.
 */
export function criticalPathLine(
  { criticalPath, progress }: Pick<Workflow, 'criticalPath' | 'progress'>,
  width?: number,
): string {
  if (progress.ended === 0) return '';
  const { steps, left, totalMs } = criticalPath;
  const names = steps.map(({ name }) => name);
  for (let shown = Math.min(names.length, MOST_NAMES); ; shown -= 1) {
    const isWhole = shown === names.length && left === 0;
    const first = names.slice(0, Math.ceil(shown / 2));
    const last = names.slice(names.length - Math.floor(shown / 2));
    const path = [...first, ...(isWhole ? [] : ['…']), ...last].join(' → ');
    const line = `critical path (${humanDuration(totalMs)}): ${path}`;
    if (width === undefined || line.length <= width || shown <= 1)
      return `${width === undefined ? line : truncate(line, width)}\n`;
  }
}
