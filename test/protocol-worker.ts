import type {
  Assignment,
  AttemptResult,
  ClaimAnswer,
  FencedJob,
  HeartbeatAnswer,
  ReportAnswer,
  WorkerRegistration,
  WorkerWelcome,
} from '../src/core/wire.js';
import type { Answer, ApiUser } from './node-for-tests.js';

/** A worker by hand: says exactly what a test wants said, and nothing by itself. */
export class ProtocolWorker {
  /** What was received and not reported yet. */
  readonly held = new Map<string, Assignment>();

  private constructor(
    private readonly node: ApiUser,
    readonly welcome: WorkerWelcome,
    private readonly tenant: string | undefined,
  ) {}

  static async register(
    node: ApiUser,
    registration: Partial<WorkerRegistration> = {},
    tenant?: string,
  ): Promise<ProtocolWorker> {
    const welcome = await node.get<WorkerWelcome>('POST', '/v1/workers', {
      body: {
        name: 'by-hand',
        queues: ['default'],
        slots: 10,
        targets: ['handler'],
        tasks: ['work'],
        labels: {},
        ...registration,
      },
      ...(tenant !== undefined && { tenant }),
    });
    return new ProtocolWorker(node, welcome, tenant);
  }

  get id(): string {
    return this.welcome.workerId;
  }

  /** Claims up to `max` jobs, waits for the first, and acknowledges what came. */
  async claim(max = 1, wait = '10s'): Promise<readonly Assignment[]> {
    const jobs = await this.claimSilently(max, wait);
    for (const job of jobs) this.held.set(job.jobId, job);
    if (jobs.length > 0) await this.heartbeat();
    return jobs;
  }

  /** Claims without ever telling that anything arrived. */
  async claimSilently(max = 1, wait = '10s'): Promise<readonly Assignment[]> {
    return (await this.#ask<ClaimAnswer>('claim', { max, wait })).body.jobs;
  }

  /** Claims what must not be there; waits long enough for a hand-over to happen. */
  async claimNothing(): Promise<void> {
    const jobs = await this.claim(10, '50ms');
    if (jobs.length > 0) throw new Error(`these jobs came: ${JSON.stringify(jobs)}`);
  }

  /** Claims the one job that must be there. */
  async claimOne(): Promise<Assignment> {
    const [job] = await this.claim();
    if (!job) throw new Error('no job came');
    return job;
  }

  async heartbeat(
    running: Iterable<FencedJob> = this.held.values(),
    epoch = this.welcome.epoch,
  ): Promise<HeartbeatAnswer> {
    const listed = Array.from(running, ({ jobId, fence }) => ({ jobId, fence }));
    return (await this.#ask<HeartbeatAnswer>('heartbeat', { epoch, running: listed })).body;
  }

  async report(...results: readonly AttemptResult[]): Promise<ReportAnswer> {
    const answer = (await this.#ask<ReportAnswer>('report', { results })).body;
    for (const { jobId } of results) this.held.delete(jobId);
    return answer;
  }

  /** Reports that an attempt succeeded. */
  succeed({ jobId, fence }: FencedJob, result: unknown = null): Promise<ReportAnswer> {
    return this.report({ jobId, fence, outcome: 'succeeded', result });
  }

  /** Reports that an attempt failed. */
  fail({ jobId, fence }: FencedJob, message = 'no luck'): Promise<ReportAnswer> {
    return this.report({ jobId, fence, outcome: 'failed', error: { message } });
  }

  /** Reports that an attempt goes on without this worker. */
  handOn({ jobId, fence }: FencedJob, startedAt?: string): Promise<ReportAnswer> {
    return this.report({ jobId, fence, outcome: 'handed-on', ...(startedAt !== undefined && { startedAt }) });
  }

  async #ask<T>(verb: string, body: unknown): Promise<Answer<T>> {
    const answer = await this.node.ask<T>('POST', `/v1/workers/${this.id}/${verb}`, {
      body,
      ...(this.tenant !== undefined && { tenant: this.tenant }),
    });
    if (answer.status >= 300) {
      throw new Error(`${verb} answered ${answer.status}: ${JSON.stringify(answer.body)}`);
    }
    return answer;
  }
}
