import { parseDuration } from '../core/duration.js';
import { invalid, PunctualError } from '../core/errors.js';
import { IdPath, ShortListQuery } from '../core/schemas/query.js';
import {
  ClaimAnswer,
  ClaimRequest,
  Heartbeat,
  HeartbeatAnswer,
  Leave,
  ReportAnswer,
  ReportRequest,
  WorkerPage,
  WorkerRegistration,
  WorkerView,
  WorkerWelcome,
} from '../core/schemas/worker.js';
import * as wire from '../core/wire.js';
import { OwnAssignment } from '../dispatch/assignment.js';
import { findWorker, listWorkers, type WorkerRow, type WorkerViewer } from '../store/workers.js';
import { toReport } from './attempts.js';
import type { Caller } from './caller.js';
import type { NodeContext } from './context.js';
import { mustBeCursor } from './id-range.js';
import { JsonText } from './json-text.js';
import { writePage } from './page-text.js';
import { limitsOf, mustAllowWorker } from './restrictions.js';
import { type Call, json, MANY_PAYLOADS, type Route, route } from './route.js';

/** Workers of a list that one statement reads. */
const PORTION = 50;
/** The most bytes of a registration, because the leader keeps its parts in memory and lists show many at once. */
const MAX_REGISTRATION_BYTES = 256 * 1024;

/** The routes that workers call. */
const sessionRoutes: readonly Route[] = [
  route({
    id: 'registerWorker',
    method: 'POST',
    path: '/v1/workers',
    tag: 'workers',
    summary: "Open a worker's session with a shard's leader.",
    scope: 'work',
    body: json(WorkerRegistration, { maxBytes: MAX_REGISTRATION_BYTES }),
    answers: { 201: WorkerWelcome },
    idempotent: 'a session that its worker does not use ends by itself',
    run: ({ node, caller, body }) => registerWorker(node, caller, body),
  }),
  route({
    id: 'sendHeartbeat',
    method: 'POST',
    path: '/v1/workers/:id/heartbeat',
    tag: 'workers',
    summary: 'Say that the worker lives and what it holds. 404: register again.',
    scope: 'work',
    params: IdPath,
    body: json(Heartbeat, {
      maxBytes: ({ maxBulkBytes }) => maxBulkBytes,
      lists: ['running', 'refused'],
    }),
    answers: { 200: HeartbeatAnswer },
    idempotent: 'each heartbeat replaces the one before',
    run: ({ node, caller, params, body, call }) => takeHeartbeat(node, caller, keyOf(params, call), body),
  }),
  route({
    id: 'leaveWorker',
    method: 'DELETE',
    path: '/v1/workers/:id',
    tag: 'workers',
    summary:
      "End a worker's session. What it was handed and has not reported is lost, unless it says otherwise.",
    scope: 'work',
    params: IdPath,
    body: json(Leave, { optional: true }),
    answers: { 204: 'The session is over.' },
    run: ({ node, caller, params, body, call }) => endSession(node, caller, keyOf(params, call), body),
  }),
  route({
    id: 'claimJobs',
    method: 'POST',
    path: '/v1/workers/:id/claim',
    tag: 'workers',
    summary: 'Take jobs; waits until there are some or the time is up.',
    scope: 'work',
    params: IdPath,
    body: json(ClaimRequest),
    answers: { 200: ClaimAnswer },
    idempotent: 'jobs whose answer was lost are offered again under the same fence',
    // May be repeated: jobs that were claimed for a lost answer are offered again.
    repeatable: true,
    run: async ({ node, caller, params, body, call }) => {
      const session = keyOf(params, call);
      return new ClaimText(
        await call.wait('work', (signal) => claimJobs(node, caller, session, body, signal, call.waitedMs)),
      );
    },
  }),
  route({
    id: 'reportResults',
    method: 'POST',
    path: '/v1/workers/:id/report',
    tag: 'workers',
    summary: 'Report the results of attempts, at most one per job.',
    scope: 'work',
    params: IdPath,
    body: json(ReportRequest, { maxBytes: MANY_PAYLOADS, text: 'result', lists: ['results'] }),
    answers: { 200: ReportAnswer },
    idempotent: 'the fence decides: a result that is on record is accepted again',
    // May be repeated: a result that is on record is accepted again.
    repeatable: true,
    run: ({ node, caller, params, body, call }) => reportResults(node, caller, keyOf(params, call), body),
  }),
];

/** The routes that workers call, and those that show, drain and remove workers. */
export const workerRoutes: readonly Route[] = [
  ...sessionRoutes,
  route({
    id: 'listWorkers',
    method: 'GET',
    path: '/v1/workers',
    tag: 'workers',
    summary: 'List the workers, newest first.',
    scope: 'read',
    query: ShortListQuery,
    answers: { 200: WorkerPage },
    run: async ({ node, caller, query: { limit, after } }) => {
      const shard = node.shardOf(caller.tenant);
      const { workers } = await shard.leader();
      mustBeCursor(after);
      return writePage<WorkerRow>(limit, {
        portion: PORTION,
        read: (last, size) => listWorkers(shard.pool, viewerOf(caller), last?.id ?? after ?? null, size),
        write: (row) => JSON.stringify(workers.view(row)),
        cursor: (row) => row.id,
      });
    },
  }),
  route({
    id: 'getWorker',
    method: 'GET',
    path: '/v1/workers/:id',
    tag: 'workers',
    summary: 'Read a worker.',
    scope: 'read',
    params: IdPath,
    answers: { 200: WorkerView },
    run: ({ node, caller, params }) => viewWorker(node, caller, params.id),
  }),
  route({
    id: 'drainWorker',
    audit: 'worker.drain',
    method: 'POST',
    path: '/v1/workers/:id/drain',
    tag: 'workers',
    summary: 'Ask a worker to stop taking work, finish and leave.',
    scope: 'admin',
    params: IdPath,
    answers: { 200: WorkerView },
    // The answer is kept afterwards: a worker that is asked twice does what it does when asked once.
    idempotent: true,
    run: async ({ node, caller, params: { id }, call }) => {
      const shard = node.shardOf(caller.tenant);
      const { workers } = await shard.leader();
      // An operator drains any worker that it is shown, whatever tenant it belongs to.
      const row = caller.operator ? await findWorker(shard.pool, viewerOf(caller), id) : null;
      await workers.drain(row ? { ...caller, tenant: row.tenant } : caller, id, call.author);
      const view = await viewWorker(node, caller, id);
      await call.keeper?.keep(shard.hot, view);
      return view;
    },
  }),
];

