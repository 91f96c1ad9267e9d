import { PeerTrust } from '../../cluster/peer-trust.js';
import { KEY_SCOPES, type KeyScope, type KeyView } from '../../core/access.js';
import { PunctualError } from '../../core/errors.js';
import type { Job } from '../../core/job.js';
import { NO_QUOTAS } from '../../core/quotas.js';
import { parseDefinition, parseTimetable } from '../../core/schedule-definition.js';
import { validate } from '../../core/schemas/validate.js';
import type { SecretKeysView, SecretView, SigningSecretView } from '../../core/secret.js';
import { parseSubmission, parseSubmissions } from '../../core/submission.js';
import type {
  ClusterView,
  ManyJobsAnswer,
  QueueView,
  ScheduleView,
  TaskView,
  TenantView,
  WorkerView,
} from '../../core/wire.js';
import type { Caller } from '../caller.js';
import type { NodeContext } from '../context.js';
import { Answer, type Call, type HttpLimits, type Route } from '../route.js';
import { ROUTES } from '../routes.js';
import type { HttpServerOptions } from './options.js';
import { createHttpServer } from './server.js';

/** The routes as they are declared, but with a `run` that remembers what reached it. The real ones are tested elsewhere. */

export const OPERATOR_KEY = 'pk_operator';
/** Keys of tenant acme, by their only scope. */
export const tenantKey = (scope: KeyScope) => `pk_acme_${scope}`;
/** A key that is neither an operator's nor a tenant's. */
export const OWNERLESS_KEY = 'pk_ownerless';
export const NODE_TOKEN = 'node_token';
export const ATTEMPT_TOKEN = 'at_token';
export const JOB_ID = '01890a5d-ac96-774b-bcce-b302099a8057';
export const OTHER_ID = '01890a5d-ac96-774b-bcce-b302099a8058';

/** What submissions and schedules are parsed with. */
const CONTEXT = {
  ...{ now: 0, createdAt: 0, maxPayload: Number.MAX_SAFE_INTEGER, maxDepth: 16 },
  ...{ jobTimeout: 60_000, maxJobTimeout: 3_600_000, allowCommands: false },
};

/** Checks what a preview asks for, like the real one. */
function previewed({ from: _, count: __, ...when }: RecordedInput['body']): unknown[] {
  parseTimetable(when, 0);
  return [];
}

/** One call that came through: the id of the route, who called it, and what it was called with. */
export interface RecordedCall {
  readonly name: string;
  readonly by: unknown;
  readonly rest: readonly unknown[];
}

/** What a recording route works with. */
export interface RecordedInput {
  readonly caller: Caller;
  readonly params: Readonly<Record<string, string>>;
  readonly query: Readonly<Record<string, unknown>>;
  // biome-ignore lint/suspicious/noExplicitAny: the routes check it, each its own.
  readonly body: any;
  readonly call: Call;
}

/** What a route answers instead of doing anything. */
type Answering = (input: RecordedInput) => unknown;

/** The recording routes, what they recorded, and switches for what they answer. */
export interface Recording {
  readonly routes: readonly Route[];
  readonly calls: RecordedCall[];
  /** Resolves when a call has begun to wait. */
  readonly waiting: Promise<AbortSignal>;
  healthy: boolean;
  /** Thrown by the next call of `whyJob`. */
  failure: unknown;
}

/** A server over recording routes, with small limits, and a call that carries the operator's key. */
export function testServer(
  limits: Partial<HttpLimits> = {},
  others: Readonly<Record<string, Answering>> = {},
  options: Partial<HttpServerOptions> = {},
) {
  const recording = recordingRoutes(others);
  const logged: object[] = [];
  const server = createHttpServer({
    ...serverOptions(recording),
    limits: {
      maxBulkBytes: 2_000_000,
      maxBulkJobs: 10_000,
      maxPayload: 10_000,
      maxDepth: 16,
      maxConnections: 10_000,
      ...limits,
    },
    log: { error: (fields) => logged.push(fields) },
    ...options,
  });
  const call = (
    method: 'GET' | 'POST' | 'PATCH' | 'PUT' | 'DELETE' | 'HEAD',
    url: string,
    payload?: unknown,
  ) =>
    server.inject({
      method,
      url,
      headers: {
        authorization: `Bearer ${OPERATOR_KEY}`,
        ...(payload !== undefined && { 'content-type': 'application/json' }),
      },
      ...(payload !== undefined && {
        payload: typeof payload === 'string' || Buffer.isBuffer(payload) ? payload : JSON.stringify(payload),
      }),
    });
  return { server, recording, logged, call };
}

