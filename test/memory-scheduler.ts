import { PunctualError } from '../src/core/errors.js';
import type { JobOutput, WorkerGateway } from '../src/core/gateway.js';
import type {
  ArtifactAnswer,
  ArtifactRequest,
  Assignment,
  AttemptResult,
  ClaimAnswer,
  ClaimRequest,
  FencedJob,
  Heartbeat,
  HeartbeatAnswer,
  Leave,
  LogLine,
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
} from '../src/core/wire.js';
import type { AddedSteps, StepAddition } from '../src/core/workflow.js';

type Call =
  | 'register'
  | 'publish'
  | 'heartbeat'
  | 'claim'
  | 'report'
  | 'secrets'
  | 'artifact'
  | 'output'
  | 'progress'
  | 'log'
  | 'addSteps'
  | 'leave';

/** What happens to a call: it fails before the scheduler sees it, or takes effect and its answer is lost. */
type Fault = { readonly error: PunctualError; readonly when: 'before' | 'after' };

/** The other end of the worker protocol, in memory: hands out what a test gives it and remembers what it is told. */
export class MemoryScheduler implements WorkerGateway {
  readonly triesAtOnce = 1;
  readonly secretValues = new Map<string, string>();
  readonly signingSecrets: string[] = [];
  epoch = 1;
  shard = 0;
  heartbeatInterval = '20ms';
  workerTimeout = '2s';
  drain = false;
  readonly registrations: WorkerRegistration[] = [];
  readonly heartbeats: Heartbeat[] = [];
  readonly claimSizes: number[] = [];
  readonly reports: AttemptResult[][] = [];
  /** The session of each report. */
  readonly reporters: string[] = [];
  readonly progressReports: ProgressReport[] = [];
  readonly logs: LogLine[] = [];
  readonly additions: StepAddition[] = [];
  readonly left: string[] = [];
  readonly published: TaskInput[] = [];
  readonly secretsAsked: SecretsRequest[] = [];
  readonly artifactsAsked: ArtifactRequest[] = [];
  /** What an attempt is told that asks for its artifact; null for nothing. */
  artifactKept: ArtifactAnswer | null = null;
  /** What attempts have left. */
  readonly outputs: ({ readonly jobId: string } & JobOutput)[] = [];
  /** The secrets that it keeps; null for one that cannot decrypt them. */
  secretsKept: SecretsAnswer | null = { values: {}, signing: [] };
  /** Everything in the order in which it arrived. */
  readonly calls: Call[] = [];
  readonly accepted = new Map<string, AttemptResult>();
  stop: FencedJob[] = [];
  #claimStop: FencedJob[] = [];
  readonly #claimed = new Map<string, Assignment>();
  readonly #faults = new Map<Call, Fault[]>();
  #waiting: Assignment[] = [];
  #workers = 0;
  #listeners: (() => void)[] = [];
  #nextJob = 0;
  /** While set, answers to claims wait for it, on their way to whoever asked. */
  #claimsHeld: Promise<void> | null = null;
  #onClaimHeld: () => void = () => undefined;

  /** Has a job waiting for the next claim. */
  submit(task: string, payload: unknown = null, change: Partial<Assignment> = {}): Assignment {
    this.#nextJob += 1;
    const assignment: Assignment = {
      jobId: `job-${this.#nextJob}`,
      tenant: 'default',
      task,
      queue: 'default',
      target: { type: 'handler', name: task },
      payload,
      attempt: 1,
      fence: 1,
      epoch: this.epoch,
      timeoutMs: 60_000,
      token: `token-${this.#nextJob}`,
      ...change,
    };
    this.offer(assignment);
    return assignment;
  }

  /** Hands an attempt over, again if it was before. */
  offer(assignment: Assignment): void {
    this.#waiting.push(assignment);
    this.#claimed.set(assignment.jobId, assignment);
    this.#changed();
  }

  /** Has the claim that is open, or the next one, order attempts to stop. */
  stopByClaim(...attempts: readonly FencedJob[]): void {
    this.#claimStop.push(...attempts.map(({ jobId, fence }) => ({ jobId, fence })));
    this.#changed();
  }

