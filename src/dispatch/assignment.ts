import { signAttemptToken } from '../core/attempt-token.js';
import type { Target } from '../core/job.js';
import type { Assignment } from '../core/wire.js';
import type { JobFacts, Running } from './running.js';
import type { WorkerSession } from './session.js';

/** Results may arrive long after the deadline when a worker was cut off; the fence decides, not the token. */
const TOKEN_GRACE_MS = 24 * 3_600_000;

/**
 * What a worker is told about an attempt. Made for tens of thousands a second: a worker in this process reads
 * the payload; one over the network gets the stored text of it.
 */
export class OwnAssignment implements Assignment {
  private parsed: { readonly payload: unknown } | undefined;

  constructor(protected readonly running: Running) {}

  get jobId(): string {
    return this.running.id;
  }

  get attempt(): number {
    return this.running.fence;
  }

  get fence(): number {
    return this.running.fence;
  }

  get epoch(): number {
    return this.running.epoch;
  }

  get timeoutMs(): number {
    return this.running.timeoutMs;
  }

  get tenant(): string {
    return this.running.tenant;
  }

  get task(): string | null {
    return this.running.task;
  }

  get target(): Target {
    const { target, task } = this.running.facts;
    return target === null ? { type: 'handler', name: task! } : (JSON.parse(target) as Target);
  }

  get payload(): unknown {
    this.parsed ??= { payload: JSON.parse(this.running.payload) };
    return this.parsed.payload;
  }

  /** The assignment as JSON, with the payload and the target as they were stored. */
  get text(): string {
    const { facts, tenant, payload, id, fence, epoch } = this.running;
    return (
      `{"jobId":"${id}","payload":${payload},"attempt":${fence},"fence":${fence},"epoch":${epoch},` +
      `${this.tokenText}${commonText(tenant, facts)}}`
    );
  }

  toJSON(): unknown {
    return JSON.parse(this.text);
  }

  protected get tokenText(): string {
    return '';
  }
}

/** An assignment with a token, for workers that want one. It is signed when it is asked for. */
export class SignedAssignment extends OwnAssignment {
  constructor(
    running: Running,
    private readonly secret: Buffer,
  ) {
    super(running);
  }

  get token(): string {
    const { tenant, id: jobId, fence, claimedAt, timeoutMs } = this.running;
    return signAttemptToken(this.secret, { tenant, jobId, fence }, claimedAt + timeoutMs + TOKEN_GRACE_MS);
  }

  protected override get tokenText(): string {
    return `"token":"${this.token}",`;
  }
}

/** The assignments of these attempts as the worker of the session wants them. */
export function assignmentsOf(
  attempts: readonly Running[],
  session: WorkerSession,
  secret: Buffer,
): OwnAssignment[] {
  if (!session.wantsTokens) return attempts.map((running) => new OwnAssignment(running));
  return attempts.map((running) => new SignedAssignment(running, secret));
}

/** What the assignments of an answer mostly have in common, as it was last written. */
let written: { readonly tenant: string; readonly facts: JobFacts; readonly text: string } | undefined;

function commonText(tenant: string, facts: JobFacts): string {
  if (written?.facts !== facts || written.tenant !== tenant) {
    const { task, target, timeoutMs } = facts;
    const targetText = target ?? `{"type":"handler","name":${JSON.stringify(task)}}`;
    const names = `"tenant":${JSON.stringify(tenant)},"task":${JSON.stringify(task)}`;
    written = { tenant, facts, text: `${names},"target":${targetText},"timeoutMs":${timeoutMs}` };
  }
  return written.text;
}