/** What a server over recording routes is made of. */
export function serverOptions(recording: Recording): HttpServerOptions {
  return {
    // What the probes look at; nothing else is real here.
    node: {
      config: { leaseTtl: 1_000 },
      shards: [{ databaseSilentMs: () => (recording.healthy ? 1 : null), leader: async () => undefined }],
    } as unknown as NodeContext,
    routes: recording.routes,
    authenticate: async (bearer) => {
      if (bearer === OPERATOR_KEY) return { operator: true, name: 'admin' };
      if (bearer === OWNERLESS_KEY) return { operator: false, name: 'someone' };
      if (bearer === NODE_TOKEN) return { operator: false, name: 'a-node', node: true };
      const scope = KEY_SCOPES.find((each) => bearer === tenantKey(each));
      if (scope) {
        const key = { id: OTHER_ID, scopes: [scope], expiresAt: null };
        return { operator: false, name: scope, tenant: 'acme', key };
      }
      if (bearer === ATTEMPT_TOKEN) return { tenant: 'acme', jobId: JOB_ID, fence: 1 };
      return null;
    },
    limits: {
      maxBulkBytes: 100_000,
      maxBulkJobs: 10_000,
      maxPayload: 10_000,
      maxDepth: 16,
      maxConnections: 10_000,
    },
    forwarding: {
      shards: [],
      credentialFor: () => null,
      mark: () => '',
      isMark: () => false,
      trust: new PeerTrust(''),
    },
    log: { error: () => undefined },
    version: '0.0.0',
    certificate: null,
    defaultTenant: 'default',
  };
}

/** The routes alone; `others` answer instead of what is answered by default. */
export function recordingRoutes(others: Readonly<Record<string, Answering>> = {}): Recording {
  const calls: RecordedCall[] = [];
  let began: (signal: AbortSignal) => void = () => undefined;
  const waiting = new Promise<AbortSignal>((resolve) => {
    began = resolve;
  });
  const untilAborted = (signal: AbortSignal) =>
    new Promise<void>((resolve) => {
      signal.addEventListener('abort', () => resolve());
      if (signal.aborted) resolve();
      began(signal);
    });
  const answers: Record<string, Answering> = { ...answering(untilAborted), ...others };
  const recording: Recording = {
    routes: ROUTES.map((route) => {
      const answer = answers[route.id];
      return answer ? { ...route, run: (input: RecordedInput) => run(route, input, answer) } : route;
    }),
    calls,
    waiting,
    healthy: true,
    failure: undefined,
  };
  const run = async (route: Route, input: RecordedInput, answer: Answering) => {
    if (route.body?.kind === 'json' && route.id !== 'leaveWorker') validate(route.body.schema, input.body);
    if (route.id === 'whyJob' && recording.failure !== undefined) throw recording.failure;
    const answered = await answer(input);
    const { caller, params, query, body } = input;
    const rest = [
      ...Object.values(params),
      ...(route.query ? [query] : []),
      ...(body === undefined ? [] : [body]),
    ];
    calls.push({ name: route.id, by: caller, rest });
    return answered;
  };
  return recording;
}

function exampleMany(dryRun: boolean): ManyJobsAnswer {
  return { matched: 2, changed: dryRun ? 0 : 2, dryRun, more: false, next: null, refused: [] };
}

