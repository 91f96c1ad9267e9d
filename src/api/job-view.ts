import { formatDuration } from '../core/duration.js';
import type { Execution } from '../core/execution.js';
import {
  type Attempt,
  type AttemptOutcome,
  JOB_PARTS,
  type Job,
  type JobError,
  type JobPart,
  type JobState,
  type ListedJob,
  type Progress,
  type RelativeList,
  type RetryInput,
} from '../core/job.js';
import type { Repetition } from '../core/keys.js';
import { type Backoff, DEFAULT_BACKOFF } from '../core/retry.js';
import type { StepWait } from '../core/workflow.js';
import type { PlacedRow, StepWaitRow, StoredAttempt } from '../store/job-places.js';
import type { JobRow } from '../store/job-row.js';
import type { ListedRow } from '../store/list-jobs.js';
import type { Relatives } from '../store/read-workflows.js';
import { JsonText } from './json-text.js';

/** The parts of a job that a list left out. */
type Left = Partial<
  Pick<ListedRow, 'without_payload' | 'without_result' | 'without_stack' | 'without_execution'>
>;

const NO_RELATIVES: Relatives = { dependsOn: [], dependents: [], ancestors: [], descendants: [], cut: [] };

/** A stored job as the API shows it; its text is made when it is read. */
export class JobView extends JsonText {
  constructor(
    private readonly row: PlacedRow & Left,
    private readonly newestProgress: Progress | null,
    /** What the answer to a submission says about its key; missing in all other answers. */
    private readonly repetition?: Repetition,
    /** The steps around it, if it is a step of a workflow; null where they are left out. */
    private readonly relatives?: Relatives | null,
  ) {
    super();
  }

  get id(): string {
    return this.row.id;
  }

  get state(): JobState {
    return this.row.state;
  }

  get repeated(): boolean | undefined {
    return this.repetition?.repeated;
  }

  get replaced(): boolean | undefined {
    return this.repetition?.replaced;
  }

  get differs(): readonly string[] | undefined {
    return this.repetition?.differs;
  }

  /** The same without what is large about the job, as lists show it. */
  withoutLarge(): JobView {
    const { row, newestProgress, repetition, relatives } = this;
    const small = { ...row, without_payload: true, without_result: true };
    return new JobView(small, newestProgress, repetition, relatives);
  }

  get text(): string {
    const { row } = this;
    const payload = row.without_payload ? '' : `"payload":${row.payload},`;
    const result = row.without_result ? '' : `"result":${row.result},`;
    const target = row.target ?? JSON.stringify({ type: 'handler', name: row.task ?? '' });
    const error = `"target":${target},"error":${row.error},"requires":${row.requires ?? '{}'}`;
    const repetition = this.repetition ? `,${JSON.stringify(this.repetition).slice(1, -1)}` : '';
    return `${JSON.stringify(this.rest()).slice(0, -1)},${payload}${result}${error}${repetition}}`;
  }

  /** An empty list says that there are no such steps, so where they are not known there is none. */
  private around(): Partial<Pick<Job, RelativeList | 'relativesCut'>> {
    const { row, relatives } = this;
    if (relatives === null && row.workflow !== null) return {};
    const { cut, ...lists } = relatives ?? NO_RELATIVES;
    return { ...lists, ...(cut.length > 0 && { relativesCut: cut }) };
  }

  /** The fields that are not stored as JSON. */
  private rest(): Omit<ListedJob, 'payload' | 'result' | 'target' | 'error' | 'requires'> {
    const { row } = this;
    const attempts = (row.earlier_attempts ?? []).map(toAttempt);
    const earlierLeft = row.earlier_count - attempts.length;
    const last = lastAttempt(row);
    if (last) attempts.push(last);
    const startedAt = attempts.at(-1)?.startedAt ?? null;
    const omitted = omittedFrom(row, earlierLeft > 0);
    return {
      id: row.id,
      tenant: row.tenant,
      task: row.task,
      queue: row.queue,
      state: row.state,
      priority: 10 - row.rank,
      key: row.key,
      hold: row.held,
      runAt: time(row.run_at),
      startBefore: maybeTime(row.start_before),
      createdAt: time(row.created_at),
      // A schedule creates jobs on behalf of the caller who wrote it.
      createdBy: row.occurrence === null ? row.created_by : `schedule:${row.schedule}`,
      scheduledAt: maybeTime(row.occurrence),
      scheduledBy: row.occurrence === null ? null : row.created_by,
      schedule: row.schedule,
      workflow: row.workflow,
      step: row.step,
      waitsFor: row.state === 'blocked' ? waitsFor(row, row.step_inner) : null,
      batch: row.batch,
      attempt: earlierLeft + attempts.length,
      failures: row.failures,
      maxAttempts: row.max_attempts,
      retry: toRetry(row),
      timeout: formatDuration(row.timeout_ms),
      delivery: row.at_most_once ? 'at-most-once' : 'at-least-once',
      concurrencyKey: row.concurrency_key,
      fence: row.fence ?? row.attempts,
      worker: row.worker,
      startedAt: startedAt ?? maybeTime(row.claimed_at),
      handedOnAt: maybeTime(row.handed_on_at),
      cancelRequestedAt: maybeTime(row.cancelled_at),
      finishedAt: maybeTime(row.finished_at),
      lateBy: row.late_by ?? (row.claimed_at === null ? null : Math.max(0, row.claimed_at - row.run_at)),
      progress: this.newestProgress ?? (parse(row.progress) as Progress | null),
      ...this.around(),
      attempts,
      ...(omitted.length > 0 && { omitted }),
    };
  }
}

