import type { PunctualError } from '../core/errors.js';
import { asPunctualError } from '../core/errors.js';
import type { WorkerGateway } from '../core/gateway.js';
import type { Assignment, AttemptResult, FencedJob, ReportAnswer } from '../core/wire.js';
import { stands } from '../host/test-switches.js';
import type { AttemptLedger } from './attempt-ledger.js';
import { type Claimed, NOTHING, startInPortions } from './claim-loop.js';
import type { Executor } from './executor.js';
import type { AnsweredHeartbeat, HeartbeatPace, HeartbeatRound, HeartbeatSource } from './heartbeats.js';
import type { Registration } from './registration.js';
import type { Attempt } from './running-attempt.js';
import type { ServerClock } from './worker-clock.js';
import { monotonic } from './worker-clock.js';
import type { WorkerEvents } from './worker-options.js';

interface LeaderLinkParts {
  readonly gateway: WorkerGateway;
  readonly registration: Registration;
  readonly ledger: AttemptLedger<Attempt>;
  readonly executor: Executor;
  readonly clock: ServerClock;
  /** Aborts when nothing more may be sent. */
  readonly over: AbortSignal;
  /** Called when a heartbeat should be sent soon. */
  readonly onNews: () => void;
  /** Called when the leader has answered a heartbeat. */
  readonly onAnswered: () => void;
  /** Called when the leader orders the worker to drain. */
  readonly onDrain: () => void;
  readonly onWarning: WorkerEvents['onWarning'];
}

/**
 * The worker's exchange with the leader of its shard: sends claims, heartbeats and reports, and carries out the
 * orders in the answers. Answers to an earlier registration and answers from a replaced leader are dropped.
 */
export class LeaderLink implements HeartbeatSource {
  readonly #parts: LeaderLinkParts;
  /** Attempts that arrived when the leader may have declared the worker dead; they wait for its next answer. */
  readonly #waiting = new Set<Attempt>();
  #rounds = 0;
  /** Heartbeats without an answer since the last answer. */
  #missed = 0;
  #lastAnswerAt: number | null = null;
  /** When the last answered heartbeat was sent. */
  #heardAt = Number.NEGATIVE_INFINITY;

  constructor(parts: LeaderLinkParts) {
    this.#parts = parts;
  }

  /** When the last answer to a heartbeat arrived, on the process's monotonic clock; null before the first. */
  get lastAnswerAt(): number | null {
    return this.#lastAnswerAt;
  }

