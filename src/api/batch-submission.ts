import { type Batch, NOT_OF_MEMBERS } from '../core/batch.js';
import { formatDuration, parseDuration } from '../core/duration.js';
import { type FieldError, invalid } from '../core/errors.js';
import { countsJobs } from '../core/quotas.js';
import { BatchEnvelope } from '../core/schemas/batch.js';
import { validate } from '../core/schemas/validate.js';
import { type JobDefinition, type ParsedSubmission, parseSubmissions } from '../core/submission.js';
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
  const { jobs, onFailure = 'cancel-rest', startTimeout } = validate(BatchEnvelope, body);
  const shard = node.shardOf(tenant);
  // Throws before anything was done if the leader is elsewhere; then the whole request is made there.
  const { batches } = await shard.leader();
  refuseFields(jobs);
  const tasks = await findTasks(shard, tenant, jobs);
  const submissions = asMembers(await parseSubmissions(jobs, submissionContext(node, shard, tasks)));
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
    startTimeoutMs: startTimeout === undefined ? null : parseDuration(startTimeout),
    dueAt: submissions.reduce((latest, { definition }) => Math.max(latest, definition.runAt), now),
    places: JSON.stringify(placesOf(submissions)),
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

/** Fields whose meaning belongs to the batch are refused, never ignored. */
function refuseFields(jobs: readonly unknown[]): void {
  const errors: FieldError[] = [];
  for (const [i, job] of jobs.entries()) {
    if (typeof job !== 'object' || job === null) continue;
    for (const [field, detail] of Object.entries(NOT_OF_MEMBERS)) {
      if ((job as Record<string, unknown>)[field] !== undefined)
        errors.push({ pointer: `/jobs/${i}/${field}`, detail: `is not for members: ${detail}` });
    }
  }
  if (errors.length > 0) throw invalid(errors.slice(0, MOST_ERRORS));
}

const MOST_ERRORS = 100;

/** Retries belong to the batch: a member has one attempt. What its task says about retries is for jobs on their own. */
function asMembers(submissions: readonly ParsedSubmission[]): ParsedSubmission[] {
  // Consecutive jobs of one kind share their definition, which is then converted once.
  const members = new Map<JobDefinition, JobDefinition>();
  return submissions.map(({ definition, payload }) => {
    const retry = { ...definition.retry, maxAttempts: 1, onWorkerLost: { maxAttempts: 1 } };
    const member = members.get(definition) ?? { ...definition, retry };
    members.set(definition, member);
    return { definition: member, payload };
  });
}

function placesOf(submissions: readonly ParsedSubmission[]): { queue: string; task: string | null }[] {
  const places = new Map<string, { queue: string; task: string | null }>();
  for (const { definition } of submissions) {
    const { queue, task } = definition;
    places.set(`${queue} ${task ?? ''}`, { queue, task });
  }
  return [...places.values()];
}

/** A batch as it was stored, whatever has become of it since. */
function newBatch(batch: NewBatch, stored: readonly Stored[], now: number): Batch {
  const { id, tenant, onFailure, startTimeoutMs, dueAt, createdBy } = batch;
  return {
    ...{ id, tenant, state: 'pending', onFailure },
    startTimeout: startTimeoutMs === null ? null : formatDuration(startTimeoutMs),
    ...{ size: stored.length, run: 1, dueAt: new Date(dueAt).toISOString() },
    ...{ createdAt: new Date(now).toISOString(), createdBy, startedAt: null, endedAt: null, error: null },
    jobs: stored.map((each) => ({ id: each.id, state: 'blocked' })),
  };
}
