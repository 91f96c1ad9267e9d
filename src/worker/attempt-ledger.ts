import type { FencedJob } from '../core/wire.js';

/**
 * What the worker knows of the attempts it was handed. It makes the two promises the scheduler builds on:
 *
 * - A (job, fence) is started once, however often it is offered. An attempt is therefore remembered until
 *   its report is answered *and* every claim that was open at that moment has ended: until then an answer
 *   written before the report arrived may still be on its way, offering the same attempt again.
 * - Everything received whose report is not answered yet is listed in heartbeats.
 */
export class AttemptLedger<Entry> {
  readonly #unanswered = new Map<string, Entry>();
  /** Answered attempts in the order of their answers, each with the last claim that may still offer it. */
  readonly #answered = new Map<string, number>();
  /** Open claims, oldest first: a Set keeps the order in which they were opened. */
  readonly #openClaims = new Set<number>();
  #lastClaim = 0;

  /** Notes that a claim is being asked for; its number goes to `closeClaim` when it has ended, however. */
  openClaim(): number {
    this.#lastClaim += 1;
    this.#openClaims.add(this.#lastClaim);
    return this.#lastClaim;
  }

  /** Notes that nothing more can come from a claim, and forgets what only that claim could have repeated. */
  closeClaim(claim: number): void {
    this.#openClaims.delete(claim);
    const [oldestOpen = Number.POSITIVE_INFINITY] = this.#openClaims;
    for (const [key, lastClaim] of this.#answered) {
      if (lastClaim >= oldestOpen) break;
      this.#answered.delete(key);
    }
  }

  /** Takes an attempt in and gives its entry; null when it was offered before and must not be started again. */
  receive(offered: FencedJob, accept: () => Entry): Entry | null {
    const key = keyOf(offered.jobId, offered.fence);
    if (this.#unanswered.has(key) || this.#answered.has(key)) return null;
    const entry = accept();
    this.#unanswered.set(key, entry);
    return entry;
  }

  /** Notes that the report about an attempt was answered, accepted or stale. */
  answer(jobId: string, fence: number): void {
    const key = keyOf(jobId, fence);
    if (!this.#unanswered.delete(key)) return;
    if (this.#openClaims.size > 0) this.#answered.set(key, this.#lastClaim);
  }

  /** The attempt, if it was received and its report is not answered yet. */
  find(jobId: string, fence: number): Entry | undefined {
    return this.#unanswered.get(keyOf(jobId, fence));
  }

  /** Everything received whose report is not answered yet. */
  unanswered(): IterableIterator<Entry> {
    return this.#unanswered.values();
  }

  get unansweredCount(): number {
    return this.#unanswered.size;
  }

  /** How many attempts are remembered in all; it returns to zero when nothing is under way. */
  get remembered(): number {
    return this.#unanswered.size + this.#answered.size;
  }
}

function keyOf(jobId: string, fence: number): string {
  return `${jobId}/${fence}`;
}
