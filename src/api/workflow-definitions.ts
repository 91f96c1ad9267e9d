import { type AuditAuthor, auditEntry } from '../core/audit.js';
import { invalid, PunctualError } from '../core/errors.js';
import { NamePath, PageQuery } from '../core/schemas/query.js';
import {
  WorkflowDefinitionInput,
  WorkflowDefinitionPage,
  WorkflowDefinitionQuery,
  WorkflowDefinitionView,
} from '../core/schemas/workflow.js';
import { putDefinitions } from '../core/workflow/named-workflows.js';
import {
  allSteps,
  type ParsedStep,
  parseGraph,
  policiesOf,
  readDefinitionForm,
  type StartForm,
  type WorkflowForm,
  withPlaces,
} from '../core/workflow/parse-workflow.js';
import { digestOf, readSteps, writeSteps } from '../core/workflow/stored-graph.js';
import { type ListedWorkflowDefinition, MOST_STEPS } from '../core/workflow.js';
import { addEntry } from '../store/audit.js';
import type { Queryable } from '../store/database.js';
import { reachWith, withInner } from '../store/new-workflow.js';
import type { UsedDefinition } from '../store/submit-workflow.js';
import {
  type DefinitionChanged,
  type DefinitionRow,
  definitionsOf,
  deleteDefinition,
  findDefinition,
  listDefinitions,
  listVersions,
  noDefinition,
  putDefinition,
  readDefinition,
  type WholeDefinition,
} from '../store/workflow-definitions.js';
import type { Caller } from './caller.js';
import type { NodeContext } from './context.js';
import { findTasks, submissionContext } from './jobs.js';
import { JsonText } from './json-text.js';
import { writePage } from './page-text.js';
import { mustFitPayload } from './quota-checks.js';
import { forbidden, mustAllowSteps, reachesWorkflow } from './restrictions.js';
import { Answer, type Call, jsonCheckedByRun, MANY_PAYLOADS, type Route, route } from './route.js';
import type { Shard } from './shard.js';

/** Definitions of a list that one statement reads. */
const PORTION = 200;

/**
 * Graphs that are kept under names and started by them. Every node does so itself; a change holds for the starts after it,
 * through every node.
 */
export const definitionRoutes: readonly Route[] = [
  route({
    id: 'putWorkflowDefinition',
    audit: ['definition.create', 'definition.change'],
    method: 'PUT',
    path: '/v1/workflow-definitions/:name',
    tag: 'workflows',
    summary:
      'Keep a graph under a name. It is checked like a submission. What differs from the newest version becomes the next one; ' +
      'the same again changes nothing.',
    scope: 'admin',
    params: NamePath,
    body: jsonCheckedByRun(WorkflowDefinitionInput, {
      ...{ maxBytes: MANY_PAYLOADS, text: 'payload', orText: 'workflow', maps: ['jobs'] },
      mostItems: () => MOST_STEPS,
    }),
    answers: { 201: WorkflowDefinitionView, 200: WorkflowDefinitionView },
    repeatable: true,
    run: ({ node, caller, params: { name }, body, call }) => put(node, caller, name, body, call),
  }),
  route({
    id: 'listWorkflowDefinitions',
    method: 'GET',
    path: '/v1/workflow-definitions',
    tag: 'workflows',
    summary: 'List the newest versions of all definitions by name, without their steps.',
    scope: 'read',
    query: PageQuery,
    answers: { 200: WorkflowDefinitionPage },
    run: ({ node, caller, query: { limit, after = '' } }) => {
      const { tenant } = caller;
      const { reads } = node.shardOf(tenant);
      return writePage<DefinitionRow>(limit, {
        portion: PORTION,
        read: (last, size) =>
          reads.read(tenant, (db) => listDefinitions(db, tenant, last?.name ?? after, size)),
        isShown: (row) => reachesWorkflow(caller, row),
        write: (row) => JSON.stringify(listedDefinition(row)),
        cursor: (row) => row.name,
      });
    },
  }),
  route({
    id: 'getWorkflowDefinition',
    method: 'GET',
    path: '/v1/workflow-definitions/:name',
    tag: 'workflows',
    summary: 'Read a definition with its steps: its newest version, or another one that is kept.',
    scope: 'read',
    params: NamePath,
    query: WorkflowDefinitionQuery,
    answers: { 200: WorkflowDefinitionView },
    run: async ({ node, caller, params: { name }, query: { version } }) => {
      const { tenant } = caller;
      const { reads } = node.shardOf(tenant);
      return reads.read(tenant, async (db) => {
        const row = await readDefinition(db, tenant, name, version);
        if (!row || !reachesWorkflow(caller, row)) throw noDefinition(name, version);
        return new DefinitionText(row, row.jobs, await listVersions(db, tenant, name));
      });
    },
  }),
  route({
    id: 'deleteWorkflowDefinition',
    audit: 'definition.delete',
    method: 'DELETE',
    path: '/v1/workflow-definitions/:name',
    tag: 'workflows',
    summary:
      'Delete a definition: it cannot be started any more. Workflows that were started from it go on, and its versions stay as ' +
      'long as those are on record.',
    scope: 'admin',
    params: NamePath,
    answers: { 204: 'The definition is gone.' },
    run: async ({ node, caller, params: { name }, call }) => {
      const { tenant } = caller;
      const shard = node.shardOf(tenant);
      const found = await findDefinition(shard.pool, tenant, name);
      if (!found || !reachesWorkflow(caller, found)) throw noDefinition(name);
      const now = shard.clock.now();
      const gone = await deleteDefinition(shard.pool, { tenant, name, now }, async (db, changed) => {
        if (!reachesWorkflow(caller, changed.before!)) throw noDefinition(name);
        await note(db, call.author, shard, changed);
      });
      if (!gone) throw noDefinition(name);
      shard.currentLeader()?.noteEntry();
    },
  }),
];

