import { messageOf, PunctualError } from '../../core/errors.js';
import { secretNamesOf } from '../../core/http-target.js';
import type { HttpTarget } from '../../core/job.js';
import { type JobContext, PermanentError } from '../../core/task.js';
import type { Assignment, SecretsAnswer } from '../../core/wire.js';
import { HANDED_ON } from '../attempt-result.js';
import { Deadlines } from '../deadlines.js';
import { monotonic } from '../worker-clock.js';
import { AddressGuard } from './http/address-guard.js';
import { AddressResolver, type LookUp } from './http/address-resolver.js';
import type { CallAnswer } from './http/answer-reader.js';
import { excerptOf, headerOf, mostBodyBytes, resultOfAnswer } from './http/call-answer.js';
import { CallDeadline } from './http/call-deadline.js';
import { CallError, noAnswer } from './http/call-error.js';
import { type CallPlan, CallPlans } from './http/call-plan.js';
import { type CallRequest, redactionOf, redirected, requestOf } from './http/call-request.js';
import { type CallSecrets, GatewaySecrets } from './http/call-secrets.js';
import { Connections, type Sending } from './http/connections.js';
import { type Dial, guardedConnector } from './http/connector.js';
import type { Redaction } from './http/redaction.js';
import { retryAfterMs } from './http/retry-after.js';
import { type Runner, type RunnerHost, type Stop, stopOf } from './runner.js';

/** How much of the body of an answer that was not expected goes into the error. */
const ERROR_BODY_BYTES = 8 * 1_024;
const ERROR_EXCERPT = 512;
const REDIRECTS: readonly number[] = [301, 302, 303, 307, 308];
const RETRIED: readonly number[] = [408, 425, 429];
const NO_SECRETS: SecretsAnswer = { values: {}, signing: [] };

/** Parts that tests replace. */
export interface HttpRunnerParts {
  readonly lookUp?: LookUp;
  readonly dial?: Dial;
  readonly secrets?: CallSecrets;
}

/** What the runner has once it is part of a worker. */
interface Opened {
  readonly connections: Connections;
  readonly secrets: CallSecrets;
  readonly plans: CallPlans;
  readonly deadlines: Deadlines;
  readonly maxResultBytes: number;
  /** By the server's clock, in milliseconds since 1970. */
  readonly now: () => number;
}

/** Calls the URLs of http targets. */
export class HttpRunner implements Runner {
  readonly target = 'http';
  readonly runsUserCode = false;
  readonly tasks: readonly string[] = [];
  readonly queues: readonly string[] = [];
  readonly #parts: HttpRunnerParts;
  #opened: Opened | undefined;

  constructor(parts: HttpRunnerParts = {}) {
    this.#parts = parts;
  }

  open({ gateway, session, options, urls, clock }: RunnerHost): void {
    const { lookUp, dial, secrets } = this.#parts;
    const connector = guardedConnector({
      resolver: new AddressResolver(lookUp),
      guard: new AddressGuard(options.allowAddresses),
      ...(dial && { dial }),
    });
    this.#opened = {
      connections: new Connections(connector),
      secrets: secrets ?? new GatewaySecrets({ gateway, session, now: () => monotonic.now() }),
      plans: new CallPlans(options.publicUrl ?? urls[0]),
      deadlines: new Deadlines(),
      maxResultBytes: options.maxResultBytes,
      now: () => Math.floor(clock.now()),
    };
  }

  async close(): Promise<void> {
    // The deadlines go on: what still waits for its turn ends by them.
    this.#opened?.connections.close();
  }

  run(assignment: Assignment, context: JobContext, stop: Stop = stopOf(context.signal)): Promise<unknown> {
    const { target } = assignment;
    if (target.type !== 'http') {
      throw new PermanentError(`A ${target.type} target was given to the runner of http targets.`);
    }
    const opened = this.#opened;
    if (!opened) throw new PunctualError('INTERNAL', 'The runner of http targets is not part of a worker.');
    const plan = opened.plans.of(target);
    const deadline = new CallDeadline(Math.min(plan.timeoutMs, assignment.timeoutMs), stop, opened.deadlines);
    const traceparent = context.traceparent ?? assignment.traceparent;
    return new Call(opened, assignment, target, plan, deadline, traceparent).make();
  }
}

/** One call, with the redirects that it follows. Thousands wait for their turn, so it makes what it needs when it needs it. */
class Call implements Sending {
  #secrets: SecretsAnswer = NO_SECRETS;
  /** The last request; none before the turn of the first. */
  #request: CallRequest | undefined;
  /** How many more redirects are followed. */
  #hops: number;

  constructor(
    private readonly opened: Opened,
    private readonly assignment: Assignment,
    private readonly target: HttpTarget,
    private readonly plan: CallPlan,
    readonly deadline: CallDeadline,
    private readonly traceparent: string | undefined,
  ) {
    this.#hops = target.redirects ?? 0;
  }

