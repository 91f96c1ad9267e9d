import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { FencedJob } from '../core/wire.js';
import { AttemptLedger } from './attempt-ledger.js';

const attempt = (jobId: string, fence = 1): FencedJob => ({ jobId, fence });

function receive(ledger: AttemptLedger<FencedJob>, offered: FencedJob): boolean {
  return ledger.receive(offered, () => offered) !== null;
}

describe('the ledger of attempts', () => {
  it('takes an attempt once, and the next fence of the same job as another one', () => {
    const ledger = new AttemptLedger<FencedJob>();
    expect(receive(ledger, attempt('a', 1))).toBe(true);
    expect(receive(ledger, attempt('a', 1))).toBe(false);
    expect(receive(ledger, attempt('a', 2))).toBe(true);
    expect([...ledger.unanswered()]).toEqual([attempt('a', 1), attempt('a', 2)]);
  });

  it('remembers an answered attempt as long as a claim that was open then is open', () => {
    const ledger = new AttemptLedger<FencedJob>();
    const delivering = ledger.openClaim();
    receive(ledger, attempt('a'));
    ledger.closeClaim(delivering);
    const older = ledger.openClaim();
    const newer = ledger.openClaim();
    ledger.answer(attempt('a'));
    expect(ledger.unansweredCount).toBe(0);
    ledger.closeClaim(newer);
    expect(receive(ledger, attempt('a'))).toBe(false);
    const later = ledger.openClaim();
    ledger.closeClaim(older);
    expect(ledger.remembered).toBe(0);
    ledger.closeClaim(later);
  });

  it('never starts what was refused, as long as a claim that was open then may bring it', () => {
    const ledger = new AttemptLedger<FencedJob>();
    const open = ledger.openClaim();
    expect(ledger.refuse(attempt('a'))).toBe(true);
    expect(ledger.refuse(attempt('a'))).toBe(false);
    expect(receive(ledger, attempt('a'))).toBe(false);
    expect(ledger.listRefused(1)).toEqual([attempt('a')]);
    ledger.settleRefused(1, [attempt('a')]);
    expect(ledger.listRefused(2)).toEqual([attempt('a')]);
    ledger.settleRefused(2, []);
    expect(ledger.listRefused(3)).toEqual([]);
    expect(receive(ledger, attempt('a'))).toBe(false);
    ledger.closeClaim(open);
    expect(ledger.remembered).toBe(0);
  });

  it('keeps a refusal until the leader has heard it: an answer to an older heartbeat says nothing', () => {
    const ledger = new AttemptLedger<FencedJob>();
    ledger.listRefused(1);
    ledger.refuse(attempt('a'));
    ledger.settleRefused(1, []);
    expect(ledger.listRefused(2)).toEqual([attempt('a')]);
    ledger.settleRefused(1, []);
    expect(receive(ledger, attempt('a'))).toBe(false);
    ledger.settleRefused(2, []);
    expect(ledger.remembered).toBe(0);
  });

  it('does not refuse what it holds or held', () => {
    const ledger = new AttemptLedger<FencedJob>();
    const open = ledger.openClaim();
    receive(ledger, attempt('held'));
    receive(ledger, attempt('answered'));
    ledger.answer(attempt('answered'));
    expect(ledger.refuse(attempt('held'))).toBe(false);
    expect(ledger.refuse(attempt('answered'))).toBe(false);
    expect(ledger.refuse(attempt('held', 2))).toBe(true);
    ledger.closeClaim(open);
  });

  it('never takes or refuses an attempt whose end could not be told', () => {
    const ledger = new AttemptLedger<FencedJob>();
    receive(ledger, attempt('a'));
    ledger.giveUp(attempt('a'));
    expect(ledger.unansweredCount).toBe(0);
    expect(receive(ledger, attempt('a'))).toBe(false);
    expect(ledger.refuse(attempt('a'))).toBe(false);
  });

  it('never starts an attempt twice, and forgets everything in the end, in whatever order messages travel', () => {
    const jobs = 2;
    const step = fc.tuple(
      fc.constantFrom('open', 'write', 'deliver', 'lose', 'report', 'answer', 'new-attempt'),
      fc.nat(3),
      fc.nat(jobs - 1),
    );
    fc.assert(
      fc.property(fc.array(step, { minLength: 40, maxLength: 200, size: 'max' }), (steps) => {
        const world = new World(jobs);
        for (const [kind, which, job] of steps) world.step(kind, which, job);
        world.finish();
        expect(world.doubleStarts).toEqual([]);
        expect(world.ledger.remembered).toBe(0);
      }),
      { numRuns: 500 },
    );
  });
});

interface Claim {
  readonly number: number;
  /** What the scheduler wrote into the answer; null while it has not answered. */
  offers: FencedJob[] | null;
}

/**
 * A scheduler that offers every attempt that it has not seen a report of, in every answer it writes, and a
 * network that delivers answers of claims and reports in any order.
 */
class World {
  readonly ledger = new AttemptLedger<FencedJob>();
  readonly doubleStarts: string[] = [];
  readonly #fences: number[];
  readonly #owned = new Map<number, FencedJob>();
  readonly #starts = new Set<string>();
  #claims: Claim[] = [];
  #unreported: FencedJob[] = [];
  #reported: FencedJob[] = [];

  constructor(jobs: number) {
    this.#fences = new Array(jobs).fill(0);
  }

  step(kind: string, which: number, job: number): void {
    const claim = this.#claims[which % Math.max(1, this.#claims.length)];
    if (kind === 'open') this.#claims.push({ number: this.ledger.openClaim(), offers: null });
    else if (kind === 'write' && claim) claim.offers ??= [...this.#owned.values()];
    else if (kind === 'deliver' && claim?.offers) this.#end(claim, claim.offers);
    else if (kind === 'lose' && claim) this.#end(claim, []);
    else if (kind === 'report') this.#report(which);
    else if (kind === 'answer') this.#answer(which);
    else if (kind === 'new-attempt') this.#newAttempt(job);
  }

  finish(): void {
    for (const claim of [...this.#claims]) this.#end(claim, claim.offers ?? []);
    while (this.#unreported.length > 0) this.#report(0);
    while (this.#reported.length > 0) this.#answer(0);
  }

  #newAttempt(job: number): void {
    this.#fences[job]! += 1;
    this.#owned.set(job, { jobId: `job-${job}`, fence: this.#fences[job]! });
  }

  #end(claim: Claim, offers: readonly FencedJob[]): void {
    for (const offer of offers) {
      if (!receive(this.ledger, offer)) continue;
      const key = `${offer.jobId}/${offer.fence}`;
      if (this.#starts.has(key)) this.doubleStarts.push(key);
      this.#starts.add(key);
      this.#unreported.push(offer);
    }
    this.ledger.closeClaim(claim.number);
    this.#claims = this.#claims.filter((each) => each !== claim);
  }

  #report(which: number): void {
    const [reported] = this.#unreported.splice(which % Math.max(1, this.#unreported.length), 1);
    if (!reported) return;
    for (const [job, owned] of this.#owned) {
      if (owned.jobId === reported.jobId && owned.fence === reported.fence) this.#owned.delete(job);
    }
    this.#reported.push(reported);
  }

  #answer(which: number): void {
    const [answered] = this.#reported.splice(which % Math.max(1, this.#reported.length), 1);
    if (answered) this.ledger.answer(answered);
  }
}