async function put(
  node: NodeContext,
  caller: Caller,
  name: string,
  body: unknown,
  { author }: Call,
): Promise<Answer> {
  const { tenant, actor } = caller;
  const shard = node.shardOf(tenant);
  const form = readDefinitionForm(body);
  // Names of definitions stay names: each start puts in what they mean then.
  const find = definitionsOf(shard.hot, tenant);
  const put = await putDefinitions(form.jobs, { ...node.config, find }, [name]);
  const tasks = await findTasks(shard, tenant, await allSteps(put, node.config));
  const context = { ...submissionContext(node, shard, tasks), maxBulkBytes: node.config.maxBulkBytes };
  const steps = await parseGraph({ ...form, jobs: put }, context);
  mustAllowSteps(caller, withInner(steps));
  await mustFitPayloads(shard, caller, steps);
  const jobs = await writeSteps(form.jobs);
  const graph = {
    ...{ tenant, name, jobs, ...policiesOf(form), digest: digestOf(jobs, form), steps: steps.length },
    ...reachWith({ queues: [], tasks: [] }, steps),
    ...{ actor, now: shard.clock.now() },
  };
  const mayReplace = (found: DefinitionRow) => {
    if (!reachesWorkflow(caller, found))
      throw forbidden('The name belongs to a definition that your key does not reach; nothing was changed.');
  };
  let versions: number[] = [];
  const { before, after, isNew } = await putDefinition(shard.pool, graph, mayReplace, async (db, changed) => {
    if (changed.after !== changed.before) await note(db, author, shard, changed);
    versions = await listVersions(db, tenant, name);
  });
  if (isNew) shard.currentLeader()?.noteEntry();
  const location = `/v1/workflow-definitions/${encodeURIComponent(name)}`;
  return new Answer(
    before ? 200 : 201,
    new DefinitionText(after!, jobs, versions),
    before ? {} : { location },
  );
}

/** What holds for the steps of a submission holds for those of a definition. */
async function mustFitPayloads(shard: Shard, caller: Caller, steps: readonly ParsedStep[]): Promise<void> {
  const quotas = await shard.quotas.of(caller.tenant);
  if (!quotas) return;
  for (const { step, pointer } of withPlaces(steps))
    mustFitPayload(quotas, step.payload, `${pointer}/payload`);
}

/** The entry of the audit about a definition; its steps may hold secrets, so it shows their hash. */
async function note(
  db: Queryable,
  author: AuditAuthor,
  { clock }: Shard,
  { before, after }: DefinitionChanged,
): Promise<void> {
  const { tenant, name } = (after ?? before)!;
  const action = !after ? 'definition.delete' : before ? 'definition.change' : 'definition.create';
  const views = { before: before && auditView(before), after: after && auditView(after) };
  await addEntry(
    db,
    auditEntry(author, clock.now(), action, { kind: 'definition', name, tenant }, views),
    null,
  );
}

function auditView({ version, steps, bytes, on_failure, running, digest }: DefinitionRow): object {
  return { version, steps, bytes, onFailure: on_failure, running, sha256: digest };
}

/** A graph to be run, and the definition that it comes from. */
export interface StartedGraph {
  readonly form: WorkflowForm;
  readonly definition: UsedDefinition;
}

/** The graph of a start by name. */
export async function graphOf(shard: Shard, caller: Caller, start: StartForm): Promise<StartedGraph> {
  const { definition: name, version, key, input } = start;
  const row = await readDefinition(shard.hot, caller.tenant, name, version);
  if (!row || !reachesWorkflow(caller, row)) throw noDefinition(name, version);
  // Versions of a deleted definition stay on record for the workflows that were started from them, not for new ones.
  if (row.replaced_at !== null && !(await findDefinition(shard.hot, caller.tenant, name)))
    throw noDefinition(name);
  const { on_failure: onFailure, running } = row;
  const form = {
    ...{ name, onFailure, running, jobs: await readSteps(row.jobs) },
    ...(key !== undefined && { key }),
    ...(input !== undefined && { input }),
  };
  return { form, definition: { name, version: row.version } };
}

/** What is wrong with a step of a definition is no mistake of the request that starts it. */
export function ofDefinition(error: unknown): unknown {
  if (!(error instanceof PunctualError) || error.code !== 'INVALID_REQUEST') return error;
  const errors = error.errors.map(({ pointer, detail }) =>
    pointer.startsWith('/jobs')
      ? { pointer: '/definition', detail: `cannot be started as things are: ${pointer}: ${detail}` }
      : { pointer, detail },
  );
  return invalid(errors);
}

function listedDefinition(row: DefinitionRow): ListedWorkflowDefinition {
  const { tenant, name, version, steps, on_failure: onFailure, running } = row;
  return {
    ...{ tenant, name, version, steps, onFailure, running },
    createdAt: new Date(row.created_at).toISOString(),
    createdBy: row.created_by,
  };
}

/** A version as the API shows it, with its steps as their stored text. */
class DefinitionText extends JsonText {
  readonly text: string;

  constructor(row: DefinitionRow | WholeDefinition, jobs: string, versions: readonly number[]) {
    super();
    const view = { ...listedDefinition(row), newest: row.replaced_at === null, versions };
    this.text = `${JSON.stringify(view).slice(0, -1)},"jobs":${jobs}}`;
  }
}
