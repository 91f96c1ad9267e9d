import type { KeyLimits } from '../core/access.js';
import type { HandlerTarget, Target } from '../core/job.js';
import { signAttemptToken, signReceiverToken } from '../core/tokens.js';
import type { Assignment } from '../core/wire.js';
import type { Work } from '../store/claims.js';
import type { LeaderState } from './leader-state.js';
import type { JobFacts, Running } from './running.js';
import type { WorkerSession } from './worker-session.js';

/**
 * How long a token stays valid after its attempt must have ended. A leader ends an overdue attempt within the worker
 * timeout; the grace covers a time without a leader and calls in flight. A worker that was cut off for longer reports
 * under its own key, and the fence decides whether the report counts.
 */
const TOKEN_GRACE_MS = 15 * 60_000;

/** How long the receiver of a call may report after the attempt must have ended; the claim decides what counts. */
const RECEIVER_GRACE_MS = 24 * 3_600_000;

/** What may be a number of which JavaScript would lose digits, or that is too large for it. */
const INEXACT = /\d{16}|\d[eE][+-]?\d/;

/**
 * What a worker is told about an attempt. Tens of thousands are made per second, so nothing is parsed or serialized
 * ahead: a worker in this process reads the payload, one over the network gets its stored text.
 */
export class OwnAssignment implements Assignment {
  /** Set only for jobs that are part of a trace. */
  declare readonly traceparent?: string;
  declare dueAt?: string;
  /** Set only for steps of workflows. */
  declare readonly workflow?: string;
  private parsed: { readonly payload: unknown } | undefined;

  constructor(
    protected readonly running: Running,
    protected readonly work: Work,
    /** The name of the queue. */
    readonly queue: string,
  ) {
    if (work.workflow !== null) this.workflow = work.workflow;
    if (work.traceparent === null) return;
    this.traceparent = work.traceparent;
    this.dueAt = dueText(running);
  }

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
    const { target } = this.work;
    const { task } = this.running;
    return target === null ? handlerTarget(task!) : (JSON.parse(target) as Target);
  }

  get payload(): unknown {
    this.parsed ??= { payload: JSON.parse(this.work.payload) };
    return this.parsed.payload;
  }

  /** The assignment as JSON, with the payload and the target as they were stored. */
  get text(): string {
    const own = `${this.tokenText}${this.stepText}${this.traceText}${this.callText}`;
    return `{"jobId":"${this.running.id}","payload":${this.work.payload},${own}${commonText(this.running, this.queue, this.work.target)}`;
  }

  toJSON(): unknown {
    return JSON.parse(this.text);
  }

  protected get tokenText(): string {
    return '';
  }

  /** Only for work outside of the worker. */
  protected get callText(): string {
    return '';
  }

  private get stepText(): string {
    return this.workflow === undefined ? '' : `"workflow":"${this.workflow}",`;
  }

  private get traceText(): string {
    const { traceparent, dueAt } = this;
    return traceparent === undefined ? '' : `"traceparent":"${traceparent}","dueAt":"${dueAt}",`;
  }
}

/** An assignment with a token, which is signed when it is read. */
class SignedAssignment extends OwnAssignment {
  constructor(
    running: Running,
    work: Work,
    queue: string,
    protected readonly secret: Buffer,
    private readonly graceMs: number,
    private readonly limits: KeyLimits | null,
  ) {
    super(running, work, queue);
  }

  get token(): string {
    const { tenant, id: jobId, fence, claimedAt, timeoutMs } = this.running;
    const expiresAt = claimedAt + timeoutMs + this.graceMs;
    const claims = { tenant, jobId, fence, ...(this.limits && { limits: this.limits }) };
    return signAttemptToken(this.secret, claims, expiresAt, claimedAt);
  }

  protected override get tokenText(): string {
    return `"token":"${this.token}",`;
  }
}

/**
 * An assignment with an http or exec target, whose work is done outside of the worker. It also has a token for the receiver of the
 * call, or the program, and says when it was due. Its worker gets its own token in any case, because that is what secrets are
 * asked for with.
 */
class OutsideAssignment extends SignedAssignment {
  /** Set only for jobs that start once. */
  declare readonly delivery?: 'at-most-once';
  declare readonly payloadText?: string;

