import { humanDuration, parseDuration } from '../core/duration.js';
import type { Job, JobError, JobState, ListedJob, RelativeList, Target } from '../core/job.js';
import { indented } from '../core/log-line.js';
import type { Style } from '../core/paint.js';
import type { StepWait } from '../core/workflow.js';
import { type ProgramFacts, programDetails, programName } from './job-program.js';
import type { Cell, Column, Output } from './output.js';
import { elapsed, relativeTime } from './output.js';
import { truncate } from './text-width.js';

/** Jobs as text. */

/** The colours of the states. */
export const STATE_STYLES: Readonly<Record<JobState, Style>> = {
  blocked: 'dim',
  pending: 'yellow',
  running: 'cyan',
  succeeded: 'green',
  failed: 'red',
  cancelled: 'dim',
  skipped: 'dim',
};

/** A state in its colour. */
function stateCell(state: JobState): Cell {
  return { text: state, style: STATE_STYLES[state] };
}

/** The task of a job, or what its inline target is; `-` for a step that only waits. */
export function workOf({ task, target }: Pick<Job, 'task' | 'target'>): string {
  return task ?? targetText(target);
}

/** What a target runs or calls. */
export function targetText(target: Target): string {
  if (target.type === 'handler') return target.name || '-';
  if (target.type === 'http') return `${target.method ?? 'POST'} ${target.url}`;
  return target.artifact ?? target.command ?? '-';
}

const COLUMNS: readonly Column[] = [
  { header: 'ID', shrink: 'id' },
  { header: 'STATE' },
  { header: 'TASK', shrink: 'name' },
  { header: 'QUEUE', shrink: 'name', drop: 5 },
  { header: 'PRIO', align: 'right', drop: 1 },
  { header: 'ATTEMPT', align: 'right', drop: 4 },
  { header: 'DUE' },
  { header: 'TOOK', align: 'right', drop: 3 },
  { header: 'KEY', shrink: 'name', drop: 2 },
];

/** Only where there are steps of workflows. */
const STEP: Column = { header: 'STEP', shrink: 'name' };

/** How much of an error a table shows, where it is not narrower. */
const MAX_ERROR_LENGTH = 80;

/** A table of jobs. Errors that were not asked for are shown if there are any, and room for them. */
export function jobTable(
  output: Output,
  jobs: readonly ListedJob[],
  now: number,
  errorsWanted = false,
): string {
  const withErrors = errorsWanted || jobs.some(({ error }) => error !== null);
  const withSteps = jobs.some(({ step }) => step !== null);
  const rows = jobs.map((job): Cell[] => [
    job.id,
    stateCell(job.state),
    ...(withSteps ? [job.step ?? '-'] : []),
    workOf(job),
    job.queue,
    String(job.priority),
    `${triesOf(job)}/${job.maxAttempts}`,
    job.hold ? 'on hold' : relativeTime(job.runAt, now),
    elapsed(job.startedAt, job.finishedAt) ?? '-',
    job.key ?? '-',
    ...(withErrors ? [truncate(errorLine(job.error), MAX_ERROR_LENGTH)] : []),
  ]);
  const errors: Column = { header: 'ERROR', shrink: true, ...(!errorsWanted && { drop: 0 }) };
  const columns = withSteps ? COLUMNS.toSpliced(2, 0, STEP) : COLUMNS;
  return output.table(withErrors ? [...columns, errors] : columns, rows);
}

/**
 * Which of its `maxAttempts` a job has used or uses now. Lost attempts do not count, nor do those before the job was run
 * again.
 */
function triesOf({ state, failures, attempts }: Pick<Job, 'state' | 'failures' | 'attempts'>): number {
  const last = attempts.at(-1);
  const isInFailures = !last || ['failed', 'timed-out', 'lost'].includes(last.outcome ?? '');
  return state === 'pending' || isInFailures ? failures : failures + 1;
}

/** The code and the message of an error on one line. */
export function errorLine(error: JobError | null): string {
  if (error === null) return '-';
  return error.code ? `${error.code}: ${error.message}` : error.message;
}

/** A value on one line; null when there is none. */
export function json(value: unknown): string | null {
  return value === null || value === undefined ? null : JSON.stringify(value);
}

function attemptTable(output: Output, job: Job): string {
  if (job.attempts.length === 0) return '';
  const columns: Column[] = [
    { header: 'ATTEMPT', align: 'right' },
    { header: 'OUTCOME' },
    // Never shortened: a node does not know workers any more that have left, and could not complete their ids.
    { header: 'WORKER', drop: 1 },
    { header: 'CLAIMED', drop: 2 },
    { header: 'TOOK', align: 'right' },
    { header: 'ERROR', shrink: true },
  ];
  const rows = job.attempts.map((attempt): Cell[] => [
    String(attempt.attempt),
    attempt.outcome === null ? { text: 'running', style: 'cyan' } : attempt.outcome,
    attempt.worker,
    attempt.claimedAt,
    elapsed(attempt.startedAt, attempt.finishedAt) ?? '-',
    attempt.error ? errorLine(attempt.error) : '',
  ]);
  return `\n${output.table(columns, rows)}`;
}

