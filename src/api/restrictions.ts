import { areWithin, handlerOf, isWithin, type KeyLimits, type StoredWork } from '../core/access.js';
import { PunctualError } from '../core/errors.js';
import type { ParsedStep } from '../core/workflow/parse-workflow.js';
import type { Queryable } from '../store/database.js';
import type { KeyGuard } from '../store/keys.js';
import { readQueues } from '../store/queues.js';
import { readWorkflow, type WorkflowRow } from '../store/read-workflows.js';
import type { AttemptCredential, Caller } from './caller.js';

/**
 * Keys that are restricted to queues and tasks. What exists outside of them is not found; what would come into being there is
 * refused. A caller without such a key passes every check at once.
 */

/** The most names that a refusal lists. */
const MOST_NAMED = 10;

/** What a job or schedule is in, as far as restrictions go. */
export interface Place {
  readonly queue: string;
  readonly task: string | null;
}

/** The restrictions of the caller's key, if it has any. */
export function limitsOf(caller: Caller | AttemptCredential): KeyLimits | undefined {
  return 'jobId' in caller ? undefined : caller.key?.limits;
}

/** Whether the caller may see and touch what is there. */
export function mayTouch(caller: Caller | AttemptCredential, place: Place): boolean {
  const limits = limitsOf(caller);
  return limits === undefined || isWithin(limits, place);
}

/** Whether a job is a step that runs nothing: who reaches its workflow reaches it, whatever queue its row is in. */
export function isIdleStep({ workflow, task, target }: IdleStep): boolean {
  return workflow !== null && task === null && target === null;
}

interface IdleStep {
  readonly workflow: string | null;
  readonly task: string | null;
  readonly target: unknown;
}

/** Whether the caller may see and touch a job. */
export async function mayTouchJob(
  db: Queryable,
  caller: Caller,
  job: Place & IdleStep & { readonly tenant: string },
): Promise<boolean> {
  if (limitsOf(caller) === undefined) return true;
  return isIdleStep(job) ? reachesWorkflowOf(db, caller, job) : mayTouch(caller, job);
}

/** Whether the caller reaches the workflow of a job; so does everybody if it has none. */
export async function reachesWorkflowOf(
  db: Queryable,
  caller: Caller,
  { workflow, tenant }: Pick<IdleStep, 'workflow'> & { readonly tenant: string },
): Promise<boolean> {
  if (workflow === null || limitsOf(caller) === undefined) return true;
  const row = await readWorkflow(db, tenant, workflow);
  return row !== null && reachesWorkflow(caller, row);
}

/** A restricted key reaches a workflow if it reaches all of its steps; one that runs nothing is in no queue, and so elsewhere. */
export function reachesWorkflow(
  caller: Caller,
  { queues, tasks }: Pick<WorkflowRow, 'queues' | 'tasks'>,
): boolean {
  if (limitsOf(caller) === undefined) return true;
  if (queues === null || tasks === null || queues.length === 0) return false;
  return queues.every((queue) => tasks.every((task) => mayTouch(caller, { queue, task: task || null })));
}

/** Refuses steps where the key does not reach; `steps` are those of a whole workflow, with the ones inside. */
export function mustAllowSteps(
  caller: Caller,
  steps: readonly Pick<ParsedStep, 'wait' | 'inner' | 'definition'>[],
): void {
  if (limitsOf(caller) === undefined) return;
  const runs = steps.filter(({ wait, inner }) => wait === null && inner === null);
  for (const { definition } of runs) mustAllow(caller, definition);
  if (runs.length === 0)
    throw forbidden('The key is restricted: it does not reach a workflow that only waits.');
}

/** Whether the caller may report about a job: for workers, the tasks of a key are the handlers that they run. */
export function mayReport(caller: Caller | AttemptCredential, job: Place & StoredWork): boolean {
  return limitsOf(caller) === undefined || mayTouch(caller, { queue: job.queue, task: handlerOf(job) });
}

