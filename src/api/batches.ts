import type { BatchMember, BatchState, BatchSummary, Batch as BatchView } from '../core/batch.js';
import { hasEnded } from '../core/batch.js';
import { formatDuration, parseDuration } from '../core/duration.js';
import { PunctualError } from '../core/errors.js';
import type { JobError, JobState } from '../core/job.js';
import { Batch, BatchPage, BatchSubmission, BatchWhy } from '../core/schemas/batch.js';
import { BatchListQuery, IdPath, WaitQuery } from '../core/schemas/query.js';
import { LAST_UUID } from '../core/uuid.js';
import { type BatchRow, type BatchWithMembers, listBatches, readBatch } from '../store/batch-rows.js';
import type { Queryable } from '../store/database.js';
import { submitBatch } from './batch-submission.js';
import type { Caller } from './caller.js';
import { answerOf } from './idempotency.js';
import { writePage } from './page-text.js';
import { mayTouch, type Place } from './restrictions.js';
import { jsonCheckedByRun, MANY_PAYLOADS, type Route, route } from './route.js';
import type { Shard } from './shard.js';

/** Batches of a list that one statement reads. */
const PORTION = 100;
/** The signal of a call that does not wait. */
const NEVER = new AbortController().signal;

/** Submitting, reading and steering batches. Changes go through the leader; any node answers reads. */
export const batchRoutes: readonly Route[] = [
  route({
    id: 'submitBatch',
    method: 'POST',
    path: '/v1/batches',
    tag: 'batches',
    summary: 'Submit jobs that start together or not at all; all of them are stored, or none.',
    scope: 'submit',
    body: jsonCheckedByRun(BatchSubmission, { maxBytes: MANY_PAYLOADS, text: 'payload', lists: ['jobs'] }),
    answers: { 201: Batch },
    idempotent: true,
    run: ({ node, caller, body, call }) => submitBatch(node, caller, body, call),
  }),
  route({
    id: 'listBatches',
    method: 'GET',
    path: '/v1/batches',
    tag: 'batches',
    summary: 'List batches without their members, newest first.',
    scope: 'read',
    query: BatchListQuery,
    answers: { 200: BatchPage },
    run: ({ node, caller, query: { state, schedule, limit, after } }) => {
      const { tenant } = caller;
      const { reads } = node.shardOf(tenant);
      const states = state === undefined ? null : (state.split(',') as BatchState[]);
      return writePage<BatchRow>(limit, {
        portion: PORTION,
        read: (last, size) =>
          reads.read(tenant, (db) =>
            listBatches(db, tenant, last?.id ?? after ?? LAST_UUID, { states, schedule }, size),
          ),
        isShown: (row) => mayTouchAll(caller, row),
        write: (row) => JSON.stringify(toSummary(row)),
        cursor: ({ id }) => id,
      });
    },
  }),
  route({
    id: 'getBatch',
    method: 'GET',
    path: '/v1/batches/:id',
    tag: 'batches',
    summary:
      'Read a batch and the states of its members. With `wait`, the answer comes when it ends or the time is up.',
    scope: 'read',
    params: IdPath,
    query: WaitQuery,
    answers: { 200: Batch },
    run: ({ node, caller, params: { id }, query: { wait = '0s' }, call }) => {
      const leftMs = Math.max(0, (parseDuration(wait) ?? 0) - call.waitedMs);
      const shard = node.shardOf(caller.tenant);
      const get = (signal: AbortSignal) => awaitBatch(shard, caller, id, leftMs, signal);
      return leftMs === 0 ? get(NEVER) : call.wait('results', get);
    },
  }),
  route({
    id: 'whyBatch',
    method: 'GET',
    path: '/v1/batches/:id/why',
    tag: 'batches',
    summary: 'Why has it not started?',
    scope: 'read',
    params: IdPath,
    answers: { 200: BatchWhy },
    run: async ({ node, caller, params: { id } }) => {
      const shard = node.shardOf(caller.tenant);
      const { batches } = await shard.leader();
      const { state } = await viewBatch(shard, caller, id);
      const reason = state === 'pending' ? await batches.why(caller.tenant, id) : null;
      const detail = reason?.detail ?? (state === 'pending' ? 'The batch starts.' : `The batch is ${state}.`);
      return {
        batchId: id,
        state,
        waitingFor: reason?.waitingFor ?? null,
        detail,
        figures: reason?.figures ?? {},
      };
    },
  }),
  steering('cancel', 'Cancel a batch, waiting or running, with all its members.'),
  steering('retry', 'Let all members of a batch that failed or was cancelled start together again.'),
];