/** The session that a request of a worker is about. */
function keyOf({ id }: { readonly id: string }, { shard }: Call): wire.SessionKey {
  return { shard, workerId: id };
}

/** Opens a worker's session. */
export async function registerWorker(
  node: NodeContext,
  caller: Caller,
  registration: wire.WorkerRegistration,
): Promise<wire.WorkerWelcome> {
  if (registration.shared && !caller.operator)
    throw new PunctualError('FORBIDDEN', 'Only an operator may run a worker that serves all tenants.');
  const hasHandlersOnly = registration.targets.every((target) => target === 'handler');
  mustAllowWorker(caller, {
    queues: registration.queues.includes(wire.ALL_QUEUES) ? null : registration.queues,
    // Jobs for other targets come whatever their tasks are.
    tasks: hasHandlersOnly ? registration.tasks : null,
  });
  const { workers } = await node.shardOf(caller.tenant).leader();
  return workers.register(caller, registration);
}

/** Takes a heartbeat; answers with what the worker must do. */
export async function takeHeartbeat(
  node: NodeContext,
  caller: Caller,
  { shard, workerId }: wire.SessionKey,
  heartbeat: wire.Heartbeat,
): Promise<wire.HeartbeatAnswer> {
  const { workers } = await node.shard(shard).leader();
  return workers.heartbeat(caller, workerId, heartbeat);
}

/** Hands jobs to a worker. `waitedMs` counts towards its wait. Rejects when the signal aborts. */
export async function claimJobs(
  node: NodeContext,
  caller: Caller,
  { shard, workerId }: wire.SessionKey,
  { max, wait }: wire.ClaimRequest,
  signal: AbortSignal,
  waitedMs = 0,
): Promise<wire.ClaimAnswer> {
  const until = performance.now() + parseDuration(wait)! - waitedMs;
  const leader = await node.shard(shard).leader();
  const leftMs = Math.max(0, until - performance.now());
  const isWelcome = () => node.authentication.isValid(caller);
  return leader.workers.claim(caller, workerId, max, leftMs, signal, isWelcome);
}

/** Takes the results of a worker's attempts. */
export async function reportResults(
  node: NodeContext,
  caller: Caller,
  { shard, workerId }: wire.SessionKey,
  { results }: wire.ReportRequest,
): Promise<wire.ReportAnswer> {
  const seen = new Set<string>();
  results.forEach((result, i) => {
    seen.add(result.jobId);
    if (seen.size === i) {
      throw invalid([{ pointer: `/results/${i}/jobId`, detail: 'at most one result per job in a report' }]);
    }
  });
  const leader = await node.shard(shard).leader();
  leader.workers.seen(caller, workerId);
  // Only an operator may report for a tenant that its key does not name, because its worker may serve all tenants.
  const tenantOf = (result: wire.AttemptResult) =>
    (caller.operator ? result.tenant : undefined) ?? caller.tenant;
  const limits = limitsOf(caller);
  const accepted = await leader.report(
    results.map((result) => toReport(tenantOf(result), result, node.config)),
    limits,
  );
  const answer = { epoch: leader.epoch, accepted: [] as string[], stale: [] as string[] };
  for (let i = 0; i < results.length; i++) {
    (accepted[i] ? answer.accepted : answer.stale).push(results[i]!.jobId);
  }
  return answer;
}

/** Ends a worker's session. */
export async function endSession(
  node: NodeContext,
  caller: Caller,
  { shard, workerId }: wire.SessionKey,
  { settled = false }: wire.Leave,
): Promise<void> {
  const { workers } = await node.shard(shard).leader();
  await workers.leave(caller, workerId, settled);
}

/** Which sessions a caller is shown. */
function viewerOf({ tenant, operator, allTenants }: Caller): WorkerViewer {
  return { tenant: allTenants ? null : tenant, operator };
}

async function viewWorker(node: NodeContext, caller: Caller, workerId: string): Promise<wire.WorkerView> {
  const shard = node.shardOf(caller.tenant);
  const { workers } = await shard.leader();
  const row = await findWorker(shard.pool, viewerOf(caller), workerId);
  if (!row) throw new PunctualError('WORKER_NOT_FOUND', `There is no worker ${workerId}.`);
  return workers.view(row);
}

/** The answer to a claim. Payloads are sent as their stored text: parsing and serializing them would cost the most. */
class ClaimText extends JsonText {
  readonly text: string;

  constructor({ epoch, jobs, stop }: wire.ClaimAnswer) {
    super();
    const texts = jobs.map((job) => (job instanceof OwnAssignment ? job.text : JSON.stringify(job)));
    const stopText = stop === undefined ? '' : `,"stop":${JSON.stringify(stop)}`;
    this.text = `{"epoch":${epoch},"jobs":[${texts.join(',')}]${stopText}}`;
  }
}