/** What a step of a workflow waits for besides steps. */
export function waitsFor(row: StepWaitRow, inner: string | null): StepWait | null {
  if (!row.step_waits) return null;
  return { event: row.step_event, until: maybeTime(row.step_until), workflow: inner };
}

function omittedFrom(row: Left, attempts: boolean): JobPart[] {
  const left: Record<JobPart, boolean | undefined> = {
    payload: row.without_payload,
    result: row.without_result,
    stack: row.without_stack,
    attempts: attempts || row.without_execution,
  };
  return JOB_PARTS.filter((part) => left[part]);
}

/** The row of a new job as it would be read back. */
export function newlyPlaced(row: JobRow, queue: string, held: boolean): PlacedRow {
  return {
    ...row.definition,
    id: row.id,
    payload: row.payload,
    queue,
    held,
    place: 'live',
    raw: false,
    state: row.definition.awaits ? 'blocked' : 'pending',
    artifact: row.definition.awaits?.id ?? null,
    artifact_by: row.definition.awaits?.by ?? null,
    attempts: 0,
    failures: 0,
    losses: 0,
    late_by: null,
    earlier_attempts: null,
    earlier_count: 0,
    fence: null,
    worker: null,
    epoch: null,
    claimed_at: null,
    started_at: null,
    finished_at: null,
    outcome: null,
    result: null,
    error: null,
    execution: null,
    progress: null,
    cancelled_at: null,
    handed_on_at: null,
    ...{ step: null, step_waits: null, step_event: null, step_until: null, step_inner: null },
    schedule: null,
    occurrence: null,
    workflow: null,
    batch: null,
  };
}

function time(ms: number): string {
  return new Date(ms).toISOString();
}

function maybeTime(ms: number | null): string | null {
  return ms === null ? null : time(ms);
}

function parse(text: string | null): unknown {
  return text === null ? null : JSON.parse(text);
}

function toRetry(row: PlacedRow): RetryInput {
  const backoff = row.backoff === null ? DEFAULT_BACKOFF : (JSON.parse(row.backoff) as Backoff);
  return {
    maxAttempts: row.max_attempts,
    backoff: {
      base: formatDuration(backoff.baseMs),
      factor: backoff.factor,
      max: formatDuration(backoff.maxMs),
      jitter: backoff.jitter,
    },
    onWorkerLost: { maxAttempts: row.max_losses },
  };
}

function toAttempt(attempt: StoredAttempt): Attempt {
  return {
    attempt: attempt.fence,
    fence: attempt.fence,
    epoch: attempt.epoch,
    worker: attempt.worker,
    claimedAt: time(attempt.claimedAt),
    startedAt: maybeTime(attempt.startedAt),
    finishedAt: time(attempt.finishedAt),
    outcome: attempt.outcome as AttemptOutcome,
    error: attempt.error,
    ...(attempt.execution && { execution: attempt.execution }),
  };
}

/** The attempt that runs, or the one that ended the job; a job that never started has none. */
function lastAttempt(row: PlacedRow): Attempt | null {
  if (row.fence === null || row.worker === null || row.claimed_at === null) return null;
  const execution = parse(row.execution) as Execution | null;
  return {
    attempt: row.fence,
    fence: row.fence,
    epoch: row.epoch ?? 0,
    worker: row.worker,
    claimedAt: time(row.claimed_at),
    startedAt: maybeTime(row.started_at),
    finishedAt: maybeTime(row.finished_at),
    outcome: row.outcome as AttemptOutcome | null,
    error: row.state === 'succeeded' ? null : (parse(row.error) as JobError | null),
    ...(execution && { execution }),
  };
}