/** What the routes answer. Probes are left as they are. */
function answering(untilAborted: (signal: AbortSignal) => Promise<void>): Record<string, Answering> {
  const seen = new Map<string, Job>();
  const job: Answering = ({ caller }) => exampleJob(caller);
  const schedule: Answering = ({ caller, params }) => exampleSchedule(caller, params.name!);
  const queue: Answering = ({ params }) => exampleQueue(params.name!);
  const definedTask: Answering = ({ caller, params }) => exampleTask(caller, params.name!);
  const many: Answering = ({ body: { dryRun = false } }) => exampleMany(dryRun);
  const nothing: Answering = () => undefined;
  const empty: Answering = () => ({ data: [], next: null });
  return {
    submitJob: ({ caller, body }) => {
      const { definition, payload } = parseSubmission(body, CONTEXT);
      const { key } = definition;
      const before = key === null ? undefined : seen.get(key);
      const created = before ?? exampleJob(caller, JSON.parse(payload));
      if (key !== null) seen.set(key, created);
      const repetition = { repeated: before !== undefined, replaced: false, differs: [] };
      return new Answer(
        before ? 200 : 201,
        { ...created, ...repetition },
        { location: `/v1/jobs/${created.id}` },
      );
    },
    submitJobs: async ({ body }) => ({
      ids: (await parseSubmissions(body.jobs, CONTEXT)).map(() => JOB_ID),
      repetitions: [],
    }),
    listJobs: ({ caller }) => ({ data: [exampleJob(caller)], next: 'cursor' }),
    getJob: async ({ caller, params: { id }, query, call }) => {
      if (id !== JOB_ID) throw new PunctualError('JOB_NOT_FOUND', `There is no job ${id}.`);
      if (query.wait !== undefined) await call.wait('results', untilAborted);
      return exampleJob(caller);
    },
    readLogs: empty,
    findIds: () => ({ ids: [JOB_ID], more: false }),
    whyJob: ({ params }) => ({
      jobId: params.id,
      state: 'pending',
      gate: 'hold',
      detail: 'It is on hold.',
      figures: {},
    }),
    ...{ changeJob: job, cancelJob: job, retryJob: job, holdJob: job, releaseJob: job },
    redriveJobs: ({ body: { dryRun = false } }) => ({
      ...{ ...exampleMany(dryRun), redriven: dryRun ? 0 : 2 },
    }),
    ...{ cancelJobs: many, holdJobs: many, releaseJobs: many, deleteJobs: many },
    completeAttempt: ({ body }) => {
      if (body.fence !== 1) throw new PunctualError('STALE_FENCE', 'A newer attempt owns the job.');
    },
    ...{ failAttempt: nothing, reportProgress: nothing, appendLogs: nothing },
    registerWorker: () => ({
      workerId: OTHER_ID,
      shard: 0,
      epoch: 1,
      heartbeatInterval: '3s',
      workerTimeout: '10s',
      now: '2026-01-01T00:00:00.000Z',
    }),
    sendHeartbeat: () => ({ epoch: 1, stop: [], drain: false, now: '2026-01-01T00:00:00.000Z' }),
    leaveWorker: nothing,
    claimJobs: async ({ body, call }) => {
      if (body.wait !== '0s') await call.wait('work', untilAborted);
      return { epoch: 1, jobs: [] };
    },
    reportResults: ({ body }) => ({
      ...{ epoch: 1, accepted: body.results.map(({ jobId }: { jobId: string }) => jobId), stale: [] },
    }),
    listWorkers: ({ caller }) => ({ data: [exampleWorker(caller)], next: null }),
    getWorker: ({ caller }) => exampleWorker(caller),
    drainWorker: ({ caller }) => exampleWorker(caller),
    listQueues: () => ({ data: [exampleQueue('default')], next: null }),
    listUnserved: empty,
    listenToEvents: nothing,
    ...{ getQueue: queue, changeQueue: queue, pauseQueue: queue, resumeQueue: queue },
    ...{
      createTenant: () => EXAMPLE_TENANT,
      getTenant: () => EXAMPLE_TENANT,
      changeTenant: () => EXAMPLE_TENANT,
    },
    createKey: () => ({ ...EXAMPLE_KEY, key: 'pk_new' }),
    rotateKey: () => ({ ...EXAMPLE_KEY, key: 'pk_new' }),
    listKeys: () => ({ data: [EXAMPLE_KEY], next: null }),
    getKey: () => EXAMPLE_KEY,
    revokeKey: nothing,
    ...{ putSecret: () => EXAMPLE_SECRET, listSecrets: empty, deleteSecret: nothing },
    createSigningSecret: () => ({ ...EXAMPLE_SIGNING_SECRET, secret: 'whsec_new' }),
    ...{ listSigningSecrets: empty, deleteSigningSecret: nothing },
    getSecretKeys: () => EXAMPLE_SECRET_KEYS,
    rekeySecrets: () => ({ ...EXAMPLE_SECRET_KEYS, rekeyed: 0, remaining: 0, done: true, detail: '' }),
    resolveSecrets: () => ({ values: {}, signing: [] }),
    listTenants: () => ({ data: [EXAMPLE_TENANT], next: null }),
    ...{
      defineTask: ({ caller, body }) => new Answer(201, exampleTask(caller, body.name)),
      deleteTask: nothing,
    },
    ...{ getTask: definedTask, changeTask: definedTask },
    listTasks: ({ caller }) => ({ data: [exampleTask(caller, 'greet')], next: null }),
    createSchedule: ({ caller, body: { name, paused: _, ...definition } }) => {
      parseDefinition(definition, CONTEXT);
      return exampleSchedule(caller, name);
    },
    applySchedules: ({ body: { schedules, dryRun = false } }) => ({
      ...{ created: schedules.map(({ name }: { name: string }) => name), changed: [], removed: [] },
      ...{ unchanged: 0, more: false, dryRun },
    }),
    listSchedules: ({ caller }) => ({ data: [exampleSchedule(caller, 'nightly')], next: null }),
    ...{ getSchedule: schedule, changeSchedule: schedule, pauseSchedule: schedule, resumeSchedule: schedule },
    deleteSchedule: nothing,
    runSchedule: job,
    backfillSchedule: ({ body: { dryRun = false } }) => ({
      ...{ matched: 0, started: 0, dryRun, occurrences: [] },
    }),
    ...{ listOccurrences: empty, previewSchedule: ({ body }) => ({ data: previewed(body) }) },
    ...{ getCluster: () => EXAMPLE_CLUSTER, pauseCluster: () => EXAMPLE_CLUSTER },
    resumeCluster: () => {
      throw new PunctualError('NOT_PAUSED', 'Dispatch is not paused.');
    },
    getStats: () => EXAMPLE_STATS,
    metrics: () => 'punctual_jobs_submitted_total 1\n',
    ...{
      openEnds: nothing,
      changeEnds: nothing,
      openEvents: nothing,
      changeEvents: nothing,
      hintJobs: nothing,
      getFigures: nothing,
      leaseChanged: nothing,
      keysChanged: nothing,
      nodeJoined: nothing,
    },
  };
}

