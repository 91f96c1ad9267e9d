import { humanDuration } from '../core/duration.js';
import type { Job, JobState, ListedJob } from '../core/job.js';
import type { Cell, Column, Output } from './output.js';
import { elapsed, relativeTime } from './output.js';
import type { Style } from './paint.js';

/** Jobs as text. */

const STATE_STYLES: Readonly<Record<JobState, Style>> = {
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

/** The task of a job, or the type of its inline target. */
export function workOf(job: Pick<Job, 'task' | 'target'>): string {
  return job.task ?? (job.target.type === 'handler' ? job.target.name : `(${job.target.type})`);
}

const COLUMNS: readonly Column[] = [
  { header: 'ID' },
  { header: 'STATE' },
  { header: 'TASK', shrink: true },
  { header: 'QUEUE', shrink: true },
  { header: 'PRIO', align: 'right' },
  { header: 'ATTEMPT', align: 'right' },
  { header: 'DUE' },
  { header: 'TOOK', align: 'right' },
  { header: 'KEY', shrink: true },
];

/** A table of jobs. */
export function jobTable(output: Output, jobs: readonly ListedJob[], now: number): string {
  const rows = jobs.map((job): Cell[] => [
    job.id,
    stateCell(job.state),
    workOf(job),
    job.queue,
    String(job.priority),
    `${job.attempt}/${job.maxAttempts}`,
    job.hold ? 'on hold' : relativeTime(job.runAt, now),
    elapsed(job.startedAt, job.finishedAt) ?? '-',
    job.key ?? '-',
  ]);
  return output.table(COLUMNS, rows);
}

function json(value: unknown): string | null {
  return value === null || value === undefined ? null : JSON.stringify(value);
}

function attemptTable(output: Output, job: Job): string {
  if (job.attempts.length === 0) return '';
  const columns: Column[] = [
    { header: 'ATTEMPT', align: 'right' },
    { header: 'OUTCOME' },
    { header: 'WORKER' },
    { header: 'CLAIMED' },
    { header: 'TOOK', align: 'right' },
    { header: 'ERROR', shrink: true },
  ];
  const rows = job.attempts.map((attempt): Cell[] => [
    String(attempt.attempt),
    attempt.outcome === null ? { text: 'running', style: 'cyan' } : attempt.outcome,
    attempt.worker,
    attempt.claimedAt,
    elapsed(attempt.startedAt, attempt.finishedAt) ?? '-',
    attempt.error?.message ?? '',
  ]);
  return `\n${output.table(columns, rows)}`;
}

/** One job in detail. */
export function jobDetails(output: Output, job: Job): string {
  const requires = Object.entries(job.requires).map(([name, value]) => `${name}=${value}`);
  const details = output.details([
    ['id', job.id],
    ['state', job.hold ? `${job.state} (on hold)` : stateCell(job.state)],
    ['task', workOf(job)],
    ['tenant', job.tenant],
    ['queue', `${job.queue} (priority ${job.priority})`],
    ['key', job.key],
    ['created', `${job.createdAt} by ${job.createdBy}`],
    [
      'schedule',
      job.schedule && `${job.schedule}${job.scheduledAt === null ? '' : ` at ${job.scheduledAt}`}`,
    ],
    ['due', job.runAt],
    ['start before', job.startBefore],
    ['started', job.startedAt],
    ['late by', job.lateBy === null ? null : humanDuration(job.lateBy)],
    ['finished', job.finishedAt],
    ['took', elapsed(job.startedAt, job.finishedAt)],
    ['attempt', `${job.attempt} of ${job.maxAttempts}`],
    ['timeout', job.timeout],
    ['delivery', job.delivery],
    ['concurrency key', job.concurrencyKey],
    ['requires', requires.length > 0 ? requires.join(', ') : null],
    ['worker', job.worker],
    ['progress', job.progress === null ? null : progressText(job)],
    ['payload', json(job.payload)],
    ['result', json(job.result)],
    ['error', job.error === null ? null : { text: errorText(job), style: 'red' }],
  ]);
  return details + attemptTable(output, job);
}

/** The last reported progress of a job as text. */
export function progressText(job: Job): string {
  if (job.progress === null) return '';
  const percent = `${Math.round(job.progress.progress * 100)} %`;
  return job.progress.message ? `${percent}, ${job.progress.message}` : percent;
}

/** The error of a job as text. */
export function errorText(job: Job): string {
  if (job.error === null) return '';
  return job.error.code ? `${job.error.message} (${job.error.code})` : job.error.message;
}
