import { type AuditAuthor, type AuditEntry, auditEntry, targetView } from '../core/audit.js';
import { PunctualError } from '../core/errors.js';
import { parseTask } from '../core/parse-task.js';
import { NamePath, PageQuery } from '../core/schemas/query.js';
import { TaskChange, TaskInput, TaskPage, TaskView } from '../core/schemas/task.js';
import { MAX_TASK_BYTES, normaliseTask, type TaskDefinition } from '../core/task-definition.js';
import type * as wire from '../core/wire.js';
import { addEntry } from '../store/audit.js';
import { keepLast } from '../store/idempotency.js';
import type { Requested } from '../store/requested.js';
import {
  deleteTask,
  findTask,
  listTasks,
  type NewDefinition,
  type TaskChanged,
  type TaskRow,
  writeTask,
} from '../store/tasks.js';
import type { Caller } from './caller.js';
import type { NodeContext } from './context.js';
import { answerOf } from './idempotency.js';
import { writePage } from './page-text.js';
import { forbidden, limitsOf } from './restrictions.js';
import { Answer, json, type Route, route } from './route.js';
import type { Shard } from './shard.js';

/** Tasks of a list that one statement reads. */
const PORTION = 200;
/** What a body may have beside the definition. */
const maxBytes = MAX_TASK_BYTES + 4_096;

/**
 * Defining, reading, changing and deleting tasks. Every node does so itself; a change affects jobs that are submitted
 * later, through this node at once and through others within a second.
 */
export const taskRoutes: readonly Route[] = [
  route({
    id: 'defineTask',
    audit: ['task.create', 'task.change'],
    method: 'POST',
    path: '/v1/tasks',
    tag: 'tasks',
    summary:
      'Define a task, or replace its definition. Jobs that are submitted later by its name take from it what their submission leaves open.',
    scope: 'admin',
    body: json(TaskInput, { maxBytes }),
    answers: { 201: TaskView, 200: TaskView },
    repeatable: true,
    idempotent: true,
    run: ({ node, caller, body: { name, publishedBy = null, overwrite = false, ...input }, call }) => {
      mustBeUnrestricted(caller);
      const definition = JSON.stringify(checked(node, caller, name, input));
      const decide = (found: TaskRow | null) => {
        if (publishedBy === null || overwrite) return unlessSame(found, { definition, publishedBy });
        mustBePublished(found, definition);
        // Where a worker says the same as a person, the definition stays the person's.
        const isOfPerson = found !== null && found.published_by === null;
        return isOfPerson ? null : unlessSame(found, { definition, publishedBy });
      };
      return answerOf<TaskChanged, Answer>(
        node.shardOf(caller.tenant),
        call,
        (requested) => write(node, caller, name, decide, requested),
        (_, { row, created }) => {
          const location = `/v1/tasks/${encodeURIComponent(name)}`;
          return new Answer(created ? 201 : 200, viewOf(row!), created ? { location } : {});
        },
      );
    },
  }),
  route({
    id: 'listTasks',
    method: 'GET',
    path: '/v1/tasks',
    tag: 'tasks',
    summary: 'List the defined tasks by name.',
    scope: 'read',
    query: PageQuery,
    answers: { 200: TaskPage },
    run: ({ node, caller, query: { limit, after = '' } }) => {
      const { tenant } = caller;
      const { reads } = node.shardOf(tenant);
      return writePage<TaskRow>(limit, {
        portion: PORTION,
        read: (last, size) => reads.read(tenant, (db) => listTasks(db, tenant, last?.name ?? after, size)),
        isShown: ({ name }) => isReached(caller, name),
        write: (row) => JSON.stringify(viewOf(row)),
        cursor: (row) => row.name,
      });
    },
  }),
  route({
    id: 'getTask',
    method: 'GET',
    path: '/v1/tasks/:name',
    tag: 'tasks',
    summary: 'Read the definition of a task.',
    scope: 'read',
    params: NamePath,
    answers: { 200: TaskView },
    run: async ({ node, caller, params: { name } }) => {
      const { tenant } = caller;
      const row = await node.shardOf(tenant).reads.read(tenant, (db) => findTask(db, tenant, name));
      if (!row || !isReached(caller, name)) throw notFound(name);
      return viewOf(row);
    },
  }),
  route({
    id: 'changeTask',
    audit: 'task.change',
    method: 'PATCH',
    path: '/v1/tasks/:name',
    tag: 'tasks',
    summary: 'Change the definition of a task; null takes a field back to its default.',
    scope: 'admin',
    params: NamePath,
    body: json(TaskChange, { maxBytes }),
    answers: { 200: TaskView },
    repeatable: true,
    run: async ({ node, caller, params: { name }, body, call }) => {
      mustBeUnrestricted(caller);
      const change = (found: TaskRow | null) => {
        if (!found) throw notFound(name);
        const before = JSON.parse(found.definition) as TaskDefinition;
        const after = normaliseTask({ ...before, ...body });
        const definition = JSON.stringify(checked(node, caller, name, after));
        return unlessSame(found, { definition, publishedBy: null });
      };
      const { row } = await write(node, caller, name, change, call);
      return viewOf(row!);
    },
  }),
  route({
    id: 'deleteTask',
    audit: 'task.delete',
    method: 'DELETE',
    path: '/v1/tasks/:name',
    tag: 'tasks',
    summary:
      'Delete the definition of a task. Jobs that were submitted before stay as they are; the name then means the handler of that name.',
    scope: 'admin',
    params: NamePath,
    answers: { 204: 'The definition is gone.' },
    run: async ({ node, caller, params: { name }, call }) => {
      mustBeUnrestricted(caller);
      const { tenant } = caller;
      const shard = node.shardOf(tenant);
      const { change } = await deleteTask(shard.pool, { tenant, name }, (db, before, changed) =>
        addEntry(db, entryOf(call.author, shard, before, changed), null),
      );
      if (change === null) throw notFound(name);
      told(shard, tenant, change);
    },
  }),
];

