import { parseDuration } from '../core/duration.js';
import { PunctualError } from '../core/errors.js';
import { countsJobs } from '../core/quotas.js';
import { IdPath, WorkflowQuery } from '../core/schemas/query.js';
import {
  WorkflowAfterEvent,
  WorkflowEvent as WorkflowEventBody,
  WorkflowListQuery,
  WorkflowPage,
  WorkflowRequest,
  WorkflowRerun,
  WorkflowRetry,
  WorkflowView as WorkflowSchema,
} from '../core/schemas/workflow.js';
import { parsePayload } from '../core/submission.js';
import { LAST_UUID } from '../core/uuid.js';
import { putDefinitions } from '../core/workflow/named-workflows.js';
import {
  allSteps,
  allStepsInside,
  type ParsedWorkflow,
  parseInnerStep,
  parseWorkflow,
  readWorkflowForm,
  type WorkflowContext,
  withPlaces,
} from '../core/workflow/parse-workflow.js';
import { type EventOutcome, MOST_STEPS, type WorkflowState } from '../core/workflow.js';
import type { Queryable } from '../store/database.js';
import { withInner } from '../store/new-workflow.js';
import { listWorkflows, readWorkflow, type WorkflowRow } from '../store/read-workflows.js';
import type { Requested } from '../store/requested.js';
import type { NewWorkflow } from '../store/submit-workflow.js';
import { definitionsOf } from '../store/workflow-definitions.js';
import { notFound } from '../workflow/workflows.js';
import type { Caller } from './caller.js';
import type { NodeContext } from './context.js';
import { answerOf } from './idempotency.js';
import { findTasks, submissionContext } from './jobs.js';
import { writePage } from './page-text.js';
import { mustFitPayload, withinRate } from './quota-checks.js';
import { submittedWorkflow } from './rerun-workflow.js';
import { mustAllowSteps, reachesWorkflow } from './restrictions.js';
import {
  Answer,
  type Call,
  json,
  jsonCheckedByRun,
  MANY_PAYLOADS,
  ONE_PAYLOAD,
  type Route,
  route,
} from './route.js';
import type { Shard } from './shard.js';
import { graphOf, ofDefinition } from './workflow-definitions.js';
import {
  listedWorkflow,
  type StepParts,
  viewOfNew,
  viewOfStored,
  type WorkflowText,
} from './workflow-view.js';

/** The signal of a call that does not wait. */
const NEVER = new AbortController().signal;
/** How often a submission is tried whose key belongs to a workflow that is removed before it can be read. */
const KEY_TRIES = 5;
/** Workflows that one statement reads. */
const PORTION = 100;