/** Whether the caller may see and touch a queue. */
export function mayTouchQueue(caller: Caller, queue: string): boolean {
  const queues = limitsOf(caller)?.queues ?? null;
  return queues === null || queues.includes(queue);
}

/** Refuses to put something where the key does not reach. */
export function mustAllow(caller: Caller, place: Place): void {
  if (mayTouch(caller, place)) return;
  const task = place.task === null ? 'a target of its own' : `task ${place.task}`;
  throw forbidden(`The key is restricted: it may not use queue ${place.queue} with ${task}.`);
}

/** Refuses the keys of jobs that a restricted key does not reach, which can be neither found, replaced nor followed by their keys. */
export function keyGuardOf(caller: Caller): KeyGuard | undefined {
  const limits = limitsOf(caller);
  if (limits === undefined) return undefined;
  return async (db, holders) => {
    const { queues } = limits;
    const ids = queues === null ? [] : [...new Set(holders.map(({ queue }) => queue))];
    // In more queues than the key reaches, some are elsewhere; so only a few are ever read.
    const isBeyond = queues !== null && ids.length > queues.length;
    const found = isBeyond || ids.length === 0 ? [] : await readQueues(db, ids);
    const names = new Map(found.map(({ id, name }) => [id, name]));
    const isReached = holders.every(({ queue, task }) =>
      isWithin(limits, { queue: names.get(queue) ?? '', task }),
    );
    if (!isReached)
      throw forbidden('A key belongs to a job that your key does not reach; nothing was stored.');
  };
}

/** Refuses a worker that could receive what the key does not reach. */
export function mustAllowWorker(caller: Caller, reach: KeyLimits): void {
  const limits = limitsOf(caller);
  if (limits === undefined || areWithin(reach, limits)) return;
  const { queues, tasks } = limits;
  const advice =
    queues && !areWithin(reach, { queues, tasks: null })
      ? ` Start it with --queues ${queues.join(',')}.`
      : '';
  const wrong = [outside('queue', reach.queues, queues), outside('task', reach.tasks, tasks)].filter(Boolean);
  throw forbidden(`The key is restricted, and the worker would serve ${wrong.join(' and ')}.${advice}`);
}

/** What a worker would serve beyond the names of its key, in words; null if nothing. */
function outside(
  kind: 'queue' | 'task',
  reach: readonly string[] | null,
  own: readonly string[] | null,
): string | null {
  if (own === null) return null;
  const only = `(the key: ${own.join(', ')})`;
  if (reach === null) return `every ${kind} ${only}`;
  const others = reach.filter((name) => !own.includes(name));
  if (others.length === 0) return null;
  const more = others.length > MOST_NAMED ? ' …' : '';
  return `${kind} ${others.slice(0, MOST_NAMED).join(', ')}${more} ${only}`;
}

/**
 * The queue and task of a filter, narrowed to what the key reaches. A key for one queue means that one; a key for several
 * must be told which, because a list follows one index. Steps that run nothing are in no queue, and so elsewhere. Null when
 * nothing can be found.
 */
export function narrowed<
  F extends { readonly queue?: string | undefined; readonly task?: string | undefined },
>(caller: Caller, filter: F): (F & { readonly runs?: boolean }) | null {
  const limits = limitsOf(caller);
  if (limits === undefined) return filter;
  const queue = oneOf('queue', filter.queue, limits.queues);
  const task = oneOf('task', filter.task, limits.tasks);
  if (queue === null || task === null) return null;
  return {
    ...filter,
    ...(queue !== undefined && { queue }),
    ...(task !== undefined && { task }),
    runs: true,
  };
}

function oneOf(
  what: 'queue' | 'task',
  asked: string | undefined,
  allowed: readonly string[] | null,
): string | null | undefined {
  if (allowed === null) return asked;
  if (asked !== undefined) return allowed.includes(asked) ? asked : null;
  if (allowed.length === 1) return allowed[0];
  throw forbidden(`The key is restricted to several ${what}s: name one of them in the filter.`);
}

/** The error for what a restricted key may not do. */
export function forbidden(detail: string): PunctualError {
  return new PunctualError('FORBIDDEN', detail);
}
