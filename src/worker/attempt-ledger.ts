import type { FencedJob } from '../core/wire.js';
import { stands } from '../host/test-switches.js';

const STARTS_ONCE = stands('start-once');
const STOPS_BY_FENCE = stands('stop-fence');

interface Refusal extends FencedJob {
  /** The first heartbeat that told the leader; null before that. */
  toldIn: number | null;
}

/**
 * What the worker knows of the attempts it was handed. It makes the promises the scheduler builds on:
 *
 * - A (job, fence) is started once, however often it is offered. An attempt is therefore remembered until
 *   its report is answered *and* every claim that was open at that moment has ended: until then an answer
 *   written before the report arrived may still be on its way, offering the same attempt again.
 * - Everything received whose report is not answered yet is listed in heartbeats.
 * - What the leader takes back before it arrived is never started. The refusal is listed in heartbeats until
 *   the leader no longer asks for it, and remembered as long as an open claim may still bring the attempt.
 */
export class AttemptLedger<Entry extends object> {
  /** What was received: its entry while the report is not answered, then the last claim that may offer it again. */
  readonly #attempts = new Map<string, Entry | number>();
  #unanswered = 0;
  /** Attempts that are over, in the order in which they ended. */
  #over: string[] = [];
  readonly #refused = new Map<string, Refusal>();
  /** Attempts whose end no leader takes: they stay claimed there, so they are never forgotten here. */
  readonly #untold = new Set<string>();
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
    let passed = 0;
    for (; passed < this.#over.length; passed++) {
      const key = this.#over[passed]!;
      if ((this.#attempts.get(key) as number) >= oldestOpen) break;
      this.#attempts.delete(key);
    }
    if (passed > 0) this.#over = this.#over.slice(passed);
  }

  /** Takes an attempt in and gives its entry; null when it must not be started: not again, or not any more. */
  receive(offered: FencedJob, accept: () => Entry): Entry | null {
    const key = keyOf(offered);
    if (this.#isKnown(key) && STARTS_ONCE) return null;
    const entry = accept();
    this.#attempts.set(key, entry);
    this.#unanswered += 1;
    return entry;
  }

  /** Notes that the report about an attempt was answered, accepted or stale. */
  answer(attempt: FencedJob): void {
    const key = keyOf(attempt);
    if (this.#settle(key)) this.#end(key);
  }

  /** Notes that an attempt is over but that no leader takes its report. */
  giveUp(attempt: FencedJob): void {
    const key = keyOf(attempt);
    if (!this.#settle(key)) return;
    this.#attempts.delete(key);
    this.#untold.add(key);
  }

  /** Notes that an attempt which has not arrived will not be started; false when there is nothing new in that. */
  refuse({ jobId, fence }: FencedJob): boolean {
    const key = keyOf({ jobId, fence });
    if (this.#isKnown(key)) return false;
    this.#refused.set(key, { jobId, fence, toldIn: null });
    return true;
  }

  /** The refusals that a heartbeat is to tell. */
  tellRefused(heartbeat: number): FencedJob[] {
    return Array.from(this.#refused.values(), (refusal) => {
      refusal.toldIn ??= heartbeat;
      return { jobId: refusal.jobId, fence: refusal.fence };
    });
  }

  /** Takes in what the answer to a heartbeat still asks to be stopped; refusals it has heard and lets go are over. */
  settleRefused(heartbeat: number, stop: readonly FencedJob[]): void {
    if (this.#refused.size === 0) return;
    const named = new Set(stop.map(keyOf));
    for (const [key, { toldIn }] of this.#refused) {
      if (toldIn === null || toldIn > heartbeat || named.has(key)) continue;
      this.#refused.delete(key);
      this.#end(key);
    }
  }

  /** The attempt, if it was received and its report is not answered yet. */
  find(attempt: FencedJob): Entry | undefined {
    if (!STOPS_BY_FENCE) return this.#findAny(attempt.jobId);
    const found = this.#attempts.get(keyOf(attempt));
    return typeof found === 'object' ? found : undefined;
  }

  /** Everything received whose report is not answered yet. */
  *unanswered(): IterableIterator<Entry> {
    for (const entry of this.#attempts.values()) if (typeof entry === 'object') yield entry;
  }

  get unansweredCount(): number {
    return this.#unanswered;
  }

  /** Whether the leader knows the end of everything that began here. */
  get isSettled(): boolean {
    return this.#unanswered === 0 && this.#untold.size === 0;
  }

  /** How many attempts are remembered in all; it returns to zero when nothing is under way. */
  get remembered(): number {
    return this.#attempts.size + this.#refused.size + this.#untold.size;
  }

  /** Whatever is known of a job, whichever its fence: what `find` must not do. */
  #findAny(jobId: string): Entry | undefined {
    for (const [key, entry] of this.#attempts) {
      if (typeof entry === 'object' && key.startsWith(jobId)) return entry;
    }
    return undefined;
  }

  #isKnown(key: string): boolean {
    if (this.#attempts.has(key)) return true;
    return (this.#refused.size > 0 && this.#refused.has(key)) || this.#untold.has(key);
  }

  /** Whether the attempt was waiting for an answer to its report, which it has now. */
  #settle(key: string): boolean {
    if (typeof this.#attempts.get(key) !== 'object') return false;
    this.#unanswered -= 1;
    return true;
  }

  /** Remembers that an attempt is over as long as a claim is open that may offer it again. */
  #end(key: string): void {
    if (this.#openClaims.size === 0) {
      this.#attempts.delete(key);
      return;
    }
    this.#attempts.set(key, this.#lastClaim);
    this.#over.push(key);
  }
}

/** Most attempts are the first ones of their jobs; their key is the id as it came, which costs nothing to make. */
function keyOf({ jobId, fence }: FencedJob): string {
  return fence === 1 ? jobId : `${jobId}/${fence}`;
}