function exampleJob(by: Caller, payload: unknown = null): Job {
  return {
    id: JOB_ID,
    tenant: by.tenant,
    task: 'greet',
    target: { type: 'handler', name: 'greet' },
    queue: 'default',
    state: 'pending',
    priority: 5,
    payload,
    result: null,
    error: null,
    key: null,
    hold: false,
    runAt: '2026-01-01T00:00:00.000Z',
    startBefore: null,
    createdAt: '2026-01-01T00:00:00.000Z',
    createdBy: by.actor,
    scheduledAt: null,
    scheduledBy: null,
    schedule: null,
    workflow: null,
    ...{ step: null, waitsFor: null },
    batch: null,
    attempt: 0,
    failures: 0,
    maxAttempts: 4,
    retry: {},
    timeout: '20m',
    delivery: 'at-least-once',
    concurrencyKey: null,
    requires: {},
    fence: 0,
    worker: null,
    startedAt: null,
    handedOnAt: null,
    cancelRequestedAt: null,
    finishedAt: null,
    lateBy: null,
    progress: null,
    dependsOn: [],
    dependents: [],
    ancestors: [],
    descendants: [],
    attempts: [],
  };
}

function exampleSchedule(by: Caller, name: string): ScheduleView {
  return {
    id: OTHER_ID,
    tenant: by.tenant,
    name,
    task: 'report',
    every: '1h',
    paused: false,
    managedBy: null,
    nextAt: '2026-01-01T01:00:00.000Z',
    lastAt: null,
    lastJobId: null,
    createdAt: '2026-01-01T00:00:00.000Z',
    createdBy: by.actor,
    changedAt: '2026-01-01T00:00:00.000Z',
    changedBy: by.actor,
    version: 1,
  };
}

