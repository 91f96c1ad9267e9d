import { humanDuration } from '../core/duration.js';
import type { Style } from '../core/paint.js';
import type { OccurrenceView, ScheduleView } from '../core/wire.js';
import { json, STATE_STYLES, targetText } from './job-text.js';
import { type Cell, type Column, type Output, plural, relativeTime } from './output.js';
import { pausesOf } from './task-text.js';

/** Schedules and occurrences as text. */

const COLUMNS: readonly Column[] = [
  { header: 'SCHEDULE', shrink: 'name' },
  { header: 'STATE' },
  { header: 'WHEN', shrink: 'name' },
  { header: 'RUNS', shrink: 'name', drop: 2 },
  { header: 'NEXT' },
  { header: 'LAST', drop: 1 },
];

const OCCURRENCES: readonly Column[] = [
  { header: 'AT' },
  { header: 'STATE' },
  { header: 'LATE BY', align: 'right' },
  { header: 'RUN', shrink: 'id' },
  { header: 'WHY', shrink: true },
];

const STYLES: Readonly<Record<OccurrenceView['state'], Style>> = {
  ran: 'green',
  late: 'yellow',
  skipped: 'dim',
  missed: 'red',
  pending: 'cyan',
};

/** The one who pauses schedules whose URL has answered 410, and does nothing else to them. */
const SYSTEM = 'system';

function isGone({ paused, changedBy }: ScheduleView): boolean {
  return paused && changedBy === SYSTEM;
}

const stateOf = (schedule: ScheduleView): Cell =>
  schedule.paused
    ? { text: isGone(schedule) ? 'paused (gone)' : 'paused', style: 'yellow' }
    : schedule.nextAt === null
      ? { text: 'over', style: 'dim' }
      : { text: 'active', style: 'green' };

/** When it is due, as it was given. */
function whenOf(schedule: ScheduleView): string {
  if (schedule.at !== undefined) return `at ${schedule.at}`;
  if (schedule.every !== undefined) return `every ${schedule.every}`;
  return `${schedule.cron} (${schedule.timezone})`;
}

function runsOf({ task, target, workflow, batch }: ScheduleView): string {
  if (workflow !== undefined) return `workflow ${workflow}`;
  if (batch !== undefined) return `batch of ${plural(batch.jobs.length, 'job')}`;
  return task ?? (target ? targetText(target) : '-');
}

function catchUpOf({ catchUp = 'latest' }: ScheduleView): string {
  return typeof catchUp === 'string' ? catchUp : `within ${catchUp.within}`;
}

/** A table of schedules. */
export function scheduleTable(output: Output, schedules: readonly ScheduleView[], now: number): string {
  const rows = schedules.map((schedule): Cell[] => [
    schedule.name,
    stateOf(schedule),
    whenOf(schedule),
    runsOf(schedule),
    relativeTime(schedule.nextAt, now),
    relativeTime(schedule.lastAt, now),
  ]);
  return output.table(COLUMNS, rows);
}

/** The newest job, with its state where the node tells it. */
function lastJobOf({ lastJob, lastJobId }: ScheduleView): Cell | null {
  if (!lastJob) return lastJobId;
  const code = lastJob.errorCode === null ? '' : ` (${lastJob.errorCode})`;
  return { text: `${lastJob.id} ${lastJob.state}${code}`, style: STATE_STYLES[lastJob.state] };
}

/** One schedule in detail. */
export function scheduleDetails(output: Output, schedule: ScheduleView): string {
  const { dst, retry } = schedule;
  return output.details([
    ['schedule', schedule.name],
    ['state', stateOf(schedule)],
    ['why', isGone(schedule) ? 'its URL answered 410: correct it, then `punctual schedule resume`' : null],
    ['when', whenOf(schedule)],
    ['runs', runsOf(schedule)],
    ['queue', schedule.queue],
    ['payload', json(schedule.payload)],
    ['timeout', schedule.timeout],
    ['attempts', retry?.maxAttempts === undefined ? null : String(retry.maxAttempts)],
    ['pauses', retry && pausesOf(retry)],
    [
      'after losses',
      retry?.onWorkerLost?.maxAttempts === undefined ? null : String(retry.onWorkerLost.maxAttempts),
    ],
    ['next', schedule.nextAt],
    ['last', schedule.lastAt],
    ['last workflow', schedule.lastWorkflowId],
    ['last batch', schedule.lastBatchId],
    ['last job', lastJobOf(schedule)],
    ['start', schedule.startAt],
    ['end', schedule.endAt],
    ['DST', dst && `gap ${dst.gap}, overlap ${dst.overlap}`],
    ['catch-up', catchUpOf(schedule)],
    ['overlap', schedule.overlap],
    ['jitter', schedule.jitter === '0ms' ? null : schedule.jitter],
    ['late after', schedule.lateAfter],
    ['managed by', schedule.managedBy],
    ['created', `${schedule.createdAt} by ${schedule.createdBy}`],
    ['changed', `${schedule.changedAt} by ${schedule.changedBy}`],
  ]);
}

/** A table of occurrences. */
export function occurrenceTable(output: Output, occurrences: readonly OccurrenceView[]): string {
  const rows = occurrences.map((each): Cell[] => [
    each.at,
    { text: each.state, style: STYLES[each.state] },
    each.lateBy === undefined ? '-' : humanDuration(each.lateBy),
    each.workflowId ?? each.batchId ?? each.jobId ?? '-',
    whyOf(each),
  ]);
  return output.table(OCCURRENCES, rows);
}

function whyOf({ reason, count, until }: OccurrenceView): string {
  const range = count === undefined ? '' : `${count} in all, until ${until}`;
  return [reason ?? '', range].filter((part) => part !== '').join(': ');
}

/** Where a schedule is found. */
export function schedulePath(name: string): string {
  return `/v1/schedules/${encodeURIComponent(name)}`;
}