/** A definition decides where the jobs of others go, so a key that reaches some queues or tasks only cannot change any. */
function mustBeUnrestricted(caller: Caller): void {
  if (limitsOf(caller)) throw forbidden('The key is restricted: it cannot change the definitions of tasks.');
}

/** Whether the caller's key is for this task. */
function isReached(caller: Caller, task: string): boolean {
  return limitsOf(caller)?.tasks?.includes(task) ?? true;
}

/** The definition if it is good; throws INVALID_REQUEST with a pointer to every wrong field. */
function checked(
  { config, shardOf }: NodeContext,
  { tenant }: Caller,
  name: string,
  input: unknown,
): TaskDefinition {
  return parseTask(name, input, { ...config, now: shardOf(tenant).clock.now() });
}

async function write(
  node: NodeContext,
  { tenant, actor }: Caller,
  name: string,
  decide: (found: TaskRow | null) => NewDefinition | null,
  { author: who, keep }: Requested<TaskChanged>,
): Promise<TaskChanged> {
  const shard = node.shardOf(tenant);
  const author = { tenant, name, actor, now: shard.clock.now(), maxTasks: node.config.maxTasks };
  const written = await writeTask(shard.pool, author, decide, async (db, before, changed) => {
    if (who) await addEntry(db, entryOf(who, shard, before, changed), null);
    await keepLast(db, keep, changed);
  });
  if (written.change) told(shard, tenant, written.change);
  return written;
}

/** What follows a change: the definitions that this node knows are outdated, and its leader has an entry to chain. */
function told(shard: Shard, tenant: string, change: NonNullable<TaskChanged['change']>): void {
  shard.tasks.changed(tenant, change);
  shard.currentLeader()?.noteEntry();
}

/** The entry of the audit about a task. */
function entryOf(
  author: AuditAuthor,
  { clock }: Shard,
  before: TaskRow | null,
  { row: after }: TaskChanged,
): AuditEntry {
  const action = after === null ? 'task.delete' : before === null ? 'task.create' : 'task.change';
  const { tenant, name } = (after ?? before)!;
  const views = { before: before && auditViewOf(before), after: after && auditViewOf(after) };
  return auditEntry(author, clock.now(), action, { kind: 'task', name, tenant }, views);
}

function auditViewOf({ definition, published_by: publishedBy }: TaskRow): object {
  const { target, ...rest } = JSON.parse(definition) as TaskDefinition;
  return { ...rest, ...(target && { target: targetView(target) }), publishedBy };
}

/** Null when a definition stays what it is: workers publish at every start, and mostly nothing has changed. */
function unlessSame(found: TaskRow | null, wanted: NewDefinition): NewDefinition | null {
  if (found === null || found.definition !== wanted.definition) return wanted;
  // Which worker has published it last does not matter; whether a person stands behind it does.
  return (found.published_by === null) === (wanted.publishedBy === null) ? null : wanted;
}

/** A worker does not replace what a person has defined, unless it says the same. */
function mustBePublished(found: TaskRow | null, definition: string): void {
  if (found === null || found.published_by !== null || found.definition === definition) return;
  throw new PunctualError(
    'TASK_DEFINED',
    `The task ${found.name} was defined by ${found.changed_by}; what a worker publishes does not replace that.`,
  );
}

function viewOf(row: TaskRow): wire.TaskView {
  return {
    tenant: row.tenant,
    name: row.name,
    ...normaliseTask(JSON.parse(row.definition)),
    publishedBy: row.published_by,
    createdAt: new Date(row.created_at).toISOString(),
    createdBy: row.created_by,
    changedAt: new Date(row.changed_at).toISOString(),
    changedBy: row.changed_by,
    version: row.version,
  };
}

function notFound(name: string): PunctualError {
  return new PunctualError('TASK_NOT_FOUND', `The task ${name} is not defined.`);
}