/** One job in detail, with what the nodes know about the program that it runs. */
export function jobDetails(output: Output, job: Job, facts: ProgramFacts | null = null): string {
  const requires = Object.entries(job.requires).map(([name, value]) => `${name}=${value}`);
  // A step that waits for an event, a time or a workflow is nothing that a worker runs.
  const runs = job.task !== null || job.target.type !== 'handler' || job.target.name !== '';
  const details = output.details([
    ['id', job.id],
    ['state', job.hold ? `${job.state} (on hold)` : stateCell(job.state)],
    ['waits for', reportText(job) ?? waitedFor(job.waitsFor)],
    ['cancel asked', job.cancelRequestedAt],
    ...workDetails(job, facts),
    ['tenant', job.tenant],
    ['queue', `${job.queue} (priority ${job.priority})`],
    ['key', job.key],
    ['created', `${job.createdAt} by ${job.createdBy}`],
    ['workflow', job.workflow],
    ['step', job.step],
    ['steps before', relativesText(job, 'dependsOn', 'ancestors')],
    ['steps behind', relativesText(job, 'dependents', 'descendants')],
    [
      'schedule',
      job.schedule && `${job.schedule}${job.scheduledAt === null ? '' : ` at ${job.scheduledAt}`}`,
    ],
    ['due', job.runAt],
    ['start before', job.startBefore],
    ['started', job.startedAt],
    ['late by', latenessText(job)],
    ['finished', job.finishedAt],
    ['took', elapsed(job.startedAt, job.finishedAt)],
    ['attempt', runs ? attemptText(job) : null],
    ['timeout', runs ? job.timeout : null],
    ['delivery', runs ? job.delivery : null],
    ['concurrency key', job.concurrencyKey],
    ['requires', requires.length > 0 ? requires.join(', ') : null],
    ['worker', job.worker],
    ...programDetails(job, facts),
    ['progress', job.progress === null ? null : progressText(job)],
    ['payload', json(job.payload)],
    ['result', json(job.result)],
    ['error', job.error === null ? null : { text: permanence(job) + errorText(job), style: 'red' }],
  ]);
  const stack = job.error?.stack ? `\n${output.paint('dim', indented(job.error.stack))}\n` : '';
  return details + stack + attemptTable(output, job);
}

/** The task, the inline target, or both where the task runs a program; nothing for a step that only waits. */
function workDetails({ task, target }: Job, facts: ProgramFacts | null): [string, string | null][] {
  const program = target.type === 'exec' ? programName(target, facts) : null;
  if (task === null && target.type !== 'handler') return [['target', program ?? targetText(target)]];
  return [
    ['task', task ?? (target.type === 'handler' && target.name !== '' ? target.name : null)],
    ['runs', program],
  ];
}

/** That whoever has an attempt that was handed on is to report, and until when. */
function reportText({ state, handedOnAt, startedAt, timeout }: Job): string | null {
  if (state !== 'running' || handedOnAt === null) return null;
  const until = Date.parse(startedAt ?? handedOnAt) + (parseDuration(timeout) ?? 0);
  return `a report until ${new Date(until).toISOString()}; its worker handed it on at ${handedOnAt}`;
}

/** What a step waits for besides steps, to complete "waits for …"; null if it does not. */
export function waitedFor(waitsFor: StepWait | null): string | null {
  if (waitsFor === null) return null;
  const until = waitsFor.until === null ? '' : ` until ${waitsFor.until}`;
  if (waitsFor.event !== null) return `the event ${waitsFor.event}${until}`;
  if (waitsFor.until !== null) return `the time ${waitsFor.until}`;
  return waitsFor.workflow === null
    ? 'its workflow, which is about to start'
    : `workflow ${waitsFor.workflow}`;
}

/** How many steps are next to a job in its workflow, and how many there are in that direction. */
function relativesText(job: Job, near: RelativeList, all: RelativeList): string | null {
  if (job[all].length === 0) return null;
  const count = (list: RelativeList) =>
    `${job[list].length}${job.relativesCut?.includes(list) ? ' or more' : ''}`;
  return `${count(near)} (${count(all)} in all)`;
}

/** The start that was late is that of the first attempt; the due time and the start above it are those of the last. */
function latenessText({ lateBy, attempt }: Job): string | null {
  if (lateBy === null) return null;
  return attempt > 1 ? `${humanDuration(lateBy)} (the first attempt)` : humanDuration(lateBy);
}

function attemptText(job: Job): string {
  const tries = triesOf(job);
  if (tries === job.attempt) return `${tries} of ${job.maxAttempts}`;
  return `${job.attempt}, of which ${tries} of ${job.maxAttempts} count`;
}

/** The last reported progress of a job as text. */
export function progressText(job: Job): string {
  if (job.progress === null) return '';
  const percent = `${Math.round(job.progress.progress * 100)} %`;
  return job.progress.message ? `${percent}, ${job.progress.message}` : percent;
}

/** That no retry followed because of what was thrown, which only the stack tells. */
function permanence({ error }: Job): string {
  return error?.stack?.startsWith('PermanentError: ') ? 'PermanentError: ' : '';
}

/** What the loss of an attempt means for a job that was to be cancelled. */
const LOST_BEFORE_STOP =
  ' It had been told to stop, so the job is cancelled; whether it did stop is not known.';

/** The error of a job as text. */
export function errorText({ error, state }: Job): string {
  if (error === null) return '';
  const more = state === 'cancelled' && error.code === 'LOST' ? LOST_BEFORE_STOP : '';
  return error.code ? `${error.message}${more} (${error.code})` : error.message;
}
