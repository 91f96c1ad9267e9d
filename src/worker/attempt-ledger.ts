import type { FencedJob } from '../core/wire.js';
import { stands } from '../host/test-switches.js';

const STARTS_ONCE = stands('start-once');
const STOPS_BY_FENCE = stands('stop-fence');

interface Refusal extends FencedJob {
  /** The number of the first heartbeat that listed it; null before that. */
  listedIn: number | null;
}

/**
 * The attempts that the worker received. It keeps three promises that the scheduler relies on:
 *
 * - A (job, fence) is started once, however often it is offered. An attempt is therefore remembered until its report
 *   is answered *and* every claim that was open at that moment has ended: the answer to such a claim may have been
 *   written before the report arrived, and offer the attempt again.
 * - Heartbeats list every attempt that was received and whose report is not answered yet.
 * - An attempt that the leader revokes before it arrives is never started. Heartbeats list this refusal until the
 *   leader no longer asks to stop the attempt, and it is remembered while an open claim may still deliver the
 *   attempt.
 */
export class AttemptLedger<Entry extends object> {
  /** By attempt: its entry until its report is answered, then the number of the last claim that may offer it again. */
  readonly #attempts = new Map<string, Entry | number>();
  #unanswered = 0;
  /** Attempts whose report is answered, in the order of the answers. */
  #answered: string[] = [];
  readonly #refused = new Map<string, Refusal>();
  /** Attempts whose report the leader refuses: they stay claimed there, so they must stay known here. */
  readonly #unreportable = new Set<string>();
  /** Open claims, oldest first: a Set keeps the order of insertion. */
  readonly #openClaims = new Set<number>();
  #lastClaim = 0;

  /** Records that a claim is sent; the number it returns must be passed to `closeClaim` when the claim has ended. */
  openClaim(): number {
    this.#lastClaim += 1;
    this.#openClaims.add(this.#lastClaim);
    return this.#lastClaim;
  }

  /** Records that a claim has ended, and forgets the attempts that only this claim could have offered again. */
  closeClaim(claim: number): void {
    this.#openClaims.delete(claim);
    const [oldestOpen = Number.POSITIVE_INFINITY] = this.#openClaims;
    let count = 0;
    for (; count < this.#answered.length; count++) {
      const key = this.#answered[count]!;
      if ((this.#attempts.get(key) as number) >= oldestOpen) break;
      this.#attempts.delete(key);
    }
    if (count > 0) this.#answered = this.#answered.slice(count);
  }

  /** Adds an attempt and returns its entry; null when it must not be started because it is known or was refused. */
  receive<Offered extends FencedJob>(offered: Offered, accept: (offered: Offered) => Entry): Entry | null {
    const key = keyOf(offered);
    if (this.#isKnown(key) && STARTS_ONCE) return null;
    const entry = accept(offered);
    this.#attempts.set(key, entry);
    this.#unanswered += 1;
    return entry;
  }

  /** Records that the report about an attempt was answered, as accepted or as stale. */
  answer(attempt: FencedJob): void {
    const key = keyOf(attempt);
    if (this.#countAnswer(key)) this.#retire(key);
  }

  /** Records that the leader refuses the report about an attempt for good. */
  giveUp(attempt: FencedJob): void {
    const key = keyOf(attempt);
    if (!this.#countAnswer(key)) return;
    this.#attempts.delete(key);
    this.#unreportable.add(key);
  }

  /** Records that an attempt which has not arrived will not be started; false when that was known. */
  refuse({ jobId, fence }: FencedJob): boolean {
    const key = keyOf({ jobId, fence });
    if (this.#isKnown(key)) return false;
    this.#refused.set(key, { jobId, fence, listedIn: null });
    return true;
  }

  /** The refusals that a heartbeat lists. */
  listRefused(heartbeat: number): FencedJob[] {
    return Array.from(this.#refused.values(), (refusal) => {
      refusal.listedIn ??= heartbeat;
      return { jobId: refusal.jobId, fence: refusal.fence };
    });
  }

  /** Drops the refusals that a heartbeat listed and whose attempts its answer no longer asks to stop. */
  settleRefused(heartbeat: number, stop: readonly FencedJob[]): void {
    if (this.#refused.size === 0) return;
    const named = new Set(stop.map(keyOf));
    for (const [key, { listedIn }] of this.#refused) {
      if (listedIn === null || listedIn > heartbeat || named.has(key)) continue;
      this.#refused.delete(key);
      this.#retire(key);
    }
  }

  /** The entry of an attempt that was received and whose report is not answered yet. */
  find(attempt: FencedJob): Entry | undefined {
    if (!STOPS_BY_FENCE) return this.#findAny(attempt.jobId);
    const found = this.#attempts.get(keyOf(attempt));
    return typeof found === 'object' ? found : undefined;
  }

  /** The entries of all attempts whose report is not answered yet. */
  *unanswered(): IterableIterator<Entry> {
    for (const entry of this.#attempts.values()) if (typeof entry === 'object') yield entry;
  }

  get unansweredCount(): number {
    return this.#unanswered;
  }

  /** Whether the leader knows how every attempt that was received has ended. */
  get isSettled(): boolean {
    return this.#unanswered === 0 && this.#unreportable.size === 0;
  }

  /** How many attempts are remembered; zero when the worker is idle and no claim is open. */
  get remembered(): number {
    return this.#attempts.size + this.#refused.size + this.#unreportable.size;
  }

  /** An attempt of the job, whatever its fence: what `find` does in tests that remove this fence. */
  #findAny(jobId: string): Entry | undefined {
    for (const [key, entry] of this.#attempts) {
      if (typeof entry === 'object' && key.startsWith(jobId)) return entry;
    }
    return undefined;
  }

  #isKnown(key: string): boolean {
    if (this.#attempts.has(key)) return true;
    return (this.#refused.size > 0 && this.#refused.has(key)) || this.#unreportable.has(key);
  }

  /** Counts the report of an attempt as answered; false when it was not awaited. */
  #countAnswer(key: string): boolean {
    if (typeof this.#attempts.get(key) !== 'object') return false;
    this.#unanswered -= 1;
    return true;
  }

  /** Keeps an answered attempt while a claim is open that may offer it again. */
  #retire(key: string): void {
    if (this.#openClaims.size === 0) {
      this.#attempts.delete(key);
      return;
    }
    this.#attempts.set(key, this.#lastClaim);
    this.#answered.push(key);
  }
}

/** Most attempts are the first of their jobs; their key is the job's id itself, so that no string has to be built. */
function keyOf({ jobId, fence }: FencedJob): string {
  return fence === 1 ? jobId : `${jobId}/${fence}`;
}
