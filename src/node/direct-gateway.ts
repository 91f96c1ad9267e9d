import type { Caller, UseCases } from '../api/use-cases.js';
import type { WorkerGateway } from '../core/gateway.js';
import type {
  ClaimAnswer,
  ClaimRequest,
  Heartbeat,
  HeartbeatAnswer,
  LogReport,
  ProgressReport,
  ReportAnswer,
  ReportRequest,
  WorkerRegistration,
  WorkerWelcome,
} from '../core/wire.js';

const NEVER = new AbortController().signal;

/** The scheduler as a worker in the same process sees it: the same use-cases, without the network. */
export class DirectWorkerGateway implements WorkerGateway {
  constructor(
    private readonly useCases: UseCases,
    private readonly caller: Caller,
  ) {}

  register(registration: WorkerRegistration): Promise<WorkerWelcome> {
    return this.useCases.workers.register(this.caller, registration);
  }

  heartbeat(workerId: string, heartbeat: Heartbeat): Promise<HeartbeatAnswer> {
    return this.useCases.workers.heartbeat(this.caller, workerId, heartbeat);
  }

  claim(workerId: string, request: ClaimRequest, signal: AbortSignal = NEVER): Promise<ClaimAnswer> {
    return this.useCases.workers.claim(this.caller, workerId, request, signal);
  }

  report(workerId: string, report: ReportRequest): Promise<ReportAnswer> {
    return this.useCases.workers.report(this.caller, workerId, report);
  }

  progress(jobId: string, _token: string, report: ProgressReport): Promise<void> {
    return this.useCases.attempts.progress(this.caller, jobId, report);
  }

  log(jobId: string, _token: string, report: LogReport): Promise<void> {
    return this.useCases.attempts.log(this.caller, jobId, report);
  }

  leave(workerId: string): Promise<void> {
    return this.useCases.workers.leave(this.caller, workerId);
  }
}
