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
} from './wire.js';

/**
 * What a worker needs of the scheduler. Spoken over HTTP by workers in processes of their own, and directly
 * by workers embedded in a node, so both run the same worker code.
 */
export interface WorkerGateway {
  /** How often a request may be repeated at once when a node cannot serve it: the next one may. */
  readonly triesAtOnce: number;
  register(registration: WorkerRegistration, signal?: AbortSignal): Promise<WorkerWelcome>;
  heartbeat(workerId: string, heartbeat: Heartbeat, signal?: AbortSignal): Promise<HeartbeatAnswer>;
  /** Answers as soon as there is work, or with none when the wait is over. */
  claim(workerId: string, request: ClaimRequest, signal?: AbortSignal): Promise<ClaimAnswer>;
  report(workerId: string, report: ReportRequest, signal?: AbortSignal): Promise<ReportAnswer>;
  progress(jobId: string, token: string | undefined, report: ProgressReport): Promise<void>;
  log(jobId: string, token: string | undefined, report: LogReport): Promise<void>;
  leave(workerId: string, leave: Leave): Promise<void>;
}