/** Submitting, reading and steering workflows. */
export const workflowRoutes: readonly Route[] = [
  route({
    id: 'submitWorkflow',
    method: 'POST',
    path: '/v1/workflows',
    tag: 'workflows',
    summary:
      'Submit a workflow, or start one by the name of its definition: all of its steps are stored, or none. The same key again ' +
      'answers 200 with the workflow that has it.',
    scope: 'submit',
    body: jsonCheckedByRun(WorkflowRequest, {
      ...{ maxBytes: MANY_PAYLOADS, text: 'payload', orText: 'workflow', topText: 'input', maps: ['jobs'] },
      mostItems: () => MOST_STEPS,
    }),
    answers: { 201: WorkflowSchema, 200: WorkflowSchema },
    idempotent: true,
    run: ({ node, caller, body, call }) => submitWorkflow(node, caller, body, call),
  }),
  route({
    id: 'listWorkflows',
    method: 'GET',
    path: '/v1/workflows',
    tag: 'workflows',
    summary: 'List workflows, newest first, without their steps.',
    scope: 'read',
    query: WorkflowListQuery,
    answers: { 200: WorkflowPage },
    run: ({ node, caller, query: { state, name, key, definition, schedule, limit, after } }) => {
      const { reads } = node.shardOf(caller.tenant);
      const { tenant } = caller;
      const states = state === undefined ? undefined : (state.split(',') as WorkflowState[]);
      return writePage<WorkflowRow>(limit, {
        portion: PORTION,
        read: async (last, { rows: most }) => {
          const below = last?.id ?? after ?? LAST_UUID;
          const rows = await reads.read(tenant, (db) =>
            listWorkflows(db, tenant, below, most + 1, { states, name, key, definition, schedule }),
          );
          return { rows: rows.slice(0, most), more: rows.length > most };
        },
        isShown: (row) => reachesWorkflow(caller, row),
        write: (row) => JSON.stringify(listedWorkflow(row)),
        cursor: (row) => row.id,
      });
    },
  }),
  route({
    id: 'getWorkflow',
    method: 'GET',
    path: '/v1/workflows/:id',
    tag: 'workflows',
    summary:
      'Read a workflow with its steps. With `wait`, the answer comes when it ends or the time is up; with `include=attempts`, ' +
      'each step says when its attempts ran.',
    scope: 'read',
    params: IdPath,
    query: WorkflowQuery,
    answers: { 200: WorkflowSchema },
    run: ({ node, caller, params: { id }, query: { wait = '0s', include }, call }) => {
      const leftMs = Math.max(0, (parseDuration(wait) ?? 0) - call.waitedMs);
      const shard = node.shardOf(caller.tenant);
      const parts: StepParts = { attempts: include !== undefined };
      const get = async (signal: AbortSignal) =>
        viewOf(shard, await awaitWorkflow(shard, caller, id, leftMs, signal), shard.hot, parts);
      return leftMs === 0 ? get(NEVER) : call.wait('results', get);
    },
  }),
  steering(
    'cancel',
    'Cancel a workflow: steps that have not started never do, running ones are cancelled. It ends when all of them have.',
  ),
  steering(
    'hold',
    'Hold a workflow: no step starts until it is released. Running steps finish; waits for events and times still end.',
  ),
  steering(
    'release',
    'Release a workflow that is on hold: what would have started meanwhile starts. Jobs that are on hold by themselves stay so.',
  ),
  route({
    id: 'retryWorkflow',
    audit: 'workflow.retry',
    method: 'POST',
    path: '/v1/workflows/:id/retry',
    tag: 'workflows',
    summary:
      'Run the steps again that failed or were cancelled, and what was skipped because of them. With `from`, that step and ' +
      'everything behind it. At-most-once steps that have run are not run again: 409.',
    scope: 'submit',
    params: IdPath,
    body: json(WorkflowRetry, { optional: true }),
    answers: { 200: WorkflowSchema },
    idempotent: true,
    run: async ({ node, caller, params: { id }, body: { from }, call }) => {
      const shard = node.shardOf(caller.tenant);
      await mustRead(shard, caller, id);
      const { workflows } = await shard.leader();
      return answerAfter(shard, caller, id, call, (requested) =>
        workflows.retry(caller.tenant, id, from, requested),
      );
    },
  }),
  route({
    id: 'rerunWorkflow',
    method: 'POST',
    path: '/v1/workflows/:id/rerun',
    tag: 'workflows',
    summary:
      'Submit a workflow again as it was submitted: the same graph and payloads as a new workflow, whether it has ended or not. ' +
      'It has no key unless one is given. 410 if jobs of its steps have left history.',
    scope: 'submit',
    params: IdPath,
    body: json(WorkflowRerun, { optional: true }),
    answers: { 201: WorkflowSchema, 200: WorkflowSchema },
    idempotent: true,
    run: ({ node, caller, params: { id }, body: { key = null }, call }) =>
      rerunWorkflow(node, caller, id, key, call),
  }),
  route({
    id: 'sendWorkflowEvent',
    method: 'POST',
    path: '/v1/workflows/:id/events',
    tag: 'workflows',
    summary:
      'Tell a workflow of an event. Steps that wait for it end with its payload as their result; the first event of a name counts, ' +
      'and is kept for steps that are reached later. `event` of the answer says what became of it.',
    scope: 'submit',
    audit: { none: 'An event is a part of what the workflow does, as a report is.' },
    params: IdPath,
    body: json(WorkflowEventBody, { maxBytes: ONE_PAYLOAD, text: 'payload' }),
    answers: { 200: WorkflowAfterEvent },
    idempotent: true,
    run: async ({ node, caller, params: { id }, body: { event, payload }, call }) => {
      const shard = node.shardOf(caller.tenant);
      const text = parsePayload(payload, node.config);
      mustFitPayload(await shard.quotas.of(caller.tenant), text);
      await mustRead(shard, caller, id);
      const { workflows } = await shard.leader();
      return answerOf<EventOutcome, WorkflowText>(
        shard,
        call,
        (requested) => workflows.event(caller.tenant, id, event, text, requested),
        async (db, outcome) => (await viewWorkflow(shard, caller, id, db)).with({ event: outcome }),
      );
    },
  }),
];