function steering(verb: 'cancel' | 'retry', summary: string): Route {
  return route({
    id: `${verb}Batch`,
    audit: `batch.${verb}`,
    method: 'POST',
    path: `/v1/batches/:id/${verb}`,
    tag: 'batches',
    summary,
    scope: 'submit',
    params: IdPath,
    answers: { 200: Batch },
    idempotent: true,
    run: async ({ node, caller, params: { id }, call }) => {
      const shard = node.shardOf(caller.tenant);
      const { batches } = await shard.leader();
      await viewBatch(shard, caller, id);
      return answerOf(
        shard,
        call,
        (requested) => batches[verb](caller.tenant, id, requested),
        (db) => viewBatch(shard, caller, id, db),
      );
    },
  });
}

/** Waits for the end of the batch up to `waitMs`; 0 answers at once. */
async function awaitBatch(
  shard: Shard,
  caller: Caller,
  id: string,
  waitMs: number,
  signal: AbortSignal,
): Promise<BatchView> {
  const deadline = performance.now() + waitMs;
  for (;;) {
    const batch = await viewBatch(shard, caller, id);
    const left = deadline - performance.now();
    if (hasEnded(batch.state) || left <= 0 || signal.aborted) return batch;
    if (!(await shard.ends.wait({ tenant: caller.tenant, id }, left, signal)))
      return viewBatch(shard, caller, id);
  }
}

/** The batch with its members, as far as the caller's key reaches it. */
export async function viewBatch(
  shard: Shard,
  caller: Caller,
  id: string,
  db: Queryable = shard.hot,
): Promise<BatchView> {
  const row = await readBatch(db, caller.tenant, id);
  if (!row || !mayTouchAll(caller, row))
    throw new PunctualError('BATCH_NOT_FOUND', `There is no batch ${id}.`);
  return { ...toSummary(row), jobs: row.jobs.flatMap(toMember) };
}

/** Of a batch with a member that the key does not reach, nothing is shown. */
function mayTouchAll(caller: Caller, { places }: BatchRow): boolean {
  return (JSON.parse(places) as Place[]).every((place) => mayTouch(caller, place));
}

function toMember(text: BatchWithMembers['jobs'][number]): BatchMember[] {
  const [id, state] = text.split(' ') as [string, JobState | ''];
  return state === '' ? [] : [{ id, state }];
}

function toSummary(row: BatchRow): BatchSummary {
  const time = (at: number) => new Date(at).toISOString();
  return {
    id: row.id,
    tenant: row.tenant,
    state: row.state,
    onFailure: row.onFailure,
    startTimeout: row.startTimeoutMs === null ? null : formatDuration(row.startTimeoutMs),
    size: row.size,
    run: row.run,
    dueAt: time(row.dueAt),
    schedule: row.schedule,
    scheduledAt: row.occurrence === null ? null : time(row.occurrence),
    createdAt: time(row.createdAt),
    createdBy: row.createdBy,
    startedAt: row.startedAt === null ? null : time(row.startedAt),
    endedAt: row.endedAt === null ? null : time(row.endedAt),
    error: row.error === null ? null : (JSON.parse(row.error) as JobError),
  };
}
