import { isWithin } from '../core/access.js';
import { invalid, PunctualError } from '../core/errors.js';
import { least } from '../core/long-lists.js';
import { countsJobs } from '../core/quotas.js';
import { IdPath } from '../core/schemas/query.js';
import { validate } from '../core/schemas/validate.js';
import { AddedSteps, StepAddition, StepAdditionEnvelope } from '../core/schemas/workflow.js';
import { putDefinitions } from '../core/workflow/named-workflows.js';
import { allSteps, parseAdditions, withPlaces } from '../core/workflow/parse-workflow.js';
import { MOST_STEPS } from '../core/workflow.js';
import { reachWith, withInner } from '../store/new-workflow.js';
import { readJob } from '../store/read-job.js';
import { readStepsNamed, readWorkflow } from '../store/read-workflows.js';
import { definitionsOf } from '../store/workflow-definitions.js';
import { draftSteps } from '../workflow/draft-steps.js';
import { notFound } from '../workflow/workflows.js';
import type { AttemptCredential, Caller } from './caller.js';
import type { NodeContext } from './context.js';
import { findTasks, submissionContext } from './jobs.js';
import { mustFitPayload, withinRate } from './quota-checks.js';
import { forbidden, limitsOf, mayReport } from './restrictions.js';
import { Answer, type Call, jsonCheckedByRun, MANY_PAYLOADS, type Route, route } from './route.js';
import { addedSteps } from './workflow-view.js';

/** Steps that steps add while they run. */
export const addedStepRoutes: readonly Route[] = [
  route({
    id: 'addSteps',
    method: 'POST',
    path: '/v1/workflows/:id/jobs',
    tag: 'workflows',
    summary:
      'Add steps to a workflow while one of its steps runs, with the token of the attempt or with the key of a worker, which ' +
      'then names the attempt: all of them are stored, or none. Steps that the same job has added before are taken as they ' +
      'are (200 if all of them are). An old fence is a 409 and changes nothing.',
    scope: 'step',
    audit: { none: 'What a step adds is a part of what the workflow does, as a report is.' },
    params: IdPath,
    body: jsonCheckedByRun(StepAddition, {
      ...{ maxBytes: MANY_PAYLOADS, text: 'payload', orText: 'workflow', maps: ['jobs'] },
      mostItems: () => MOST_STEPS,
    }),
    answers: { 201: AddedSteps, 200: AddedSteps },
    idempotent: 'steps that the job has added already are taken as they are',
    // May be repeated for the same reason.
    repeatable: true,
    run: ({ node, caller, params: { id }, body, call }) => addSteps(node, caller, id, body, call),
  }),
];

async function addSteps(
  node: NodeContext,
  caller: Caller | AttemptCredential,
  id: string,
  body: unknown,
  { traceparent }: Pick<Call, 'traceparent'>,
): Promise<Answer> {
  const { jobs: sent, join = true, by: named } = validate(StepAdditionEnvelope, body);
  const by = attemptOf(caller, named);
  const { tenant } = caller;
  const shard = node.shardOf(tenant);
  // Throws before anything was done if the leader is elsewhere; then the whole request is made there.
  const leader = await shard.leader();
  const workflow = await readWorkflow(shard.hot, tenant, id);
  if (!workflow) throw notFound(id);
  if (limitsOf(caller)) {
    const job = await readJob(shard.hot, tenant, by.jobId);
    if (!job || !mayReport(caller, job))
      throw new PunctualError('JOB_NOT_FOUND', `There is no job ${by.jobId}.`);
  }
  const find = definitionsOf(shard.hot, tenant);
  const jobs = await putDefinitions(sent, { ...node.config, find });
  const tasks = await findTasks(shard, tenant, await allSteps(jobs, node.config));
  const { forms, steps: parsed } = await parseAdditions(jobs, {
    ...submissionContext(node, shard, tasks),
    ...{ maxBulkBytes: node.config.maxBulkBytes, depth: workflow.depth },
  });
  const steps = await shard.submitter.stepsWithArtifacts(tenant, parsed);
  const limits = 'jobId' in caller ? caller.limits : limitsOf(caller);
  const quotas = await shard.quotas.of(tenant);
  const all = withInner<(typeof steps)[number]>(steps);
  for (const { step, pointer } of withPlaces(steps)) {
    const { wait, inner, definition, payload } = step;
    if (limits && wait === null && inner === null && !isWithin(limits, definition)) {
      const task = definition.task === null ? 'a target of its own' : `task ${definition.task}`;
      throw forbidden(
        `The key of the worker is restricted: it may not use queue ${definition.queue} with ${task}.`,
      );
    }
    if (quotas) mustFitPayload(quotas, payload, `${pointer}/payload`);
  }
  const createdBy = 'jobId' in caller ? workflow.created_by : caller.actor;
  const owner = { tenant, createdBy, traceparent, isCounted: quotas !== null && countsJobs(quotas) };
  const definitions = steps.map(({ definition }) => definition);
  const isNew = await withinRate(shard, tenant, quotas, all.length, () =>
    shard.submitter.addSteps(owner, definitions, (resolved, made) =>
      leader.workflows.add({
        ...{ tenant, workflow: id, by, join, forms, made },
        drafts: draftSteps(id, steps, owner, resolved, shard.clock.now(), node.config.laterThreshold),
        reachOf: (known, added) =>
          reachWith(
            known,
            steps.filter(({ name }) => added.has(name)),
          ),
      }),
    ),
  );
  const startBefore = definitions.flatMap((definition) => definition.startBefore ?? []);
  if (isNew && startBefore.length > 0) await leader.hint([], least(startBefore));
  const stored = await readStepsNamed(shard.hot, tenant, id, Object.keys(jobs));
  return new Answer(isNew ? 201 : 200, addedSteps(id, stored));
}

/** The attempt that adds: that of the token, or the one that the request names. */
function attemptOf(
  caller: Caller | AttemptCredential,
  named: { readonly jobId: string; readonly fence: number } | undefined,
): { readonly jobId: string; readonly fence: number } {
  if (!('jobId' in caller)) {
    if (named) return named;
    throw invalid([
      { pointer: '/by', detail: 'name the attempt that adds the steps, or send its token instead of a key' },
    ]);
  }
  const { jobId, fence } = caller;
  if (named && (named.jobId !== jobId || named.fence !== fence))
    throw new PunctualError('FORBIDDEN', 'The token belongs to another attempt.');
  return { jobId, fence };
}