/** A route that steers a workflow and needs nothing but its id. */
function steering(verb: 'cancel' | 'hold' | 'release', summary: string): Route {
  return route({
    id: `${verb}Workflow`,
    audit: `workflow.${verb}`,
    method: 'POST',
    path: `/v1/workflows/:id/${verb}`,
    tag: 'workflows',
    summary,
    scope: 'submit',
    params: IdPath,
    answers: { 200: WorkflowSchema },
    idempotent: true,
    run: async ({ node, caller, params: { id }, call }) => {
      const shard = node.shardOf(caller.tenant);
      await mustRead(shard, caller, id);
      const { workflows } = await shard.leader();
      return answerAfter(shard, caller, id, call, (requested) =>
        workflows[verb](caller.tenant, id, requested),
      );
    },
  });
}

/** Answers with the workflow after something was done to it. */
function answerAfter(
  shard: Shard,
  caller: Caller,
  id: string,
  call: Call,
  act: (requested: Requested<boolean>) => Promise<void>,
): Promise<WorkflowText> {
  return answerOf<boolean, WorkflowText>(
    shard,
    call,
    (requested) => act(requested).then(() => true),
    (db) => viewWorkflow(shard, caller, id, db),
  );
}

/** What the request of a submission says of it. */
type SubmissionCall = Partial<Pick<Call, 'traceparent' | 'keeper'>>;

async function submitWorkflow(
  node: NodeContext,
  caller: Caller,
  body: unknown,
  call: SubmissionCall,
): Promise<Answer> {
  return answerTo(node.shardOf(caller.tenant), await readAndStore(node, caller, body, call));
}

/** The same for a program in this process, which wants the id and would not read the steps. */
export async function startWorkflow(
  node: NodeContext,
  caller: Caller,
  body: unknown,
  call: SubmissionCall = {},
): Promise<{ readonly id: string }> {
  const { made, known } = await readAndStore(node, caller, body, call);
  return { id: made ? made.id : known.id };
}

async function readAndStore(
  node: NodeContext,
  caller: Caller,
  body: unknown,
  call: SubmissionCall,
): Promise<SubmittedWorkflow> {
  const { tenant } = caller;
  const shard = node.shardOf(tenant);
  const read = readWorkflowForm(body);
  const { form, definition } =
    'definition' in read ? await graphOf(shard, caller, read) : { form: read, definition: null };
  const parse = async () => {
    const find = definitionsOf(shard.hot, tenant);
    const around = definition ? [definition.name] : [];
    const jobs = await putDefinitions(form.jobs, { ...node.config, find }, around);
    const context = await contextFor(node, shard, tenant, await allSteps(jobs, node.config));
    return parseWorkflow({ ...form, jobs }, context);
  };
  const parsed = await parse().catch((error: unknown) => {
    throw definition ? ofDefinition(error) : error;
  });
  return storeWorkflow(shard, caller, parsed, definition, call);
}

/** The limits for the steps of a workflow, and what their tasks say. */
async function contextFor(
  node: NodeContext,
  shard: Shard,
  tenant: string,
  steps: readonly unknown[],
): Promise<WorkflowContext> {
  const tasks = await findTasks(shard, tenant, steps);
  return { ...submissionContext(node, shard, tasks), maxBulkBytes: node.config.maxBulkBytes };
}

/** Submits a workflow again; a version of a definition that it was started from is there for as long as it is. */
async function rerunWorkflow(
  node: NodeContext,
  caller: Caller,
  id: string,
  key: string | null,
  call: SubmissionCall,
): Promise<Answer> {
  const shard = node.shardOf(caller.tenant);
  const row = await mustRead(shard, caller, id);
  const parseInner = async (text: string) => {
    const steps = await allStepsInside(text, node.config);
    return parseInnerStep(text, await contextFor(node, shard, caller.tenant, steps));
  };
  const now = shard.clock.now();
  const maxBytes = MANY_PAYLOADS(node.config);
  const parsed = await submittedWorkflow(shard.hot, row, key, { now, maxBytes, parseInner });
  return answerTo(shard, await storeWorkflow(shard, caller, parsed, listedWorkflow(row).definition, call));
}

