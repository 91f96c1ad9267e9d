import type { BatchState, OnMemberFailure } from '../core/batch.js';
import type { JobState } from '../core/job.js';
import { assertTenant } from './assert-tenant.js';
import { type Queryable, run, statement } from './database.js';
import { allEnded } from './ended-places.js';
import { bytesOf, type Portion, type PortionSize, portionOf, readPortion } from './portion.js';
import { selectWaiting, type Waiting } from './read-backlog.js';
import { CLOCK_ERROR_MS, earliestEnd } from './read-job.js';

/** Reading batches: for the leader, and for people. */

/** A batch that has not ended, as the leader knows it. */
export interface OpenBatch {
  readonly id: string;
  readonly tenant: string;
  readonly onFailure: OnMemberFailure;
  readonly members: readonly string[];
  readonly dueAt: number;
  readonly startTimeoutMs: number | null;
  readonly cancelledAt: number | null;
}

type OpenRow = OpenBatch & Record<string, unknown>;

const OPEN = `b.id, b.tenant, b.on_failure AS "onFailure", b.members, b.due_at AS "dueAt",
      b.start_timeout_ms AS "startTimeoutMs", b.cancelled_at AS "cancelledAt"`;

const READ_OPEN_BATCHES = statement(
  'read-open-batches',
  `
    SELECT ${OPEN} FROM punctual.batches b
    WHERE b.state = $1::text AND b.ended_at IS NULL AND (b.due_at, b.id) > ($2::bigint, $3::uuid)
    ORDER BY b.due_at, b.id LIMIT $4::int`,
);

const READ_OVERDUE_BATCHES = statement(
  'read-overdue-batches',
  `
    SELECT ${OPEN} FROM punctual.batches b
    WHERE b.state = 'pending' AND b.ended_at IS NULL AND (b.due_at, b.id) > ($1::bigint, $2::uuid)
      AND b.due_at + b.start_timeout_ms <= $3::bigint
    ORDER BY b.due_at, b.id LIMIT $4::int`,
);

const READ_OPEN_BATCH = statement(
  'read-open-batch',
  `SELECT ${OPEN}, b.state, b.run FROM punctual.batches b WHERE b.tenant = $1::text AND b.id = $2::uuid`,
);

const READ_WAITING_MEMBERS = statement(
  'read-waiting-members',
  `
    SELECT ${selectWaiting('l', 'l.size_kib')}, l.artifact IS NOT NULL AS awaits FROM punctual.later l
    WHERE l.id = ANY($1::uuid[]) AND l.blocked`,
);

const READ_ENDED_MEMBERS = statement(
  'read-ended-members',
  `
    SELECT h.id, h.state FROM unnest($2::uuid[]) u(id)
    JOIN ${allEnded('h')} ON h.tenant = $1::text AND h.id = u.id AND h.finished_at >= $3::bigint`,
);

/** A position in the order of waiting batches. */
export interface BatchPosition {
  readonly dueAt: number;
  readonly id: string;
}

/** A position before every batch. */
export const BEFORE_ALL_BATCHES: BatchPosition = { dueAt: -1, id: '00000000-0000-0000-0000-000000000000' };

/** Batches in this state, the oldest first, from after the position on. */
export function readOpenBatches(
  db: Queryable,
  state: 'pending' | 'running',
  { dueAt, id }: BatchPosition,
  limit: number,
): Promise<OpenBatch[]> {
  return run<OpenRow>(db, READ_OPEN_BATCHES, [state, dueAt, id, limit]);
}

/** Batches that wait and could not start in time, the oldest first, from after the position on. */
export function readOverdueBatches(
  db: Queryable,
  { dueAt, id }: BatchPosition,
  now: number,
  limit: number,
): Promise<OpenBatch[]> {
  return run<OpenRow>(db, READ_OVERDUE_BATCHES, [dueAt, id, now, limit]);
}

/** One batch, whatever its state. */
export async function findBatch(
  db: Queryable,
  tenant: string,
  id: string,
): Promise<(OpenBatch & { readonly state: BatchState; readonly run: number }) | null> {
  type Row = OpenRow & { state: BatchState; run: number };
  return (await run<Row>(db, READ_OPEN_BATCH, [tenant, id]))[0] ?? null;
}

/** A member that waits. */
export interface WaitingMember extends Waiting {
  /** Whether its artifact has not arrived. */
  readonly awaits: boolean;
}

/** Those of the members that wait. */
export function readWaitingMembers(db: Queryable, ids: readonly string[]): Promise<WaitingMember[]> {
  return run<WaitingMember & Record<string, unknown>>(db, READ_WAITING_MEMBERS, [ids]);
}