  /** Claims jobs and takes slots for them; the caller must start them at once. */
  async claim(max: number, wait: string, signal: AbortSignal): Promise<Claimed> {
    const { gateway, registration, ledger, executor } = this.#parts;
    const { key } = registration;
    const claim = ledger.openClaim();
    const received: Attempt[] = [];
    const accept = (job: Assignment) => executor.accept(job);
    let stopped = 0;
    let isRepeated = false;
    try {
      const answer = await gateway.claim(key, { max, wait }, signal);
      if (!this.#counts(key.workerId, answer.epoch)) return NOTHING;
      stopped = this.#stop(answer.stop ?? []);
      // All attempts are recorded before the first one starts, and before the claim counts as ended.
      for (const job of answer.jobs) {
        const attempt = ledger.receive(job, accept);
        if (attempt) received.push(attempt);
      }
      isRepeated = answer.jobs.length > 0 && received.length === 0;
    } catch (error) {
      if (!signal.aborted) await this.#registerIfUnknown(key.workerId, asPunctualError(error));
      throw error;
    } finally {
      ledger.closeClaim(claim);
    }
    return {
      news: received.length + stopped,
      isRepeated,
      start: () => startInPortions(received, (attempt) => this.#start(attempt)),
    };
  }

  pace(): HeartbeatPace {
    const { heartbeatIntervalMs, workerTimeoutMs } = this.#parts.registration;
    // When a node does not answer, enough of the worker's timeout is left to ask another.
    return { intervalMs: heartbeatIntervalMs, limitMs: Math.max(1_000, workerTimeoutMs / 3) };
  }

  nextRound(): HeartbeatRound {
    const { registration, ledger } = this.#parts;
    const { key, epoch } = registration;
    this.#rounds += 1;
    const running = Array.from(ledger.unanswered(), (attempt) => {
      attempt.listedIn ??= this.#rounds;
      return { jobId: attempt.jobId, fence: attempt.fence };
    });
    const refused = ledger.listRefused(this.#rounds);
    const heartbeat = { epoch, running, ...(refused.length > 0 && { refused }) };
    return { number: this.#rounds, session: key, heartbeat, pace: this.pace() };
  }

  answered({ round, workerId, answer, askedAt, answeredAt }: AnsweredHeartbeat): void {
    const { clock, ledger, onNews, onAnswered, onDrain } = this.#parts;
    if (!this.#counts(workerId, answer.epoch)) return;
    this.#lastAnswerAt = answeredAt;
    this.#missed = 0;
    onAnswered();
    this.#heardAt = Math.max(this.#heardAt, askedAt);
    clock.compare(answer.now, askedAt, answeredAt);
    // The leader orders to stop what a heartbeat lacks. An attempt that arrived after the heartbeat was sent goes on,
    // and the next heartbeat lists it.
    const hasArrivedSince = ({ listedIn }: Attempt) => listedIn === null || listedIn > round;
    this.#stop(answer.stop, hasArrivedSince);
    if (answer.stop.some((each) => ledger.find(each)?.listedIn === null)) onNews();
    ledger.settleRefused(round, answer.stop);
    this.#startWaiting(round);
    if (answer.drain) onDrain();
  }

  /** One lost heartbeat is normal when leadership changes; a second one in a row is worth a warning. */
  async failed(workerId: string, error: PunctualError): Promise<void> {
    const { over, onWarning } = this.#parts;
    if (over.aborted || (await this.#registerIfUnknown(workerId, error))) return;
    this.#missed += 1;
    if (this.#missed > 1) onWarning?.(error);
  }

  /** Registers anew if the error says that the leader does not know the worker; false if it says something else. */
  async #registerIfUnknown(workerId: string, error: PunctualError): Promise<boolean> {
    const { registration, over, onNews } = this.#parts;
    if (error.code !== 'WORKER_NOT_FOUND') return false;
    if (!over.aborted && (await registration.renew(workerId, over))) onNews();
    return true;
  }

  /**
   * Starts an attempt, unless the leader may have given it to another worker: after a pause of the process that was
   * longer than the worker's timeout, the first answer that is read may be older than the pause.
   */
  #start(attempt: Attempt): void {
    const { registration, executor, onNews } = this.#parts;
    const heardAt = Math.max(this.#heardAt, registration.registeredAt);
    if (monotonic.now() - heardAt <= registration.workerTimeoutMs) executor.start(attempt);
    else {
      this.#waiting.add(attempt);
      onNews();
    }
  }

  /** Starts the waiting attempts that the heartbeat listed; those that its answer named were stopped and do not start. */
  #startWaiting(round: number): void {
    for (const attempt of this.#waiting) {
      if (attempt.listedIn === null || attempt.listedIn > round) continue;
      this.#waiting.delete(attempt);
      this.#parts.executor.start(attempt);
    }
  }

  /** Reports results; null when the answer came from a replaced leader. */
  async report(results: readonly AttemptResult[]): Promise<ReportAnswer | null> {
    const { gateway, registration, over } = this.#parts;
    const { key } = registration;
    const answer = await gateway.report(key, { results }, over);
    return registration.accepts(answer.epoch, key.shard) ? answer : null;
  }

  #counts(workerId: string, epoch: number): boolean {
    const { registration } = this.#parts;
    const isOurs = workerId === registration.workerId || !stands('answer-session');
    return isOurs && registration.accepts(epoch);
  }

  /**
   * Stops the attempts that the leader names, except those it cannot have known of, and refuses those that have not
   * arrived. Returns how many orders were new.
   */
  #stop(named: readonly FencedJob[], isUnknown: (attempt: Attempt) => boolean = () => false): number {
    const { ledger, executor } = this.#parts;
    let news = 0;
    for (const each of named) {
      const attempt = ledger.find(each);
      if (!attempt) news += Number(ledger.refuse(each));
      else if (!isUnknown(attempt)) news += Number(executor.stop(attempt, 'leader'));
    }
    return news;
  }
}
