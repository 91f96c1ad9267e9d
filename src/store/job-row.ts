import type { AwaitedArtifact } from '../core/artifact.js';
import { laneOf } from '../core/limits.js';
import type { JobDefinition, ParsedSubmission } from '../core/submission.js';
import { Columns, type Value } from './columns.js';
import { column, type InsertedColumn, insertedColumns, type RowOf } from './job-columns.js';

/** The columns that the jobs of a bulk have in common. JSON columns are texts. */
export type StoredDefinition = RowOf<'jobs', InsertedColumn<'bulk'>> & {
  /** The artifact that its job has to wait for in `later`. */
  readonly awaits?: AwaitedArtifact;
};

/** A row of punctual.jobs as it is inserted. */
export interface JobRow {
  readonly id: string;
  /** JSON text. */
  readonly payload: string;
  readonly definition: StoredDefinition;
  /** The schedule that made it, if one did. */
  readonly schedule?: string | undefined;
  /** The workflow that it is a step of, if it is one. */
  readonly workflow?: string | undefined;
}

/** Fewer characters than this take less than a kibibyte in UTF-8. */
const SMALL_CHARACTERS = 1_024 / 3;

/** Kibibytes of payload and target together, rounded down; O(1) for small jobs, which most are. */
export function sizeKib({ payload, definition: { target } }: JobRow): number {
  if (payload.length + (target?.length ?? 0) < SMALL_CHARACTERS) return 0;
  return (Buffer.byteLength(payload) + (target === null ? 0 : Buffer.byteLength(target))) >> 10;
}

/** The rank of a priority: 9 comes first, and the index is in ascending order. */
export function rankOf(priority: number): number {
  return 10 - priority;
}

/** Who created a job and when, and the ids of its names. */
export interface Origin {
  readonly tenant: string;
  readonly queue: number;
  readonly needs: number;
  readonly createdAt: number;
  readonly createdBy: string;
  /** The context of the trace that the submission is part of. */
  readonly traceparent?: string | null | undefined;
}

/** The columns of a definition. */
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
    traceparent: origin.traceparent ?? null,
    ...(definition.awaits && { awaits: definition.awaits }),
  };
}

/** The row of a new job. */
export function toRow(id: string, { definition, payload }: ParsedSubmission, origin: Origin): JobRow {
  return { id, payload, definition: toStored(definition, origin) };
}

const OF_EACH: Readonly<Record<InsertedColumn<'each'>, (row: JobRow) => Value>> = {
  id: (row) => row.id,
  payload: (row) => row.payload,
  size_kib: sizeKib,
};

const definitionOf = ({ definition }: JobRow): StoredDefinition => definition;

/** Whether a job waits for an artifact, and so is blocked. */
export function awaitsArtifact({ definition }: Pick<JobRow, 'definition'>): boolean {
  return definition.awaits !== undefined;
}

/** The columns of new rows. The rows of a bulk mostly share their definition. */
export const NEW_JOB_COLUMNS = new Columns<JobRow>([
  ...insertedColumns('each').map((name) => column(name, OF_EACH[name])),
  ...insertedColumns('bulk').map((name) =>
    column(name, ({ definition }: JobRow) => definition[name], definitionOf),
  ),
]);

/** The columns of new rows of `later`, with the artifact that a job waits for. */
export const NEW_LATER_COLUMNS = new Columns<JobRow>([
  ...NEW_JOB_COLUMNS.inside((row: JobRow) => row),
  column('artifact', ({ definition }: JobRow) => definition.awaits?.id ?? null, definitionOf),
  column('artifact_by', ({ definition }: JobRow) => definition.awaits?.by ?? null, definitionOf),
]);