  get origin(): string {
    return (this.#request ?? this.plan).address.origin;
  }

  get isFresh(): boolean {
    return this.assignment.delivery === 'at-most-once';
  }

  async make(): Promise<unknown> {
    try {
      this.#secrets = this.#knownSecrets() ?? (await this.#askedSecrets());
      for (;;) {
        const answer = await this.opened.connections.send(this);
        const location = this.#redirectIn(answer);
        if (location === undefined) return this.#end(answer);
        this.#request = redirected(this.request(), answer.statusCode, location);
        this.#hops -= 1;
      }
    } catch (thrown) {
      throw this.#failure(thrown);
    } finally {
      this.deadline.release();
    }
  }

  request(): CallRequest {
    if (this.#request) return this.#request;
    const { assignment, target, plan, traceparent, opened } = this;
    const parts = { plan, assignment, secrets: this.#secrets, traceparent, now: opened.now() };
    this.#request = requestOf(target, parts);
    return this.#request;
  }

  limitOf(statusCode: number, headers: CallAnswer['headers']): number | null {
    if (this.#isHandedOn(statusCode)) return null;
    if (this.#redirectIn({ statusCode, headers }) !== undefined) return null;
    return this.#isGood(statusCode) ? mostBodyBytes(this.opened.maxResultBytes) : ERROR_BODY_BYTES;
  }

  get #needsSecrets(): boolean {
    return this.plan.secretHeaders.length > 0 || typeof this.target.body === 'object';
  }

  #knownSecrets(): SecretsAnswer | undefined {
    return this.#needsSecrets ? undefined : this.opened.secrets.known(this.assignment.tenant);
  }

  #askedSecrets(): Promise<SecretsAnswer> {
    const { assignment, deadline, opened } = this;
    const names = this.#needsSecrets ? secretNamesOf(this.target) : [];
    return deadline.within(opened.secrets.resolve(assignment, names, this.origin, deadline));
  }

  /** Where the answer redirects to, if that is followed. */
  #redirectIn(answer: Pick<CallAnswer, 'statusCode' | 'headers'>): string | undefined {
    const isFollowed = this.#hops > 0 && REDIRECTS.includes(answer.statusCode);
    return isFollowed ? headerOf(answer, 'location') : undefined;
  }

  #isHandedOn(status: number): boolean {
    return status === 202 && (this.target.completion ?? 'auto') === 'auto';
  }

  #isGood(status: number): boolean {
    const { expect } = this.target;
    return expect ? expect.includes(status) : status >= 200 && status < 300;
  }

  /** What the answer means: a result, a report that will come later, or a failure. */
  #end(answer: CallAnswer): unknown {
    const { statusCode: status } = answer;
    if (this.#isHandedOn(status)) return HANDED_ON;
    const redaction = this.#redaction();
    if (this.#isGood(status)) return resultOfAnswer(answer, redaction, this.opened.maxResultBytes);
    const pauseMs = retryAfterMs(headerOf(answer, 'retry-after'), this.opened.now());
    const excerpt = excerptOf(answer.body, redaction, ERROR_EXCERPT);
    throw statusError(this.request(), status, pauseMs, excerpt, this.target.retryStatuses);
  }

  /** A failure as it is reported: nothing in it may be kept secret. */
  #failure(thrown: unknown): unknown {
    const { deadline } = this;
    if (deadline.isStopped) return deadline.reason;
    const { origin } = this.plan.address;
    if (deadline.isOver) return timeoutError(deadline, origin);
    const error = thrown instanceof CallError ? thrown : transportError(thrown, origin);
    const { code, message, retryable, retryAfterMs: after, origin: report } = error;
    const redacted = this.#redaction().text(message);
    return new CallError(code, redacted, { retryable, retryAfterMs: after, origin: report });
  }

  #redaction(): Redaction {
    return redactionOf(this.#secrets, this.assignment);
  }
}

/** The time was up; only a call that was made says something about its origin. */
function timeoutError({ phase, ms }: CallDeadline, origin: string): CallError {
  if (phase === 'answer') return noAnswer('HTTP_TIMEOUT', `${origin} did not answer within ${ms} ms.`);
  const missing =
    phase === 'turn' ? `No call to ${origin} was possible` : 'No node gave the secrets of the call';
  return new CallError('HTTP_TIMEOUT', `${missing} within ${ms} ms.`, { retryable: true });
}

/** An answer whose status was not expected. */
function statusError(
  { method, address: { url } }: CallRequest,
  status: number,
  pauseMs: number | undefined,
  excerpt: string,
  retryStatuses: readonly number[] | undefined,
): CallError {
  const isTrouble = status >= 500;
  const retryable = retryStatuses ? retryStatuses.includes(status) : isTrouble || RETRIED.includes(status);
  const asksForPause = status === 429 || status === 503;
  const origin = {
    ...(asksForPause && pauseMs !== undefined && { pauseMs }),
    ...(isTrouble && { isDown: true }),
    ...(status === 410 && { isGone: true }),
  };
  // A query may hold what is not for every reader of the job.
  const said = `${method} ${url.origin}${url.pathname} answered ${status}`;
  return new CallError(`HTTP_STATUS_${status}`, excerpt === '' ? `${said}.` : `${said}: ${excerpt}`, {
    retryable,
    retryAfterMs: retryable ? pauseMs : undefined,
    origin: Object.keys(origin).length === 0 ? undefined : origin,
  });
}

/** No answer arrived, or not all of it. */
function transportError(thrown: unknown, origin: string): CallError {
  const { code } = (thrown ?? {}) as { code?: unknown };
  const text = typeof code === 'string' ? code : '';
  const isTls = /^(ERR_TLS|ERR_SSL|CERT_|UNABLE_TO_|SELF_SIGNED|DEPTH_ZERO|EPROTO)/.test(text);
  const what = isTls ? 'HTTP_TLS' : 'HTTP_NO_ANSWER';
  return noAnswer(what, `${origin} gave no answer: ${messageOf(thrown)}.`);
}
