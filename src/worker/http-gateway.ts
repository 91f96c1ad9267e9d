import { parseDuration } from '../core/duration.js';
import type { WorkerGateway } from '../core/gateway.js';
import type {
  ClaimAnswer,
  ClaimRequest,
  Heartbeat,
  HeartbeatAnswer,
  Leave,
  LogReport,
  ProgressReport,
  ReportAnswer,
  ReportRequest,
  WorkerRegistration,
  WorkerWelcome,
} from '../core/wire.js';
import { HttpTransport } from '../transport/http-transport.js';
import type { RequestOptions, Transport } from '../transport/transport.js';

/** How much longer than the agreed wait a claim may take before the node counts as gone. */
const CLAIM_SLACK_MS = 10_000;
/** A report is answered in milliseconds or waits for a new leader; after this another node may know it. */
const REPORT_TIMEOUT_MS = 10_000;

/**
 * The scheduler as a worker sees it over the network. Each call is one try at one node; the worker's loops
 * repeat what must be repeated, and the transport turns to the next node after a failure.
 */
export class HttpWorkerGateway implements WorkerGateway {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** The network to the nodes; null when the nodes are reached without one. */
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

  heartbeat(workerId: string, heartbeat: Heartbeat, signal?: AbortSignal): Promise<HeartbeatAnswer> {
    return this.#post(`${pathOf(workerId)}/heartbeat`, heartbeat, withSignal(signal));
  }

  claim(workerId: string, request: ClaimRequest, signal?: AbortSignal): Promise<ClaimAnswer> {
    const timeoutMs = (parseDuration(request.wait) ?? 0) + CLAIM_SLACK_MS;
    return this.#post(`${pathOf(workerId)}/claim`, request, {
      ...withSignal(signal),
      timeoutMs,
      longPoll: true,
    });
  }

  report(workerId: string, report: ReportRequest, signal?: AbortSignal): Promise<ReportAnswer> {
    return this.#post(`${pathOf(workerId)}/report`, report, {
      ...withSignal(signal),
      timeoutMs: REPORT_TIMEOUT_MS,
    });
  }

  progress(jobId: string, token: string | undefined, report: ProgressReport): Promise<void> {
    return this.#post(`/v1/jobs/${encodeURIComponent(jobId)}/progress`, report, withToken(token));
  }

  log(jobId: string, token: string | undefined, report: LogReport): Promise<void> {
    return this.#post(`/v1/jobs/${encodeURIComponent(jobId)}/logs`, report, withToken(token));
  }

  leave(workerId: string, leave: Leave): Promise<void> {
    return this.#transport.request('DELETE', pathOf(workerId), { body: leave, timeoutMs: 5_000 });
  }

  #post<T>(path: string, body: unknown, options: RequestOptions): Promise<T> {
    return this.#transport.request<T>('POST', path, { ...options, body, retry: false });
  }
}

function pathOf(workerId: string): string {
  return `/v1/workers/${encodeURIComponent(workerId)}`;
}

function withSignal(signal: AbortSignal | undefined): RequestOptions {
  return signal ? { signal } : {};
}

/**
 * Handlers report through the worker, whose key speaks for its tenant anyway; then a token for each attempt would only
 * have to be made and sent. Others need it: what runs outside the worker, and jobs of other tenants.
 */
function needsTokens({ targets, shared }: WorkerRegistration): boolean {
  return shared === true || targets.some((target) => target !== 'handler');
}

/** A report about one attempt carries its own token, which can touch nothing else, if it has one. */
function withToken(token: string | undefined): RequestOptions {
  return { ...(token !== undefined && { headers: { authorization: `Bearer ${token}` } }), timeoutMs: 10_000 };
}
