import { laneOf } from '../core/limits.js';
import type { JobDefinition, ParsedSubmission } from '../core/submission.js';
import { type Column, Columns } from './columns.js';

/** The columns that the jobs of a bulk have in common. JSON columns are texts. */
export interface StoredDefinition {
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
  readonly lane: number;
}

/** A row of punctual.jobs as it is inserted. */
export interface JobRow {
  readonly id: string;
  /** JSON text. */
  readonly payload: string;
  readonly definition: StoredDefinition;
}

/** Texts below this many characters have less than a kibibyte, whatever is in them. */
const SMALL_CHARACTERS = 1_024 / 3;

/** Kibibytes of payload and target together, rounded down. Asked for every new job, of which most are small. */
export function sizeKib({ payload, definition: { target } }: JobRow): number {
  if (payload.length + (target?.length ?? 0) < SMALL_CHARACTERS) return 0;
  return (Buffer.byteLength(payload) + (target === null ? 0 : Buffer.byteLength(target))) >> 10;
}

/** Priority 9 comes first, and an index is read upwards. */
export function rankOf(priority: number): number {
  return 10 - priority;
}

/** Whose a job is, and the small numbers that stand for its names. */
export interface Origin {
  readonly tenant: string;
  readonly queue: number;
  readonly needs: number;
  readonly createdAt: number;
  readonly createdBy: string;
}

/** What is stored of a definition. */
export function toStored(definition: JobDefinition, origin: Origin): StoredDefinition {
  const { retry, needs } = definition;
  return {
    tenant: origin.tenant,
    queue: origin.queue,
    needs: origin.needs,
    rank: rankOf(definition.priority),
    run_at: definition.runAt,
    max_attempts: retry.maxAttempts,
    max_losses: retry.onWorkerLost.maxAttempts,
    at_most_once: definition.delivery === 'at-most-once',
    timeout_ms: definition.timeoutMs,
    created_at: origin.createdAt,
    start_before: definition.startBefore,
    task: definition.task,
    created_by: origin.createdBy,
    key: definition.key,
    concurrency_key: definition.concurrencyKey,
    target: definition.target ? JSON.stringify(definition.target) : null,
    backoff: definition.backoffIsDefault ? null : JSON.stringify(retry.backoff),
    requires: Object.keys(needs.labels).length > 0 ? JSON.stringify(needs.labels) : null,
    lane: laneOf(definition.concurrencyKey),
  };
}

/** The row of a new job. */
export function toRow(id: string, { definition, payload }: ParsedSubmission, origin: Origin): JobRow {
  return { id, payload, definition: toStored(definition, origin) };
}

const DEFINITION_TYPES: Record<keyof StoredDefinition, Column<JobRow>['type']> = {
  tenant: 'text',
  queue: 'int',
  needs: 'int',
  rank: 'smallint',
  run_at: 'bigint',
  max_attempts: 'smallint',
  max_losses: 'smallint',
  at_most_once: 'boolean',
  timeout_ms: 'bigint',
  created_at: 'bigint',
  start_before: 'bigint',
  task: 'text',
  created_by: 'text',
  key: 'text',
  concurrency_key: 'text',
  target: 'json',
  backoff: 'json',
  requires: 'json',
  lane: 'int',
};

/** The columns of new rows. */
export const JOB_COLUMNS = new Columns<JobRow>([
  { name: 'id', type: 'uuid', of: (row) => row.id },
  { name: 'payload', type: 'json', of: (row) => row.payload },
  ...(Object.keys(DEFINITION_TYPES) as (keyof StoredDefinition)[]).map((name) => ({
    name,
    type: DEFINITION_TYPES[name],
    of: ({ definition }: JobRow) => definition[name],
  })),
  { name: 'size_kib', type: 'int', of: sizeKib },
]);
