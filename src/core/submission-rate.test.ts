import { describe, expect, it } from 'vitest';
import { SubmissionRate, SubmissionTotals } from './submission-rate.js';

const LIMIT = 1_000;

/** Runs nodes that are asked for so many jobs in each tenth of a second; answers what all took in each second. */
function simulate(demands: readonly number[], seconds: number): number[] {
  const totals = new SubmissionTotals();
  const nodes = demands.map((demand, i) => ({ id: `node-${i}`, demand, rate: new SubmissionRate(LIMIT, 0) }));
  const taken: number[] = [];
  for (let second = 0; second < seconds; second++) {
    taken.push(0);
    for (let tick = 0; tick < 10; tick++) {
      const now = second * 1_000 + tick * 100;
      for (const { rate, demand } of nodes) {
        for (let job = 0; job < demand; job++) if (rate.take(1, now) === 0) taken[second]! += 1;
      }
    }
    const now = (second + 1) * 1_000;
    // Each node hears what the others have said before it, as when they tell the leader in turn.
    for (const { id, rate } of nodes) {
      const asked = rate.takeAsked();
      rate.shareOf(asked, totals.hear(id, { acme: asked }, now).acme!, now);
    }
  }
  return taken;
}

describe('the rate of submissions of a tenant', () => {
  it('is that of the quota at one node', () => {
    const [first, ...rest] = simulate([500], 10);
    expect(first).toBeLessThanOrEqual(2 * LIMIT);
    for (const taken of rest) expect(taken).toBe(LIMIT);
  });

  it('is at most that of every node in the first seconds, and then that of the quota over ten nodes', () => {
    const taken = simulate(
      Array.from({ length: 10 }, (_, i) => 100 + 20 * i),
      12,
    );
    expect(taken[0]).toBeLessThanOrEqual(2 * 10 * LIMIT);
    for (const later of taken.slice(3)) {
      expect(later).toBeLessThanOrEqual(1.1 * LIMIT);
      expect(later).toBeGreaterThanOrEqual(0.9 * LIMIT);
    }
  });

  it('shuts out no node that is asked for little beside one that is flooded', () => {
    const rate = new SubmissionRate(LIMIT, 0);
    rate.shareOf(1, 1_000_000, 0);
    for (let job = 0; job < LIMIT; job++) rate.take(1, 0);
    expect(rate.take(1, 0)).toBeLessThanOrEqual(20);
    expect(rate.take(1, 20)).toBe(0);
  });

  it('says after what time to try again, and gives back what was not stored', () => {
    const rate = new SubmissionRate(10, 0);
    expect(rate.take(10, 0)).toBe(0);
    expect(rate.take(5, 0)).toBe(500);
    rate.giveBack(5);
    expect(rate.take(5, 0)).toBe(0);
    expect(rate.take(1, 100)).toBe(0);
  });

  it('follows another quota at once', () => {
    const rate = new SubmissionRate(10, 0);
    rate.limitTo(2, 0);
    expect(rate.take(3, 0)).toBeGreaterThan(0);
    expect(rate.take(2, 0)).toBe(0);
    expect(rate.take(2, 1_000)).toBe(0);
  });
});

it('what a node said counts for a few seconds', () => {
  const totals = new SubmissionTotals();
  totals.hear('a', { acme: 100 }, 0);
  expect(totals.hear('b', { acme: 1 }, 1_000)).toEqual({ acme: 101 });
  expect(totals.hear('b', { acme: 1, other: 2 }, 10_000)).toEqual({ acme: 1, other: 2 });
});
