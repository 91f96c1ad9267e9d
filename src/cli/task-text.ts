import type { RetryInput } from '../core/job.js';
import type { TaskView } from '../core/wire.js';
import { type Cell, type Column, type Output, relativeTime } from './output.js';

/** Tasks as text. What a definition leaves open is shown as a dash. */

const COLUMNS: readonly Column[] = [
  { header: 'TASK', shrink: 'name' },
  { header: 'QUEUE', shrink: 'name' },
  { header: 'PRIORITY', align: 'right', drop: 3 },
  { header: 'ATTEMPTS', align: 'right' },
  { header: 'TIMEOUT', align: 'right' },
  { header: 'DELIVERY', drop: 4 },
  { header: 'BY', shrink: true, drop: 2 },
  { header: 'CHANGED', drop: 1 },
];

const authorOf = ({ publishedBy, changedBy }: TaskView): string =>
  publishedBy === null ? changedBy : `worker ${publishedBy}`;

/** A table of tasks. */
export function taskTable(output: Output, tasks: readonly TaskView[], now: number): string {
  const rows = tasks.map((task): Cell[] => [
    task.name,
    task.queue ?? '-',
    task.priority === undefined ? '-' : String(task.priority),
    task.retry?.maxAttempts === undefined ? '-' : String(task.retry.maxAttempts),
    task.timeout ?? '-',
    task.delivery ?? '-',
    authorOf(task),
    relativeTime(task.changedAt, now),
  ]);
  return output.table(COLUMNS, rows);
}

/** The pauses between attempts, as they were given. */
export function pausesOf({ backoff }: RetryInput): string | null {
  if (!backoff) return null;
  return Object.entries(backoff)
    .map(([name, value]) => `${name} ${value}`)
    .join(', ');
}

function targetOf({ target }: TaskView): string | null {
  if (!target) return null;
  return target.type === 'handler' ? `handler ${target.name}` : target.type;
}

function keyOf({ concurrencyKey }: TaskView): string | null {
  if (concurrencyKey === undefined) return null;
  return typeof concurrencyKey === 'string' ? concurrencyKey : `payload: ${concurrencyKey.path}`;
}

/** One task in detail. */
export function taskDetails(output: Output, task: TaskView): string {
  const { retry, requires } = task;
  return output.details([
    ['task', task.name],
    ['description', task.description],
    ['target', targetOf(task)],
    ['queue', task.queue],
    ['priority', task.priority === undefined ? null : String(task.priority)],
    ['attempts', retry?.maxAttempts === undefined ? null : String(retry.maxAttempts)],
    ['pauses', retry && pausesOf(retry)],
    [
      'after losses',
      retry?.onWorkerLost?.maxAttempts === undefined ? null : String(retry.onWorkerLost.maxAttempts),
    ],
    ['timeout', task.timeout],
    ['delivery', task.delivery],
    [
      'requires',
      requires &&
        Object.entries(requires)
          .map(([name, value]) => `${name}=${value}`)
          .join(', '),
    ],
    ['key', keyOf(task)],
    ['schema', task.payloadSchema === undefined ? null : JSON.stringify(task.payloadSchema)],
    ['published', task.publishedBy === null ? null : `by worker ${task.publishedBy}`],
    ['created', `${task.createdAt} by ${task.createdBy}`],
    ['changed', `${task.changedAt} by ${task.changedBy}`],
  ]);
}
