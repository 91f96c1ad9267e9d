import type { PunctualError } from '../core/errors.js';
import { asPunctualError } from '../core/errors.js';
import type { AttemptResult, ReportAnswer } from '../core/wire.js';
import { GrowingPause, pause } from '../transport/pause.js';
import { type AttemptIdentity, failed, type SizedResult } from './attempt-result.js';

const MAX_RESULTS = 2_000;
const MAX_BYTES = 4 * 1024 * 1024;

/** How the scheduler answered the report about an attempt. */
export type ReportOutcome = 'accepted' | 'stale' | 'refused';

interface Pending<T> extends SizedResult {
  readonly attempt: T;
  /** Whether this failure replaces a result that the scheduler refused. */
  readonly isSubstitute: boolean;
}

interface ReporterParts<T> {
  /** How many reports in a row may fail because a node cannot serve before a pause follows. */
  readonly triesAtOnce: number;
  /** Sends one report; null when its answer came from a replaced leader. */
  readonly send: (results: readonly AttemptResult[]) => Promise<ReportAnswer | null>;
  /** Called once per attempt, when its report was answered. */
  readonly onAnswered: (attempt: T, outcome: ReportOutcome) => void;
  /** Called when a report has failed and is repeated; `atOnce` when that happens without a pause, at another node. */
  readonly onFailure: (error: PunctualError, atOnce: boolean) => void;
  readonly signal: AbortSignal;
}

/**
 * Reports results. One report is in flight at a time, and the next one carries all results that were added meanwhile,
 * so the number of requests does not grow with the load. A result is sent again until a leader has answered it.
 */
export class Reporter<T extends AttemptIdentity> {
  readonly #parts: ReporterParts<T>;
  readonly #growing: GrowingPause;
  #pending: Pending<T>[] = [];
  /** The results of the report in flight. */
  #sending: readonly Pending<T>[] = [];
  /** Halved while a report is refused as a whole, to isolate the result that causes it. */
  #maxResults = MAX_RESULTS;
  #running = false;

  constructor(parts: ReporterParts<T>) {
    this.#parts = parts;
    this.#growing = new GrowingPause(50, 1_000, parts.triesAtOnce);
  }

  /** Adds a result; it is reported with all others of this turn of the event loop. */
  add(attempt: T, sized: SizedResult): void {
    const { result, bytes } = sized;
    this.#pending.push({ result, bytes, attempt, isSubstitute: false });
    if (this.#running) return;
    this.#running = true;
    setImmediate(() => void this.#deliverAll());
  }

  /** All results that no leader has answered yet. */
  *undelivered(): IterableIterator<AttemptResult> {
    for (const { result } of this.#sending) yield result;
    for (const { result } of this.#pending) yield result;
  }

  async #deliverAll(): Promise<void> {
    const { signal } = this.#parts;
    while (this.#pending.length > 0 && !signal.aborted) {
      const batch = this.#takeBatch();
      this.#sending = batch;
      try {
        const answer = await this.#parts.send(batch.map((each) => each.result));
        const unanswered = answer ? this.#settle(batch, answer) : batch;
        this.#sending = [];
        if (unanswered.length === 0) {
          this.#growing.reset();
          this.#maxResults = Math.min(this.#maxResults * 2, MAX_RESULTS);
        } else {
          this.#pending = unanswered.concat(this.#pending);
          await pause(this.#growing.nextMs(), signal);
        }
      } catch (thrown) {
        if (signal.aborted) break;
        this.#sending = [];
        await this.#recover(batch, thrown);
      }
    }
    this.#running = false;
  }

  /** The results of the next report: at most one per job, because answers name jobs. */
  #takeBatch(): Pending<T>[] {
    const batch: Pending<T>[] = [];
    const jobs = new Set<string>();
    const left: Pending<T>[] = [];
    let bytes = 0;
    let index = 0;
    for (; index < this.#pending.length; index++) {
      const each = this.#pending[index]!;
      if (batch.length >= this.#maxResults || (batch.length > 0 && bytes + each.bytes > MAX_BYTES)) break;
      jobs.add(each.attempt.jobId);
      if (jobs.size === batch.length) {
        left.push(each);
        continue;
      }
      bytes += each.bytes;
      batch.push(each);
    }
    this.#pending = index === this.#pending.length ? left : left.concat(this.#pending.slice(index));
    return batch;
  }

  #settle(batch: readonly Pending<T>[], answer: ReportAnswer): Pending<T>[] {
    if (answer.stale.length === 0 && answer.accepted.length === batch.length) {
      for (const { attempt } of batch) this.#parts.onAnswered(attempt, 'accepted');
      return [];
    }
    const accepted = new Set(answer.accepted);
    const stale = new Set(answer.stale);
    const unanswered: Pending<T>[] = [];
    for (const each of batch) {
      if (accepted.has(each.attempt.jobId)) this.#parts.onAnswered(each.attempt, 'accepted');
      else if (stale.has(each.attempt.jobId)) this.#parts.onAnswered(each.attempt, 'stale');
      else unanswered.push(each);
    }
    return unanswered;
  }

  /**
   * Handles a failed report. If no node can serve or the leader does not know the worker, it is sent again later. If
   * the scheduler refuses it or fails on it, it is sent in halves until the result that causes it is alone in its
   * report.
   */
  async #recover(batch: Pending<T>[], thrown: unknown): Promise<void> {
    const error = asPunctualError(thrown);
    const refused = [400, 413, 415, 422].includes(error.status);
    if (refused && batch.length === 1) this.#replaceRefused(batch[0]!, error.message);
    else if (error.status === 500 && batch.length === 1) this.#pending.push(batch[0]!);
    else this.#pending = batch.concat(this.#pending);
    if (refused || error.status === 500) this.#maxResults = Math.max(1, Math.floor(batch.length / 2));
    const pauseMs = refused ? 0 : this.#growing.nextMs(error);
    this.#parts.onFailure(error, !refused && pauseMs === 0);
    if (!refused) await pause(pauseMs, this.#parts.signal);
  }

  #replaceRefused(pending: Pending<T>, why: string): void {
    if (pending.isSubstitute) {
      this.#parts.onAnswered(pending.attempt, 'refused');
      return;
    }
    const failure = {
      error: { message: `The scheduler refused the result: ${why}`, code: 'RESULT_REFUSED' },
      retryable: false,
    };
    this.#pending.unshift({
      ...failed(pending.attempt, failure),
      attempt: pending.attempt,
      isSubstitute: true,
    });
  }
}
