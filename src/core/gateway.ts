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
} from './wire.js';
import type { AddedSteps, StepAddition } from './workflow.js';

/** A file that an attempt leaves with its job. */
export interface JobOutput {
  readonly fence: number;
  /** A path below the folder `output`. */
  readonly name: string;
  readonly bytes: AsyncIterable<Uint8Array>;
  readonly size: number;
  readonly signal?: AbortSignal;
}

/** How steps are added. */
export interface AddOptions {
  readonly signal: AbortSignal;
  /** The trace that they are part of. */
  readonly traceparent: string | undefined;
}

/**
 * What a worker needs of the scheduler. Workers in their own processes call it over HTTP, workers embedded in a node
 * call it directly; both run the same worker code.
 */
export interface WorkerGateway {
  /** How often a request may be repeated without a pause when a node cannot serve it, because the next node may. */
  readonly triesAtOnce: number;
  register(registration: WorkerRegistration, signal?: AbortSignal): Promise<WorkerWelcome>;
  heartbeat(session: SessionKey, heartbeat: Heartbeat, signal?: AbortSignal): Promise<HeartbeatAnswer>;
  /** Answers as soon as there is work, or without any when the wait is over. */
  claim(session: SessionKey, request: ClaimRequest, signal?: AbortSignal): Promise<ClaimAnswer>;
  report(session: SessionKey, report: ReportRequest, signal?: AbortSignal): Promise<ReportAnswer>;
  /** The secrets that the target of an attempt names, and those that sign its call. */
  secrets(session: SessionKey, request: SecretsRequest, signal?: AbortSignal): Promise<SecretsAnswer>;
  /** The artifact that an attempt runs. */
  artifact(session: SessionKey, request: ArtifactRequest, signal?: AbortSignal): Promise<ArtifactAnswer>;
  /** Leaves a file with the job of an attempt. */
  output(jobId: string, token: string | undefined, output: JobOutput): Promise<void>;
  progress(jobId: string, token: string | undefined, report: ProgressReport): Promise<void>;
  log(jobId: string, token: string | undefined, report: LogReport): Promise<void>;
  /** Adds steps to a workflow; may be repeated, because steps that the job has added are taken as they are. */
  addSteps(
    workflow: string,
    token: string | undefined,
    addition: StepAddition,
    options: AddOptions,
  ): Promise<AddedSteps>;
  /** Publishes the definition of a task that the worker has. */
  publish(task: TaskInput, signal?: AbortSignal): Promise<void>;
  leave(session: SessionKey, leave: Leave): Promise<void>;
}
