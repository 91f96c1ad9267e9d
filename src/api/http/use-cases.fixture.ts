import { PunctualError } from '../../core/errors.js';
import type { Job } from '../../core/job.js';
import { News } from '../../core/news.js';
import { parseDefinition, parseTimetable } from '../../core/schedule-definition.js';
import { Completion, Failure, LogReport, ProgressReport } from '../../core/schemas/attempt.js';
import { NewTenant, QueueChange, TenantChange } from '../../core/schemas/limits.js';
import {
  BackfillRequest,
  PreviewRequest,
  ScheduleChange,
  ScheduleInput,
} from '../../core/schemas/schedule.js';
import { bulkEnvelope, JobChange, Redrive } from '../../core/schemas/submission.js';
import { validate } from '../../core/schemas/validate.js';
import { ClaimRequest, Heartbeat, ReportRequest, WorkerRegistration } from '../../core/schemas/worker.js';
import { parsePayload, parseSubmission, parseSubmissions } from '../../core/submission.js';
import type { ClusterView, QueueView, ScheduleView, TenantView, WorkerView } from '../../core/wire.js';
import type { Caller, UseCases } from '../use-cases.js';
import type { HttpLimits } from './options.js';
import { createHttpServer } from './server.js';

/** A boundary that remembers what reached it, to see how HTTP maps onto it. The real one is tested elsewhere. */

export const OPERATOR_KEY = 'pk_operator';
export const TENANT_KEY = 'pk_tenant';
export const ATTEMPT_TOKEN = 'at_token';
export const JOB_ID = '01890a5d-ac96-774b-bcce-b302099a8057';
export const OTHER_ID = '01890a5d-ac96-774b-bcce-b302099a8058';

/** One call that came through. */
export interface RecordedCall {
  readonly name: string;
  readonly by: unknown;
  readonly rest: readonly unknown[];
}

/** The recording boundary, what it recorded, and switches for what it answers. */
export interface RecordingUseCases extends UseCases {
  readonly calls: RecordedCall[];
  /** Resolves when a call has begun to wait. */
  readonly waiting: Promise<AbortSignal>;
  healthy: boolean;
  /** Thrown by the next call of `jobs.why`. */
  failure: unknown;
}

/** Bodies are checked as the real boundary checks them. */
const CONTEXT = {
  ...{ now: 0, createdAt: 0, maxPayload: Number.MAX_SAFE_INTEGER, maxDepth: 16 },
  ...{ jobTimeout: 60_000, maxJobTimeout: 3_600_000 },
};
const ENVELOPE = bulkEnvelope(10_000);