  constructor(
    running: Running,
    work: Work,
    queue: string,
    secret: Buffer,
    graceMs: number,
    limits: KeyLimits | null,
  ) {
    super(running, work, queue, secret, graceMs, limits);
    this.dueAt ??= dueText(running);
    if (running.atMostOnce) this.delivery = 'at-most-once';
    if (INEXACT.test(work.payload)) this.payloadText = work.payload;
  }

  get receiverToken(): string {
    const { tenant, id: jobId, fence, claimedAt, timeoutMs } = this.running;
    const expiresAt = claimedAt + timeoutMs + RECEIVER_GRACE_MS;
    return signReceiverToken(this.secret, { tenant, jobId, fence }, expiresAt, claimedAt);
  }

  protected override get callText(): string {
    const due = this.traceparent === undefined ? `"dueAt":"${this.dueAt}",` : '';
    const delivery = this.delivery === undefined ? '' : `"delivery":"${this.delivery}",`;
    const { payloadText } = this;
    const payload = payloadText === undefined ? '' : `"payloadText":${JSON.stringify(payloadText)},`;
    return `"receiverToken":"${this.receiverToken}",${due}${delivery}${payload}`;
  }
}

/** Caches of one entry: the jobs of a bulk are mostly due at one moment and have one target. */
let lastDue = { runAt: Number.NaN, text: '' };
let lastTarget = { text: '', isOutside: false };

function dueText({ facts: { runAt } }: Running): string {
  if (lastDue.runAt !== runAt) lastDue = { runAt, text: new Date(runAt).toISOString() };
  return lastDue.text;
}

/** Targets are stored as nodes write them, so that most need not be read to know that their work is done in the worker. */
function isOutside({ target: text }: Work): boolean {
  if (text === null || !(text.includes('"http"') || text.includes('"exec"'))) return false;
  if (lastTarget.text !== text) {
    lastTarget = { text, isOutside: (JSON.parse(text) as Target).type !== 'handler' };
  }
  return lastTarget.isOutside;
}

/** An attempt with what it works on. */
export interface Handed {
  readonly running: Running;
  readonly work: Work;
}

/** The assignments of these attempts as the worker of the session wants them; their tokens have the given limits. */
export function assignmentsOf(
  attempts: readonly Handed[],
  session: WorkerSession,
  limits: KeyLimits | null,
  { secret, config, directory }: Pick<LeaderState, 'secret' | 'config' | 'directory'>,
): OwnAssignment[] {
  const queueOf = ({ queue }: Running) => directory.queue(queue)?.name ?? '';
  const graceMs = config.workerTimeout + TOKEN_GRACE_MS;
  return attempts.map(({ running, work }) => {
    const queue = queueOf(running);
    if (isOutside(work)) return new OutsideAssignment(running, work, queue, secret, graceMs, limits);
    if (!session.wantsTokens) return new OwnAssignment(running, work, queue);
    return new SignedAssignment(running, work, queue, secret, graceMs, limits);
  });
}

/** A cache of one entry: most jobs that are handed over together have the same handler. */
let lastHandler: HandlerTarget = { type: 'handler', name: '' };

function handlerTarget(name: string): HandlerTarget {
  if (lastHandler.name !== name) lastHandler = { type: 'handler', name };
  return lastHandler;
}

/** A cache of one entry: the end of the text, which most assignments of an answer have in common. */
let written:
  | {
      readonly tenant: string;
      readonly queue: string;
      readonly facts: JobFacts;
      readonly target: string | null;
      readonly fence: number;
      readonly epoch: number;
      readonly text: string;
    }
  | undefined;

function commonText({ tenant, facts, fence, epoch }: Running, queue: string, target: string | null): string {
  const isSame =
    written?.facts === facts &&
    written.fence === fence &&
    written.epoch === epoch &&
    written.tenant === tenant &&
    written.queue === queue &&
    written.target === target;
  if (!written || !isSame) {
    const { task, timeoutMs } = facts;
    const targetText = target ?? `{"type":"handler","name":${JSON.stringify(task)}}`;
    const numbers = `"attempt":${fence},"fence":${fence},"epoch":${epoch},"timeoutMs":${timeoutMs}`;
    const names = `"tenant":${JSON.stringify(tenant)},"task":${JSON.stringify(task)},"queue":${JSON.stringify(queue)}`;
    const text = `${numbers},${names},"target":${targetText}}`;
    written = { tenant, queue, facts, target, fence, epoch, text };
  }
  return written.text;
}