/** How those of the members ended that have, by their ids. */
export async function readEndedMembers(
  db: Queryable,
  { id, tenant, members }: Pick<OpenBatch, 'id' | 'tenant' | 'members'>,
): Promise<Map<string, JobState>> {
  type Row = { id: string; state: JobState };
  const rows = await run<Row>(db, READ_ENDED_MEMBERS, [tenant, members, earliestEnd(id)]);
  return new Map(rows.map(({ id, state }) => [id, state]));
}

const READ_MEMBER_IDS = statement(
  'read-member-ids',
  'SELECT b.members FROM punctual.batches b WHERE b.tenant = $1::text AND b.id = $2::uuid',
);

/** The ids of the members of a batch. */
export async function readMemberIds(db: Queryable, tenant: string, id: string): Promise<string[]> {
  const [row] = await run<{ members: string[] }>(db, READ_MEMBER_IDS, [tenant, id]);
  return row?.members ?? [];
}

/** A batch as it is stored. JSON columns are texts. */
export interface BatchRow extends Record<string, unknown> {
  readonly id: string;
  readonly tenant: string;
  readonly state: BatchState;
  readonly onFailure: OnMemberFailure;
  readonly size: number;
  readonly run: number;
  readonly dueAt: number;
  readonly startTimeoutMs: number | null;
  readonly createdAt: number;
  readonly createdBy: string;
  readonly startedAt: number | null;
  readonly endedAt: number | null;
  readonly error: string | null;
  readonly schedule: string | null;
  readonly occurrence: number | null;
  /** The different queues and tasks of its members, as JSON. */
  readonly places: string;
}

const SHOWN = `b.id, b.tenant, b.state, b.on_failure AS "onFailure", cardinality(b.members) AS size, b.run,
      b.due_at AS "dueAt", b.start_timeout_ms AS "startTimeoutMs", b.created_at AS "createdAt",
      b.created_by AS "createdBy", b.started_at AS "startedAt", b.ended_at AS "endedAt", b.error, b.places,
      b.schedule, b.occurrence`;

/** One statement over all places, or a member on the move would be missing. A member in `jobs` always has a claim. */
const READ_BATCH = statement(
  'read-batch',
  `
    SELECT ${SHOWN}, ARRAY(
      SELECT m.id || ' ' || coalesce(
        (SELECT 'running' FROM punctual.jobs j WHERE j.id = m.id),
        (SELECT 'blocked' FROM punctual.later l WHERE l.id = m.id),
        (SELECT h.state FROM ${allEnded('h')}
         WHERE h.tenant = $1::text AND h.id = m.id AND h.finished_at >= b.created_at - ${CLOCK_ERROR_MS}),
        '')
      FROM unnest(b.members) WITH ORDINALITY m(id, place) ORDER BY m.place) AS jobs
    FROM punctual.batches b WHERE b.tenant = $1::text AND b.id = $2::uuid`,
);

const LIST_BATCHES = statement(
  'list-batches',
  portionOf(
    `SELECT ${SHOWN}, 512 + ${bytesOf('b.places')} AS bytes FROM punctual.batches b
    WHERE b.tenant = $1::text AND b.id < $2::uuid AND ($3::text[] IS NULL OR b.state = ANY ($3::text[]))
      AND ($6::text IS NULL OR b.schedule = $6::text)
    ORDER BY b.id DESC LIMIT $4::int + 1`,
    'id DESC',
    { rows: '$4', bytes: '$5' },
  ),
);

/** A batch and its members, each as its id and its state; the state of one that was deleted is empty. */
export type BatchWithMembers = BatchRow & { readonly jobs: readonly string[] };

/** The batch, or null when the tenant has none of that id. */
export async function readBatch(db: Queryable, tenant: string, id: string): Promise<BatchWithMembers | null> {
  const [row] = await run<BatchWithMembers>(db, READ_BATCH, [tenant, id]);
  if (row) assertTenant(tenant, row);
  return row ?? null;
}

/** Batches with ids below `before`, newest first. */
export function listBatches(
  db: Queryable,
  tenant: string,
  before: string,
  {
    states,
    schedule,
  }: { readonly states: readonly BatchState[] | null; readonly schedule?: string | undefined },
  { rows, bytes }: PortionSize,
): Promise<Portion<BatchRow>> {
  return readPortion<BatchRow>(db, LIST_BATCHES, [tenant, before, states, rows, bytes, schedule ?? null]);
}