/** A server over a recording boundary, with small limits, and a call that carries the operator's key. */
export function testServer(limits: Partial<HttpLimits> = {}) {
  const useCases = recordingUseCases();
  const logged: object[] = [];
  const server = createHttpServer({
    useCases,
    limits: { maxBulkBytes: 2_000_000, maxPayload: 10_000, maxDepth: 16, ...limits },
    forwarding: {
      leader: () => null,
      leaderNews: new News(),
      credentialFor: () => null,
      mark: () => '',
      isMark: () => false,
      onLeaderLost: () => undefined,
    },
    log: { error: (fields) => logged.push(fields) },
    version: '0.0.0',
    defaultTenant: 'default',
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
  return { server, useCases, logged, call };
}

/** The boundary alone. */
export function recordingUseCases(): RecordingUseCases {
  const calls: RecordedCall[] = [];
  const record = <T>(name: string, by: unknown, rest: unknown[], answer: T): Promise<T> => {
    calls.push({ name, by, rest });
    return Promise.resolve(answer);
  };
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
  const seen = new Map<string, Job>();

  const recording: RecordingUseCases = {
    calls,
    waiting,
    healthy: true,
    failure: undefined,
    jobs: {
      submit: async (by, body) => {
        const { definition, payload } = parseSubmission(body, CONTEXT);
        const { key } = definition;
        const before = key === null ? undefined : seen.get(key);
        const job = before ?? exampleJob(by, JSON.parse(payload));
        if (key !== null) seen.set(key, job);
        return record('submit', by, [body], { created: before === undefined, job });
      },
      submitBulk: async (by, body) => {
        const jobs = await parseSubmissions(validate(ENVELOPE, body).jobs, CONTEXT);
        return record('submitBulk', by, [jobs.length], { ids: jobs.map(() => JOB_ID) });
      },
      list: (by, filter) => record('list', by, [filter], { data: [exampleJob(by)], next: 'cursor' }),
      get: async (by, id, waitMs, signal) => {
        if (id !== JOB_ID) throw new PunctualError('JOB_NOT_FOUND', `There is no job ${id}.`);
        if (waitMs > 0) await untilAborted(signal);
        return record('get', by, [id, waitMs], exampleJob(by));
      },
      logs: (by, id, after, limit) => record('logs', by, [id, after, limit], { data: [], next: null }),
      change: async (by, id, body) => {
        parsePayload(validate(JobChange, body).payload, CONTEXT);
        return record('change', by, [id, body], exampleJob(by));
      },
      cancel: (by, id) => record('cancel', by, [id], exampleJob(by)),
      retry: (by, id) => record('retry', by, [id], exampleJob(by)),
      hold: (by, id) => record('hold', by, [id], exampleJob(by)),
      release: (by, id) => record('release', by, [id], exampleJob(by)),
      redrive: async (by, body) => {
        const { dryRun = false } = validate(Redrive, body);
        return record('redrive', by, [body], { matched: 2, redriven: dryRun ? 0 : 2, dryRun, more: false });
      },
      why: async (by, id) => {
        if (recording.failure !== undefined) throw recording.failure;
        const why = {
          jobId: id,
          state: 'pending',
          gate: 'hold',
          detail: 'It is on hold.',
          figures: {},
        } as const;
        return record('why', by, [id], why);
      },
    },
    attempts: {
      complete: async (by, id, body) => {
        const { fence } = validate(Completion, body);
        if (fence !== 1) throw new PunctualError('STALE_FENCE', 'A newer attempt owns the job.');
        return record('complete', by, [id, body], undefined);
      },
      fail: async (by, id, body) => record('fail', by, [id, validate(Failure, body)], undefined),
      progress: async (by, id, body) =>
        record('progress', by, [id, validate(ProgressReport, body)], undefined),
      log: async (by, id, body) => record('log', by, [id, validate(LogReport, body)], undefined),
    },
    workers: {
      register: async (by, body) => {
        validate(WorkerRegistration, body);
        return record('register', by, [body], {
          workerId: OTHER_ID,
          shard: 0,
          epoch: 1,
          heartbeatInterval: '3s',
          workerTimeout: '10s',
          now: '2026-01-01T00:00:00.000Z',
        });
      },
      heartbeat: async (by, id, body) => {
        validate(Heartbeat, body);
        const now = '2026-01-01T00:00:00.000Z';
        return record('heartbeat', by, [id, body], { epoch: 1, stop: [], drain: false, now });
      },
      claim: async (by, id, body, signal) => {
        const { wait } = validate(ClaimRequest, body);
        if (wait !== '0s') await untilAborted(signal);
        return record('claim', by, [id, body], { epoch: 1, jobs: [] });
      },
      report: async (by, id, body) => {
        const { results } = validate(ReportRequest, body);
        const accepted = results.map(({ jobId }) => jobId);
        return record('report', by, [id, results.length], { epoch: 1, accepted, stale: [] });
      },
      reportChecked: () => Promise.reject(new Error('nobody reports without the network here')),
      leave: (by, id, body) => record('leave', by, [id, body], undefined),
      drain: (by, id) => record('drain', by, [id], exampleWorker(by)),
      list: (by, filter) => record('workers', by, [filter], { data: [exampleWorker(by)], next: null }),
      get: (by, id) => record('worker', by, [id], exampleWorker(by)),
    },
    queues: {
      list: (by, filter) => record('queues', by, [filter], { data: [exampleQueue('default')], next: null }),
      get: (by, name) => record('queue', by, [name], exampleQueue(name)),
      pause: (by, name) => record('pauseQueue', by, [name], exampleQueue(name)),
      resume: (by, name) => record('resumeQueue', by, [name], exampleQueue(name)),
      change: async (by, name, body) =>
        record('changeQueue', by, [name, validate(QueueChange, body)], exampleQueue(name)),
    },
    tenants: {
      create: async (by, body) => record('createTenant', by, [validate(NewTenant, body)], EXAMPLE_TENANT),
      list: (by, after, limit) =>
        record('tenants', by, [after, limit], { data: [EXAMPLE_TENANT], next: null }),
      get: (by, id) => record('tenant', by, [id], EXAMPLE_TENANT),
      change: async (by, id, body) =>
        record('changeTenant', by, [id, validate(TenantChange, body)], EXAMPLE_TENANT),
    },
    schedules: {
      create: async (by, body) => {
        const { name, paused: _, ...definition } = validate(ScheduleInput, body);
        parseDefinition(definition, CONTEXT);
        return record('createSchedule', by, [body], { name, schedule: exampleSchedule(by, name) });
      },
      list: (by, filter) =>
        record('schedules', by, [filter], { data: [exampleSchedule(by, 'nightly')], next: null }),
      get: (by, name) => record('schedule', by, [name], exampleSchedule(by, name)),
      change: async (by, name, body) => {
        validate(ScheduleChange, body);
        return record('changeSchedule', by, [name, body], exampleSchedule(by, name));
      },
      remove: (by, name) => record('deleteSchedule', by, [name], undefined),
      pause: (by, name) => record('pauseSchedule', by, [name], exampleSchedule(by, name)),
      resume: (by, name) => record('resumeSchedule', by, [name], exampleSchedule(by, name)),
      run: (by, name) => record('runSchedule', by, [name], exampleJob(by)),
      backfill: async (by, name, body) => {
        const { dryRun = false } = validate(BackfillRequest, body);
        const answer = { matched: 0, started: 0, dryRun, occurrences: [] };
        return record('backfillSchedule', by, [name, body], answer);
      },
      occurrences: (by, name, filter) => record('occurrences', by, [name, filter], { data: [], next: null }),
      preview: async (by, body) => {
        const { from: _from, count: _count, ...when } = validate(PreviewRequest, body);
        parseTimetable(when, CONTEXT.now);
        return record('previewSchedule', by, [body], { data: [] });
      },
    },
    cluster: {
      view: (by) => record('cluster', by, [], EXAMPLE_CLUSTER),
      pause: (by) => record('pause', by, [], EXAMPLE_CLUSTER),
      resume: () => Promise.reject(new PunctualError('NOT_PAUSED', 'Dispatch is not paused.')),
      stats: (by, historyMs) => record('stats', by, [historyMs], EXAMPLE_STATS),
      metrics: () => Promise.resolve('punctual_jobs_submitted_total 1\n'),
    },
    authenticate: async (bearer) => {
      if (bearer === OPERATOR_KEY) return { operator: true, name: 'admin' };
      if (bearer === TENANT_KEY) return { operator: false, name: 'someone' };
      if (bearer === ATTEMPT_TOKEN) return { tenant: 'acme', jobId: JOB_ID, fence: 1 };
      return null;
    },
    peers: {
      hint: async () => undefined,
      lookAtLease: () => undefined,
      lookAtNodes: () => undefined,
      openEnds: () => AbortSignal.abort(),
      changeEnds: async () => undefined,
      closeEnds: () => undefined,
    },
    ready: async () => ({
      ok: recording.healthy,
      checks: { database: { ok: recording.healthy, detail: 'answers in 1 ms' } },
    }),
  };
  return recording;
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
    batch: null,
    attempt: 0,
    maxAttempts: 4,
    retry: {},
    timeout: '20m',
    delivery: 'at-least-once',
    concurrencyKey: null,
    requires: {},
    fence: 0,
    worker: null,
    startedAt: null,
    finishedAt: null,
    lateBy: null,
    progress: null,
    dependsOn: [],
    dependents: [],
    ancestors: [],
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
  createdAt: '2026-01-01T00:00:00.000Z',
};

const EXAMPLE_CLUSTER: ClusterView = { shards: [], nodes: [], paused: true };

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
