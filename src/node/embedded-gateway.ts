import { resolveArtifact } from '../api/attempt-artifacts.js';
import { resolveSecrets } from '../api/attempt-secrets.js';
import { appendLogs, reportProgress } from '../api/attempts.js';
import type { AttemptCredential, Caller } from '../api/caller.js';
import type { NodeContext } from '../api/context.js';
import { claimJobs, endSession, registerWorker, reportResults, takeHeartbeat } from '../api/workers.js';
import { LeaderElsewhere } from '../cluster/leader-elsewhere.js';
import { PunctualError } from '../core/errors.js';
import type { AddOptions, JobOutput, WorkerGateway } from '../core/gateway.js';
import * as attempt from '../core/schemas/attempt.js';
import { validate } from '../core/schemas/validate.js';
import * as worker from '../core/schemas/worker.js';
import type {
  ArtifactAnswer,
  ArtifactRequest,
  ClaimAnswer,
  ClaimRequest,
  Heartbeat,
  HeartbeatAnswer,
  Leave,
  LogReport,
  ProgressReport,
  ReportAnswer,
  ReportRequest,
  SecretsAnswer,
  SecretsRequest,
  SessionKey,
  TaskInput,
  WorkerRegistration,
  WorkerWelcome,
} from '../core/wire.js';
import type { AddedSteps, StepAddition } from '../core/workflow.js';
import type { Transport } from '../transport/transport.js';
import { HttpWorkerGateway } from '../worker/http-gateway.js';

const NEVER = new AbortController().signal;

/**
 * The scheduler as a worker in a node's process sees it: what the routes do, without the network while the node leads.
 * When another node does, calls go through the node's own API, which moves them on to the leader. What comes from the
 * program is checked here as it would be there; the rest has the right form because the worker runtime makes it.
 */
export class EmbeddedWorkerGateway implements WorkerGateway {
  /** The node itself waits for the next leader. */
  readonly triesAtOnce = 1;
  private readonly remote: WorkerGateway;

  constructor(
    private readonly node: { readonly context: NodeContext },
    private readonly caller: Caller,
    transport: Transport,
  ) {
    this.remote = new HttpWorkerGateway(transport);
  }

  register(registration: WorkerRegistration, signal?: AbortSignal): Promise<WorkerWelcome> {
    return this.call(
      (node) => registerWorker(node, this.caller, validate(worker.WorkerRegistration, registration)),
      (remote) => remote.register(registration, signal),
    );
  }

  heartbeat(session: SessionKey, heartbeat: Heartbeat, signal?: AbortSignal): Promise<HeartbeatAnswer> {
    return this.call(
      (node) => takeHeartbeat(node, this.caller, session, heartbeat),
      (remote) => remote.heartbeat(session, heartbeat, signal),
    );
  }

  claim(session: SessionKey, request: ClaimRequest, signal: AbortSignal = NEVER): Promise<ClaimAnswer> {
    return this.call(
      (node) => claimJobs(node, this.caller, session, request, signal),
      (remote) => remote.claim(session, request, signal),
    );
  }

  report(session: SessionKey, report: ReportRequest, signal?: AbortSignal): Promise<ReportAnswer> {
    return this.call(
      (node) => reportResults(node, this.caller, session, report),
      (remote) => remote.report(session, report, signal),
    );
  }

  secrets(session: SessionKey, request: SecretsRequest, signal?: AbortSignal): Promise<SecretsAnswer> {
    return this.call(
      (node) => resolveSecrets(node, this.caller, session, request),
      (remote) => remote.secrets(session, request, signal),
    );
  }

  artifact(session: SessionKey, request: ArtifactRequest, signal?: AbortSignal): Promise<ArtifactAnswer> {
    return this.call(
      (node) => resolveArtifact(node, this.caller, session, request, { origin: node.ownUrl() }),
      (remote) => remote.artifact(session, request, signal),
    );
  }

  progress(jobId: string, token: string | undefined, report: ProgressReport): Promise<void> {
    return this.call(
      async (node) =>
        reportProgress(
          node,
          await this.reporter(node, token),
          jobId,
          validate(attempt.ProgressReport, report),
        ),
      (remote) => remote.progress(jobId, token, report),
    );
  }

  log(jobId: string, token: string | undefined, report: LogReport): Promise<void> {
    return this.call(
      async (node) =>
        appendLogs(node, await this.reporter(node, token), jobId, validate(attempt.LogReport, report)),
      (remote) => remote.log(jobId, token, report),
    );
  }

  /** Seldom and perhaps large, so it takes the way of the API. */
  output(jobId: string, token: string | undefined, output: JobOutput): Promise<void> {
    return this.remote.output(jobId, token, output);
  }

  /** Seldom and perhaps large, so it takes the way of the API. */
  addSteps(
    workflow: string,
    token: string | undefined,
    addition: StepAddition,
    options: AddOptions,
  ): Promise<AddedSteps> {
    return this.remote.addSteps(workflow, token, addition, options);
  }

  /** Once for each start of a worker, so it takes the way of the API. */
  publish(task: TaskInput, signal?: AbortSignal): Promise<void> {
    return this.remote.publish(task, signal);
  }

  leave(session: SessionKey, leave: Leave): Promise<void> {
    return this.call(
      (node) => endSession(node, this.caller, session, leave),
      (remote) => remote.leave(session, leave),
    );
  }

  /** Reports about an attempt are its own, as over the network: the worker may serve other tenants than its caller. */
  private async reporter(node: NodeContext, token: string | undefined): Promise<Caller | AttemptCredential> {
    // Without a token the session was opened over the network, for the caller's tenant alone.
    if (token === undefined) return this.caller;
    const credential = await node.authentication.authenticate(token);
    if (credential && 'jobId' in credential) return credential;
    throw new PunctualError('UNAUTHENTICATED', 'The token of the attempt is not valid any more.');
  }

  private async call<T>(
    here: (node: NodeContext) => Promise<T>,
    elsewhere: (remote: WorkerGateway) => Promise<T>,
  ): Promise<T> {
    try {
      return await here(this.node.context);
    } catch (error) {
      if (error instanceof LeaderElsewhere) return elsewhere(this.remote);
      throw error;
    }
  }
}
