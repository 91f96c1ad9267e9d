import type { PunctualError } from '../core/errors.js';
import { asPunctualError } from '../core/errors.js';
import type { WorkerGateway } from '../core/gateway.js';
import { stands } from '../core/test-switches.js';
import type { AttemptResult, FencedJob, ReportAnswer } from '../core/wire.js';
import type { AttemptLedger } from './attempt-ledger.js';
import { type Claimed, startInPortions } from './claim-loop.js';
import type { Executor } from './executor.js';
import type { AnsweredHeartbeat, HeartbeatPace, HeartbeatRound, HeartbeatSource } from './heartbeats.js';
import type { Session } from './registration.js';
import type { Attempt } from './running-attempt.js';
import type { ServerClock } from './worker-clock.js';
import { monotonic } from './worker-clock.js';
import type { WorkerEvents } from './worker-options.js';

interface LeaderLinkParts {
  readonly gateway: WorkerGateway;
  readonly session: Session;
  readonly ledger: AttemptLedger<Attempt>;
  readonly executor: Executor;
  readonly clock: ServerClock;
  /** Aborts when nothing more may be sent. */
  readonly over: AbortSignal;
  /** Called when the leader should soon see what the worker holds. */
  readonly onNews: () => void;
  /** Called when the leader wants the worker to drain. */
  readonly onDrain: () => void;
  readonly onWarning: WorkerEvents['onWarning'];
}

/**
 * What the worker and its leader say to each other while it works: claims, heartbeats and reports go out, orders
 * come back. Answers to a session that was replaced meanwhile, or from a leader that was, are dropped.
 */
export class LeaderLink implements HeartbeatSource {
  readonly #parts: LeaderLinkParts;
  /** Attempts that arrived when the leader may have taken the worker for dead; they wait for its word. */
  readonly #waiting = new Set<Attempt>();
  #rounds = 0;
  /** Heartbeats without an answer since the last that had one. */
  #missed = 0;
  #lastAnswerAt: number | null = null;
  /** When the last heartbeat that was answered was sent. */
  #heardAt = Number.NEGATIVE_INFINITY;

  constructor(parts: LeaderLinkParts) {
    this.#parts = parts;
  }

  /** When the last answer to a heartbeat arrived, on the process's monotonic clock; null before the first. */
  get lastAnswerAt(): number | null {
    return this.#lastAnswerAt;
  }

  /** Asks for jobs and takes them in; they are to be started at once. */
  async claim(max: number, wait: string, signal: AbortSignal): Promise<Claimed> {
    const { gateway, session, ledger, executor } = this.#parts;
    const { workerId } = session;
    const claim = ledger.openClaim();
    const received: Attempt[] = [];
    let stopped = 0;
    try {
      const answer = await gateway.claim(workerId, { max, wait }, signal);
      if (!this.#counts(workerId, answer.epoch)) return { news: 0, start: () => Promise.resolve() };
      stopped = this.#stop(answer.stop ?? []);
      // Everything is noted before anything starts, and before the claim counts as ended.
      for (const job of answer.jobs) {
        const attempt = ledger.receive(job, () => executor.accept(job));
        if (attempt) received.push(attempt);
      }
    } catch (error) {
      if (!signal.aborted) await this.#registerIfUnknown(workerId, asPunctualError(error));
      throw error;
    } finally {
      ledger.closeClaim(claim);
    }
    return {
      news: received.length + stopped,
      start: () => startInPortions(received, (attempt) => this.#start(attempt)),
    };
  }

  pace(): HeartbeatPace {
    const { heartbeatIntervalMs, workerTimeoutMs } = this.#parts.session;
    // Another node can still be asked within the worker's timeout when one does not answer.
    return { intervalMs: heartbeatIntervalMs, limitMs: Math.max(1_000, workerTimeoutMs / 3) };
  }

  nextRound(): HeartbeatRound {
    const { session, ledger } = this.#parts;
    const { workerId, epoch } = session;
    this.#rounds += 1;
    const running = Array.from(ledger.unanswered(), (attempt) => {
      attempt.listedIn ??= this.#rounds;
      return { jobId: attempt.jobId, fence: attempt.fence };
    });
    const refused = ledger.tellRefused(this.#rounds);
    const heartbeat = { epoch, running, ...(refused.length > 0 && { refused }) };
    return { number: this.#rounds, workerId, heartbeat, pace: this.pace() };
  }

  answered({ round, workerId, answer, askedAt, answeredAt }: AnsweredHeartbeat): void {
    const { clock, ledger, onNews, onDrain } = this.#parts;
    if (!this.#counts(workerId, answer.epoch)) return;
    this.#lastAnswerAt = answeredAt;
    this.#missed = 0;
    this.#heardAt = Math.max(this.#heardAt, askedAt);
    clock.compare(answer.now, askedAt, answeredAt);
    // What arrived after the heartbeat was named because it was missing there; the next one shows that it is here.
    const hasArrivedSince = ({ listedIn }: Attempt) => listedIn === null || listedIn > round;
    this.#stop(answer.stop, hasArrivedSince);
    if (answer.stop.some((each) => ledger.find(each)?.listedIn === null)) onNews();
    ledger.settleRefused(round, answer.stop);
    this.#startWaiting(round);
    if (answer.drain) onDrain();
  }

  /** One heartbeat that gets lost, as when a leader hands over, is made good by the next; more are worth a word. */
  async failed(workerId: string, error: PunctualError): Promise<void> {
    const { over, onWarning } = this.#parts;
    if (over.aborted || (await this.#registerIfUnknown(workerId, error))) return;
    this.#missed += 1;
    if (this.#missed > 1) onWarning?.(error);
  }

  /** A leader that does not know the worker gets to know it. */
  async #registerIfUnknown(workerId: string, error: PunctualError): Promise<boolean> {
    const { session, over, onNews } = this.#parts;
    if (error.code !== 'WORKER_NOT_FOUND') return false;
    if (!over.aborted && (await session.renew(workerId, over))) onNews();
    return true;
  }

  /**
   * Starts an attempt, unless the leader may have given it to another worker: after a standstill or a silence longer
   * than the worker's timeout, an answer from before it may be what is read first.
   */
  #start(attempt: Attempt): void {
    const { session, executor, onNews } = this.#parts;
    const heardAt = Math.max(this.#heardAt, session.registeredAt);
    if (monotonic.now() - heardAt <= session.workerTimeoutMs) executor.start(attempt);
    else {
      this.#waiting.add(attempt);
      onNews();
    }
  }

  /** Starts what the leader was shown and did not name: an attempt that it named has ended before it began. */
  #startWaiting(round: number): void {
    for (const attempt of this.#waiting) {
      if (attempt.listedIn === null || attempt.listedIn > round) continue;
      this.#waiting.delete(attempt);
      this.#parts.executor.start(attempt);
    }
  }

  /** Reports results; null when the answer does not count. */
  async report(results: readonly AttemptResult[]): Promise<ReportAnswer | null> {
    const { gateway, session, over } = this.#parts;
    const answer = await gateway.report(session.workerId, { results }, over);
    return session.accepts(answer.epoch) ? answer : null;
  }

  #counts(workerId: string, epoch: number): boolean {
    const { session } = this.#parts;
    const isOurs = workerId === session.workerId || !stands('answer-session');
    return isOurs && session.accepts(epoch);
  }

  /**
   * Stops what the leader names, unless it did not know of it, and makes sure that what has not arrived never
   * starts. Gives how many orders were new.
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
