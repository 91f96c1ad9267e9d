import type { Batch } from '../core/batch.js';
import { formatDuration } from '../core/duration.js';
import { parseBatch } from '../core/parse-batch.js';
import { countsJobs } from '../core/quotas.js';
import { BatchEnvelope } from '../core/schemas/batch.js';
import { validate } from '../core/schemas/validate.js';
import { uuidv7 } from '../core/uuid.js';
import type { NewBatch } from '../store/submit-batch.js';
import type { Caller } from './caller.js';
import type { NodeContext } from './context.js';
import { answerOf } from './idempotency.js';
import { findTasks, submissionContext } from './jobs.js';
import { mustFitPayload, withinRate } from './quota-checks.js';
import { limitsOf, mustAllow } from './restrictions.js';
import { Answer, type Call } from './route.js';
import type { Stored } from './submitter.js';

/** Stores a batch and its members, all or none. */
export async function submitBatch(
  node: NodeContext,
  caller: Caller,
  body: unknown,
  { traceparent, keeper }: Partial<Pick<Call, 'traceparent' | 'keeper'>> = {},
): Promise<Answer> {
  const { tenant, actor } = caller;
  const form = validate(BatchEnvelope, body);
  const shard = node.shardOf(tenant);
  // Throws before anything was done if the leader is elsewhere; then the whole request is made there.
  const { batches } = await shard.leader();
  const tasks = await findTasks(shard, tenant, form.jobs);
  const parsed = await parseBatch(form, submissionContext(node, shard, tasks));
  const { onFailure, startTimeoutMs, members: submissions, places } = parsed;
  if (limitsOf(caller)) for (const { definition } of submissions) mustAllow(caller, definition);
  const quotas = await shard.quotas.of(tenant);
  if (quotas)
    submissions.forEach(({ payload }, i) => {
      mustFitPayload(quotas, payload, `/jobs/${i}/payload`);
    });
  const isCounted = quotas !== null && countsJobs(quotas);
  const owner = { tenant, createdBy: actor, traceparent, isCounted };
  const owned = submissions.map((submission) => ({ owner, submission }));
  const now = shard.clock.now();
  const batch: NewBatch = {
    id: uuidv7(now),
    tenant,
    onFailure,
    startTimeoutMs,
    scheduled: null,
    dueAt: submissions.reduce((latest, { definition }) => Math.max(latest, definition.runAt), now),
    places: JSON.stringify(places),
    createdBy: actor,
  };
  const store = batches.submit.bind(batches, batch);
  const view = (stored: readonly Stored[]) =>
    new Answer(201, newBatch(batch, stored, now), { location: `/v1/batches/${batch.id}` });
  return withinRate(shard, tenant, quotas, owned.length, () =>
    answerOf<readonly Stored[], Answer>(
      shard,
      keeper ? { keeper } : {},
      ({ keep }) => shard.submitter.submitMembers(owned, store, keep),
      (_, stored) => view(stored),
    ),
  );
}

/** A batch as it was stored, whatever has become of it since. */
function newBatch(batch: NewBatch, stored: readonly Stored[], now: number): Batch {
  const { id, tenant, onFailure, startTimeoutMs, dueAt, createdBy } = batch;
  return {
    ...{ id, tenant, state: 'pending', onFailure },
    startTimeout: startTimeoutMs === null ? null : formatDuration(startTimeoutMs),
    ...{ size: stored.length, run: 1, dueAt: new Date(dueAt).toISOString() },
    ...{
      schedule: null,
      scheduledAt: null,
      createdAt: new Date(now).toISOString(),
      createdBy,
      startedAt: null,
      endedAt: null,
      error: null,
    },
    jobs: stored.map((each) => ({ id: each.id, state: 'blocked' })),
  };
}