/** A new workflow, or the one that has its key, which the caller's key reaches. */
type SubmittedWorkflow =
  | { readonly made: NewWorkflow; readonly known?: undefined }
  | { readonly made?: undefined; readonly known: WorkflowRow };

async function answerTo(shard: Shard, { made, known }: SubmittedWorkflow): Promise<Answer> {
  if (made) return answerToNew(made);
  return new Answer(200, await viewOf(shard, known), { location: `/v1/workflows/${known.id}` });
}

async function answerToNew(workflow: NewWorkflow): Promise<Answer> {
  return new Answer(201, await viewOfNew(workflow), { location: `/v1/workflows/${workflow.id}` });
}

/** Stores a workflow, or finds the one that has its key. */
async function storeWorkflow(
  shard: Shard,
  caller: Caller,
  parsed: ParsedWorkflow,
  definition: NewWorkflow['definition'],
  { traceparent, keeper }: SubmissionCall,
): Promise<SubmittedWorkflow> {
  const { tenant, actor } = caller;
  const quotas = await shard.quotas.of(tenant);
  const all = withInner(parsed.steps);
  mustAllowSteps(caller, all);
  if (quotas) {
    for (const { step, pointer } of withPlaces(parsed.steps))
      mustFitPayload(quotas, step.payload, `${pointer}/payload`);
  }
  const isCounted = quotas !== null && countsJobs(quotas);
  const owner = { tenant, createdBy: actor, traceparent, isCounted };
  return withinRate(shard, tenant, quotas, all.length, async () => {
    for (let tries = 1; ; tries += 1) {
      const stored = await shard.submitter.submitWorkflow(
        owner,
        parsed,
        definition,
        keeper &&
          (async (db, { workflow }) => {
            if (workflow) await keeper.keep(db, await answerToNew(workflow));
          }),
      );
      if (stored?.workflow) return { made: stored.workflow };
      const known = stored && (await readWorkflow(shard.hot, tenant, stored.id));
      if (known) return { known: mustReach(caller, known) };
      if (tries === KEY_TRIES) {
        const detail = 'The workflow of this key cannot be read; try again.';
        throw new PunctualError('DATABASE_UNAVAILABLE', detail, { retryAfter: 1 });
      }
    }
  });
}

function mustReach(caller: Caller, row: WorkflowRow): WorkflowRow {
  if (reachesWorkflow(caller, row)) return row;
  const detail = 'The key belongs to a workflow that your key does not reach; nothing was stored.';
  throw new PunctualError('FORBIDDEN', detail);
}

/** The workflow when it has ended or `waitMs` have passed; 0 answers at once. */
async function awaitWorkflow(
  shard: Shard,
  caller: Caller,
  id: string,
  waitMs: number,
  signal: AbortSignal,
): Promise<WorkflowRow> {
  const deadline = performance.now() + waitMs;
  for (;;) {
    const row = await mustRead(shard, caller, id);
    const left = deadline - performance.now();
    if (row.ended_at !== null || left <= 0 || signal.aborted) return row;
    if (!(await shard.ends.wait({ tenant: caller.tenant, id }, left, signal)))
      return mustRead(shard, caller, id);
  }
}

/** The workflow with its steps, as far as the caller's key reaches it. */
export async function viewWorkflow(
  shard: Shard,
  caller: Caller,
  id: string,
  db: Queryable = shard.hot,
): Promise<WorkflowText> {
  return viewOf(shard, await mustRead(shard, caller, id, db), db);
}

function viewOf(
  shard: Shard,
  row: WorkflowRow,
  db: Queryable = shard.hot,
  parts?: StepParts,
): Promise<WorkflowText> {
  return viewOfStored(db, row, shard.clock.now(), parts);
}

async function mustRead(
  shard: Shard,
  caller: Caller,
  id: string,
  db: Queryable = shard.hot,
): Promise<WorkflowRow> {
  const row = await readWorkflow(db, caller.tenant, id);
  if (!row || !reachesWorkflow(caller, row)) throw notFound(id);
  return row;
}
