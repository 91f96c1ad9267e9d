import { parseDuration } from '../core/duration.js';
import type { AddOptions, JobOutput, WorkerGateway } from '../core/gateway.js';
import {
  type ArtifactAnswer,
  type ArtifactRequest,
  type ClaimAnswer,
  type ClaimRequest,
  type Heartbeat,
  type HeartbeatAnswer,
  type Leave,
  type LogReport,
  type ProgressReport,
  type ReportAnswer,
  type ReportRequest,
  type SecretsAnswer,
  type SecretsRequest,
  type SessionKey,
  SHARD_HEADER,
  type TaskInput,
  type WorkerRegistration,
  type WorkerWelcome,
} from '../core/wire.js';
import type { AddedSteps, StepAddition } from '../core/workflow.js';
import { HttpTransport } from '../transport/http-transport.js';
import type { RequestOptions, Transport } from '../transport/transport.js';

/** How much longer than its wait a claim may take before it times out. */
const CLAIM_SLACK_MS = 10_000;
/** A report is answered in milliseconds, unless it waits for a new leader; after this time another node is asked. */
const REPORT_TIMEOUT_MS = 10_000;
/** Secrets are read in a few milliseconds, unless there is no leader; the call of the attempt waits for them. */
const SECRETS_TIMEOUT_MS = 10_000;
/** What stalls is given up by the node long before. */
const OUTPUT_TIMEOUT_MS = 30 * 60_000;
/** Thousands of steps take a while to be stored. */
const ADD_TIMEOUT_MS = 60_000;

/**
 * A worker's requests to the scheduler over HTTP. Each call is one request to one node; the worker's loops repeat
 * what must be repeated, and the transport switches to the next node after a failure.
 */
export class HttpWorkerGateway implements WorkerGateway {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** The HTTP transport; null when the node is in this process. */
  get network(): HttpTransport | null {
    return this.#transport instanceof HttpTransport ? this.#transport : null;
  }

  get triesAtOnce(): number {
    // One address may stand for several nodes.
    return Math.max(1, (this.network?.nodeCount ?? 1) - 1);
  }

  register(registration: WorkerRegistration, signal?: AbortSignal): Promise<WorkerWelcome> {
    const body = { ...registration, tokens: needsTokens(registration) };
    return this.#post('/v1/workers', body, withSignal(signal));
  }

  heartbeat(session: SessionKey, heartbeat: Heartbeat, signal?: AbortSignal): Promise<HeartbeatAnswer> {
    return this.#post(`${pathOf(session)}/heartbeat`, heartbeat, {
      ...inShard(session),
      ...withSignal(signal),
    });
  }

  claim(session: SessionKey, request: ClaimRequest, signal?: AbortSignal): Promise<ClaimAnswer> {
    const timeoutMs = (parseDuration(request.wait) ?? 0) + CLAIM_SLACK_MS;
    return this.#post(`${pathOf(session)}/claim`, request, {
      ...inShard(session),
      ...withSignal(signal),
      timeoutMs,
      longPoll: true,
    });
  }

  report(session: SessionKey, report: ReportRequest, signal?: AbortSignal): Promise<ReportAnswer> {
    return this.#post(`${pathOf(session)}/report`, report, {
      ...inShard(session),
      ...withSignal(signal),
      timeoutMs: REPORT_TIMEOUT_MS,
    });
  }

  secrets(session: SessionKey, request: SecretsRequest, signal?: AbortSignal): Promise<SecretsAnswer> {
    return this.#post(`${pathOf(session)}/secrets`, request, {
      ...inShard(session),
      ...withSignal(signal),
      timeoutMs: SECRETS_TIMEOUT_MS,
    });
  }

  artifact(session: SessionKey, request: ArtifactRequest, signal?: AbortSignal): Promise<ArtifactAnswer> {
    return this.#post(`${pathOf(session)}/artifact`, request, {
      ...inShard(session),
      ...withSignal(signal),
      timeoutMs: SECRETS_TIMEOUT_MS,
    });
  }

  progress(jobId: string, token: string | undefined, report: ProgressReport): Promise<void> {
    return this.#post(`/v1/jobs/${encodeURIComponent(jobId)}/progress`, report, withToken(token));
  }

  log(jobId: string, token: string | undefined, report: LogReport): Promise<void> {
    return this.#post(`/v1/jobs/${encodeURIComponent(jobId)}/logs`, report, withToken(token));
  }

  output(jobId: string, token: string | undefined, output: JobOutput): Promise<void> {
    const { fence, name, bytes, size, signal } = output;
    const { headers } = withToken(token);
    const path = `/v1/jobs/${encodeURIComponent(jobId)}/outputs/${encodeURIComponent(name)}?fence=${fence}`;
    return this.#transport.request('PUT', path, {
      ...{ ...(headers && { headers }), ...withSignal(signal), bytes: { open: () => bytes, size } },
      ...{ timeoutMs: OUTPUT_TIMEOUT_MS, longPoll: true, retry: false },
    });
  }

  addSteps(
    workflow: string,
    token: string | undefined,
    addition: StepAddition,
    { signal, traceparent }: AddOptions,
  ): Promise<AddedSteps> {
    const { headers } = withToken(token);
    const path = `/v1/workflows/${encodeURIComponent(workflow)}/jobs`;
    return this.#post(path, addition, {
      headers: { ...headers, ...(traceparent !== undefined && { traceparent }) },
      ...{ signal, timeoutMs: ADD_TIMEOUT_MS },
    });
  }

  publish(task: TaskInput, signal?: AbortSignal): Promise<void> {
    return this.#post('/v1/tasks', task, withSignal(signal));
  }

  leave(session: SessionKey, leave: Leave): Promise<void> {
    const options = { ...inShard(session), body: leave, timeoutMs: 5_000 };
    return this.#transport.request('DELETE', pathOf(session), options);
  }

  #post<T>(path: string, body: unknown, options: RequestOptions): Promise<T> {
    return this.#transport.request<T>('POST', path, { ...options, body, retry: false });
  }
}

function pathOf({ workerId }: SessionKey): string {
  return `/v1/workers/${encodeURIComponent(workerId)}`;
}

/** The leader that knows the session is the one of its shard. */
function inShard({ shard }: SessionKey): RequestOptions {
  return { headers: { [SHARD_HEADER]: String(shard) } };
}

function withSignal(signal: AbortSignal | undefined): RequestOptions {
  return signal ? { signal } : {};
}

/**
 * Whether attempts need tokens. Handlers report through the worker, whose key acts for its tenant, so they need none;
 * targets that run outside the worker and jobs of other tenants do.
 */
function needsTokens({ targets, shared }: WorkerRegistration): boolean {
  return shared === true || targets.some((target) => target !== 'handler');
}

/** Requests about one attempt use its token, if it has one; the token gives access to nothing else. */
function withToken(token: string | undefined): RequestOptions {
  return { ...(token !== undefined && { headers: { authorization: `Bearer ${token}` } }), timeoutMs: 10_000 };
}
