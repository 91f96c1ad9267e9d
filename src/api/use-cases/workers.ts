import { parseDuration } from '../../core/duration.js';
import { invalid, PunctualError } from '../../core/errors.js';
import { validate } from '../../core/schemas/validate.js';
import {
  ClaimRequest,
  Heartbeat,
  Leave,
  ReportRequest,
  WorkerRegistration,
} from '../../core/schemas/worker.js';
import { isUuid } from '../../core/uuid.js';
import type {
  AttemptResult,
  ClaimAnswer,
  HeartbeatAnswer,
  Page,
  ReportAnswer,
  ReportRequest as Reported,
  WorkerView,
  WorkerWelcome,
} from '../../core/wire.js';
import { findWorker, listWorkers, type WorkerRow } from '../../store/workers.js';
import type { NodeContext } from '../context.js';
import type { Answered } from '../json-text.js';
import { writePage } from '../page-text.js';
import type { Caller, PageFilter, WorkerUseCases } from '../use-cases.js';
import { toReport } from './attempts.js';

/** Workers of a list that are read at once. */
const PORTION = 50;

/** The worker's side of the protocol, and what people see and do of workers. */
export class WorkerSessions implements WorkerUseCases {
  constructor(private readonly node: NodeContext) {}

  async register(caller: Caller, body: unknown): Promise<WorkerWelcome> {
    const registration = validate(WorkerRegistration, body);
    if (registration.shared && !caller.operator)
      throw new PunctualError('FORBIDDEN', 'Only an operator may run a worker that serves all tenants.');
    return (await this.node.leader()).workers.register(caller.tenant, registration);
  }

  async heartbeat(caller: Caller, workerId: string, body: unknown): Promise<HeartbeatAnswer> {
    const heartbeat = validate(Heartbeat, body);
    return (await this.node.leader()).workers.heartbeat(caller.tenant, workerId, heartbeat);
  }

  async claim(
    caller: Caller,
    workerId: string,
    body: unknown,
    signal: AbortSignal,
    waitedMs = 0,
  ): Promise<ClaimAnswer> {
    const { max, wait } = validate(ClaimRequest, body);
    const until = performance.now() + parseDuration(wait)! - waitedMs;
    const leader = await this.node.leader();
    const leftMs = Math.max(0, until - performance.now());
    return leader.workers.claim(caller.tenant, workerId, max, leftMs, signal);
  }

  async report(caller: Caller, workerId: string, body: unknown): Promise<ReportAnswer> {
    return this.reportChecked(caller, workerId, validate(ReportRequest, body));
  }

  async reportChecked(caller: Caller, workerId: string, { results }: Reported): Promise<ReportAnswer> {
    const seen = new Set<string>();
    results.forEach((result, i) => {
      seen.add(result.jobId);
      if (seen.size === i) {
        throw invalid([{ pointer: `/results/${i}/jobId`, detail: 'at most one result per job in a report' }]);
      }
    });
    const leader = await this.node.leader();
    leader.workers.seen(caller.tenant, workerId);
    // Only an operator may speak for a tenant that its key does not name: its worker may serve them all.
    const tenantOf = (result: AttemptResult) =>
      (caller.operator ? result.tenant : undefined) ?? caller.tenant;
    const moments = new Map<string, number | null>();
    const accepted = await leader.report(
      results.map((result) => toReport(tenantOf(result), result, this.node, moments)),
    );
    return {
      epoch: leader.epoch,
      accepted: results.filter((_, i) => accepted[i]).map((result) => result.jobId),
      stale: results.filter((_, i) => !accepted[i]).map((result) => result.jobId),
    };
  }

  async leave(caller: Caller, workerId: string, body: unknown): Promise<void> {
    const { settled = false } = validate(Leave, body ?? {});
    await (await this.node.leader()).workers.leave(caller.tenant, workerId, settled);
  }

  async drain(caller: Caller, workerId: string): Promise<WorkerView> {
    await (await this.node.leader()).workers.drain(caller.tenant, workerId);
    return this.get(caller, workerId);
  }

  async list(caller: Caller, filter: PageFilter): Promise<Answered<Page<WorkerView>>> {
    const { workers } = await this.node.leader();
    if (filter.after !== undefined && !isUuid(filter.after)) {
      throw invalid([{ pointer: '/after', detail: 'must be the "next" of an earlier page' }]);
    }
    return writePage<WorkerRow>(filter.limit, {
      portion: PORTION,
      read: (last, size) =>
        listWorkers(this.node.pool, caller.tenant, last?.id ?? filter.after ?? null, size),
      write: (row) => JSON.stringify(workers.view(row)),
      cursor: (row) => row.id,
    });
  }

  async get(caller: Caller, workerId: string): Promise<WorkerView> {
    const { workers } = await this.node.leader();
    const row = await findWorker(this.node.pool, caller.tenant, workerId);
    if (!row) throw new PunctualError('WORKER_NOT_FOUND', `There is no worker ${workerId}.`);
    return workers.view(row);
  }
}