function exampleTask(by: Caller, name: string): TaskView {
  return {
    tenant: by.tenant,
    name,
    queue: 'mail',
    publishedBy: null,
    createdAt: '2026-01-01T00:00:00.000Z',
    createdBy: by.actor,
    changedAt: '2026-01-01T00:00:00.000Z',
    changedBy: by.actor,
    version: 1,
  };
}

function exampleWorker(by: Caller): WorkerView {
  return {
    id: OTHER_ID,
    tenant: by.tenant,
    name: 'w',
    state: 'alive',
    queues: ['default'],
    targets: ['handler'],
    tasks: ['greet'],
    labels: {},
    slots: 10,
    rate: null,
    version: null,
    shared: false,
    running: 0,
    registeredAt: '2026-01-01T00:00:00.000Z',
    lastSeen: '2026-01-01T00:00:00.000Z',
  };
}

function exampleQueue(name: string): QueueView {
  return {
    name,
    paused: false,
    ready: 0,
    upcoming: 0,
    running: 0,
    more: false,
    weight: 1,
    concurrency: null,
    keyConcurrency: 1,
    rate: null,
    oldestReadyMs: null,
    createdAt: '2026-01-01T00:00:00.000Z',
  };
}

const EXAMPLE_TENANT: TenantView = {
  id: 'acme',
  name: 'Acme',
  shard: 0,
  weight: 1,
  rate: null,
  quotas: NO_QUOTAS,
  createdAt: '2026-01-01T00:00:00.000Z',
};

const EXAMPLE_SECRET: SecretView = {
  name: 'stripe',
  origins: ['https://api.example.com'],
  version: 1,
  createdAt: '2026-01-01T00:00:00.000Z',
  createdBy: 'admin',
  changedAt: '2026-01-01T00:00:00.000Z',
  changedBy: 'admin',
};

const EXAMPLE_SIGNING_SECRET: SigningSecretView = {
  id: OTHER_ID,
  createdAt: '2026-01-01T00:00:00.000Z',
  expiresAt: null,
};

const EXAMPLE_SECRET_KEYS: SecretKeysView = { current: null, known: [], stored: [] };

const EXAMPLE_KEY: KeyView = {
  id: OTHER_ID,
  name: 'shop',
  tenant: 'acme',
  operator: false,
  scopes: ['read'],
  queues: null,
  tasks: null,
  expiresAt: null,
  createdAt: '2026-01-01T00:00:00.000Z',
  createdBy: 'admin',
  lastUsedAt: null,
};

const EXAMPLE_CLUSTER: ClusterView = { ok: true, shards: [], nodes: [], paused: true };

const EXAMPLE_STATS = {
  leaderElections: 1,
  jobsSubmitted: 0,
  jobsAssigned: 0,
  jobsCompleted: 0,
  jobsFailed: 0,
  jobsCancelled: 0,
  jobsRetried: 0,
  jobsRequeued: 0,
  staleCompletions: 0,
  staleFailures: 0,
  occurrencesLate: 0,
  occurrencesMissed: 0,
  lateness: { count: 0, p50Ms: null, p90Ms: null, p99Ms: null, maxMs: null },
  node: { id: 'n1', loopDelay: { count: 0, p50Ms: null, p90Ms: null, p99Ms: null, maxMs: null } },
};
