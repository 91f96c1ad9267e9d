import { laneOf } from '../core/lane.js';
import type { ParsedSubmission } from '../core/submission.js';
import { plainArray, textArray } from './array-text.js';

/** A row of punctual.jobs as it is inserted. JSON columns are texts. */
export interface JobRow {
  readonly id: string;
  readonly tenant: string;
  readonly queue: number;
  readonly needs: number;
  readonly rank: number;
  readonly run_at: number;
  readonly max_attempts: number;
  readonly max_losses: number;
  readonly at_most_once: boolean;
  readonly timeout_ms: number;
  readonly created_at: number;
  readonly start_before: number | null;
  readonly task: string | null;
  readonly created_by: string;
  readonly key: string | null;
  readonly concurrency_key: string | null;
  readonly target: string | null;
  readonly backoff: string | null;
  readonly requires: string | null;
  readonly payload: string;
  readonly lane: number;
}

/** Priority 9 comes first, and an index is read upwards. */
export function rankOf(priority: number): number {
  return 10 - priority;
}

export interface Origin {
  readonly id: string;
  readonly tenant: string;
  readonly queue: number;
  readonly needs: number;
  readonly createdAt: number;
  readonly createdBy: string;
}

/** The row of a new job. */
export function toRow(submission: ParsedSubmission, origin: Origin): JobRow {
  const { retry, needs } = submission;
  return {
    id: origin.id,
    tenant: origin.tenant,
    queue: origin.queue,
    needs: origin.needs,
    rank: rankOf(submission.priority),
    run_at: submission.runAt,
    max_attempts: retry.maxAttempts,
    max_losses: retry.onWorkerLost.maxAttempts,
    at_most_once: submission.delivery === 'at-most-once',
    timeout_ms: submission.timeoutMs,
    created_at: origin.createdAt,
    start_before: submission.startBefore,
    task: submission.task,
    created_by: origin.createdBy,
    key: submission.key,
    concurrency_key: submission.concurrencyKey,
    target: submission.target ? JSON.stringify(submission.target) : null,
    backoff: submission.backoffIsDefault ? null : JSON.stringify(retry.backoff),
    requires: Object.keys(needs.labels).length > 0 ? JSON.stringify(needs.labels) : null,
    payload: submission.payload,
    lane: laneOf(submission.concurrencyKey),
  };
}

/** The columns of new rows, in the order of `rowArrays`. */
export const ROW_COLUMNS = `id, tenant, queue, needs, rank, run_at, max_attempts, max_losses, at_most_once, timeout_ms,
  created_at, start_before, task, created_by, key, concurrency_key, target, backoff, requires, payload, lane`;

/** Rows as one array per column, the form in which a statement takes many at once. */
export function rowArrays(rows: readonly JobRow[]): string[] {
  const plain = (name: PlainColumn) => plainArray(rows.map((row) => row[name]));
  const text = (name: TextColumn) => textArray(rows.map((row) => row[name]));
  return [
    plain('id'),
    text('tenant'),
    plain('queue'),
    plain('needs'),
    plain('rank'),
    plain('run_at'),
    plain('max_attempts'),
    plain('max_losses'),
    plain('at_most_once'),
    plain('timeout_ms'),
    plain('created_at'),
    plain('start_before'),
    text('task'),
    text('created_by'),
    text('key'),
    text('concurrency_key'),
    text('target'),
    text('backoff'),
    text('requires'),
    text('payload'),
    plain('lane'),
  ];
}

/** Columns of text that somebody else has written; those of the rest need no quotes. */
type TextColumn =
  | 'tenant'
  | 'task'
  | 'created_by'
  | 'key'
  | 'concurrency_key'
  | 'target'
  | 'backoff'
  | 'requires'
  | 'payload';
type PlainColumn = Exclude<keyof JobRow, TextColumn>;