  /** Holds back the answers to claims; `held` resolves when there is one, `letGo` when it has been taken in. */
  holdClaims(): { readonly held: Promise<void>; letGo(): Promise<void> } {
    let open!: () => void;
    this.#claimsHeld = new Promise((resolve) => {
      open = resolve;
    });
    const held = new Promise<void>((resolve) => {
      this.#onClaimHeld = resolve;
    });
    const letGo = async () => {
      this.#claimsHeld = null;
      open();
      await new Promise((resolve) => setImmediate(resolve));
    };
    return { held, letGo };
  }

  /** Makes the next calls of a kind fail. */
  fail(
    call: Call,
    times: number,
    when: Fault['when'] = 'before',
    code: PunctualError['code'] = 'UNREACHABLE',
  ): void {
    const error = new PunctualError(code, `a planted ${code} of ${call}`);
    this.#faults.set(
      call,
      Array.from({ length: times }, () => ({ error, when })),
    );
  }

  /** Knows no worker any more, as after it declared them dead. */
  forgetWorkers(): void {
    this.#workers += 1_000;
  }

  /** Resolves as soon as the condition holds, looking again after every call. */
  async until(condition: () => boolean): Promise<void> {
    while (!condition()) await this.#change();
  }

  /** Resolves with the result of a job when it was accepted. */
  async resultOf(job: FencedJob): Promise<AttemptResult> {
    await this.until(() => this.accepted.has(job.jobId));
    return this.accepted.get(job.jobId)!;
  }

  register(registration: WorkerRegistration): Promise<WorkerWelcome> {
    return this.#answer('register', () => {
      this.registrations.push(registration);
      this.#workers += 1;
      return {
        workerId: `worker-${this.#workers}`,
        shard: this.shard,
        epoch: this.epoch,
        heartbeatInterval: this.heartbeatInterval,
        workerTimeout: this.workerTimeout,
        now: new Date().toISOString(),
      };
    });
  }

  heartbeat(session: SessionKey, heartbeat: Heartbeat): Promise<HeartbeatAnswer> {
    return this.#answer('heartbeat', () => {
      this.#know(session);
      this.heartbeats.push(heartbeat);
      return { epoch: this.epoch, stop: this.stop, drain: this.drain, now: new Date().toISOString() };
    });
  }

  async claim(session: SessionKey, request: ClaimRequest, signal?: AbortSignal): Promise<ClaimAnswer> {
    this.claimSizes.push(request.max);
    await this.#answer('claim', () => this.#know(session));
    const onAbort = () => this.#changed();
    signal?.addEventListener('abort', onAbort);
    const hasNews = () => this.#waiting.length > 0 || this.#claimStop.length > 0;
    await this.until(() => hasNews() || signal?.aborted === true);
    signal?.removeEventListener('abort', onAbort);
    this.#know(session);
    const { epoch } = this;
    if (signal?.aborted) return { epoch, jobs: [] };
    const answer = { epoch, jobs: this.#waiting.splice(0, request.max), stop: this.#claimStop.splice(0) };
    if (this.#claimsHeld !== null) this.#onClaimHeld();
    await this.#claimsHeld;
    return answer;
  }

  /** Takes results by their fence, whichever session they come from. */
  report({ workerId, shard }: SessionKey, report: ReportRequest): Promise<ReportAnswer> {
    return this.#answer('report', () => {
      this.#lead(shard);
      this.reporters.push(workerId);
      this.reports.push([...report.results]);
      const accepted: string[] = [];
      const stale: string[] = [];
      for (const result of report.results) {
        const isOwner = this.#claimed.get(result.jobId)?.fence === result.fence;
        if (isOwner) this.accepted.set(result.jobId, result);
        (isOwner ? accepted : stale).push(result.jobId);
      }
      return { epoch: this.epoch, accepted, stale };
    });
  }

  progress(_jobId: string, _token: string, report: ProgressReport): Promise<void> {
    return this.#answer('progress', () => void this.progressReports.push(report));
  }

  log(_jobId: string, _token: string, report: LogReport): Promise<void> {
    return this.#answer('log', () => void this.logs.push(...report.lines));
  }

  addSteps(workflow: string, _token: string | undefined, addition: StepAddition): Promise<AddedSteps> {
    return this.#answer('addSteps', () => {
      this.additions.push(addition);
      return { workflow, jobs: {} };
    });
  }

  secrets(_session: SessionKey, request: SecretsRequest): Promise<SecretsAnswer> {
    this.secretsAsked.push(request);
    return this.#answer('secrets', () => {
      if (!this.secretsKept) throw new PunctualError('SECRETS_UNAVAILABLE', 'There is no master key.');
      return this.secretsKept;
    });
  }

  artifact(_session: SessionKey, request: ArtifactRequest): Promise<ArtifactAnswer> {
    this.artifactsAsked.push(request);
    return this.#answer('artifact', () => {
      if (!this.artifactKept) throw new PunctualError('ARTIFACT_NOT_FOUND', 'There is no artifact.');
      return this.artifactKept;
    });
  }

  output(jobId: string, _token: string | undefined, output: JobOutput): Promise<void> {
    return this.#answer('output', () => void this.outputs.push({ jobId, ...output }));
  }

  publish(task: TaskInput): Promise<void> {
    return this.#answer('publish', () => void this.published.push(task));
  }

  leave({ workerId, shard }: SessionKey, { settled }: Leave): Promise<void> {
    return this.#answer('leave', () => {
      this.#lead(shard);
      if (settled) this.left.push(workerId);
    });
  }

  #lead(shard: number): void {
    if (shard === this.shard) return;
    throw new PunctualError('SHARD_NOT_FOUND', `there is no shard ${shard}`);
  }

  #know({ workerId, shard }: SessionKey): void {
    this.#lead(shard);
    if (workerId === `worker-${this.#workers}`) return;
    throw new PunctualError('WORKER_NOT_FOUND', `${workerId} is not registered`);
  }

  async #answer<T>(call: Call, act: () => T): Promise<T> {
    this.calls.push(call);
    const fault = this.#faults.get(call)?.shift();
    // Answers arrive in a later turn of the event loop, as they do from everywhere.
    await new Promise((resolve) => setImmediate(resolve));
    try {
      if (fault?.when === 'before') throw fault.error;
      const answer = act();
      if (fault?.when === 'after') throw fault.error;
      return answer;
    } finally {
      this.#changed();
    }
  }

  #change(): Promise<void> {
    return new Promise((resolve) => this.#listeners.push(resolve));
  }

  #changed(): void {
    const listeners = this.#listeners;
    this.#listeners = [];
    for (const listener of listeners) listener();
  }
}
