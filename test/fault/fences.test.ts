import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { FENCES, type Fence } from '../../src/core/test-switches.js';
import { keepEvidence } from './evidence.js';
import type { Fault } from './fault.js';
import { fault as commitLost } from './faults/commit-lost.js';
import type { Settings } from './history.js';
import { type Outcome, type Pace, run } from './run.js';

/**
 * Each fence is taken out and the fault that it is there for is injected: the checker must notice. With all fences
 * in place the same faults do no harm, so it is the missing fence that was noticed.
 */

const SETTINGS: Settings = {
  ...{ leaseTtlMs: 2_000, heartbeatMs: 300, workerTimeoutMs: 3_000 },
  ...{ nodes: 2, workers: 2, slots: 20, jobsPerSecond: 200 },
};
const PACE: Pace = { calmMs: 1_000, settleMs: null, recoverMs: 20_000, drainMs: 15_000 };
/** Without a fence the rate need not come back; but what has not ended must have had the time to. */
const BROKEN_PACE: Pace = { ...PACE, calmMs: 500, settleMs: 0, recoverMs: 500 };

/** The leader's statements are held back until another node leads, and arrive then. */
const lateWrites: Fault = {
  ...{ kind: 'late-writes', scenario: 'fences', lane: 'nodes' },
  async inject(scene) {
    const { node, epoch } = await scene.leader();
    node.database.become({ kind: 'mute' });
    const replaced = await scene.until(async () => (await scene.database.lease()).epoch > epoch, 5_000);
    node.database.become({ kind: 'open' });
    await sleep(1_000);
    return { targets: [node.member.name], effective: replaced, detail: 'statements arrived late' };
  },
};

/** Jobs whose first attempt fails and whose second takes long enough to be reported over by the first. */
const slowSecondAttempts: Fault = {
  ...{ kind: 'slow-second-attempts', scenario: 'fences', lane: 'workers' },
  async inject(scene) {
    await Promise.all(Array.from({ length: 10 }, () => scene.order({ failures: 1, workMs: 700 })));
    await sleep(1_500);
    return { targets: [], effective: true, detail: 'old attempts reported while new ones ran' };
  },
};

/** Nothing at all: hand-overs that cross heartbeats are the most ordinary thing. */
const ordinaryTraffic: Fault = {
  ...{ kind: 'ordinary-traffic', scenario: 'fences', lane: 'reports' },
  async inject() {
    await sleep(2_000);
    return { targets: [], effective: true, detail: 'heartbeats crossed hand-overs' };
  },
};

const PROOFS: Readonly<Record<Fence, { readonly fault: Fault; readonly violated: string }>> = {
  term: { fault: lateWrites, violated: 'epochs-grow' },
  attempt: { fault: slowSecondAttempts, violated: 'stale-refused' },
  'in-doubt': { fault: commitLost, violated: 'nothing-lost' },
  'lost-by-death': { fault: ordinaryTraffic, violated: 'retries-have-a-reason' },
};

async function outcomeOf(faults: readonly Fault[], without: string): Promise<Outcome> {
  const outcome = await run({
    ...{ scenario: 'fences', seed: 1, seconds: 3, settings: SETTINGS, faults },
    pace: without === '' ? PACE : BROKEN_PACE,
    environment: { PUNCTUAL_TEST_WITHOUT: without },
    say: () => undefined,
  });
  if (without === '' && outcome.violations.length > 0) {
    console.log(await keepEvidence(outcome.folder, outcome.history, outcome.violations));
  } else await outcome.discard();
  return outcome;
}

/** How often a fence may be taken out until its fault finds something to break. */
const MAX_GOES = 3;

describe('the fences', () => {
  it('all in place keep every promise', async () => {
    const faults = FENCES.map((fence) => PROOFS[fence].fault);
    const { violations } = await outcomeOf(faults, '');
    // In so short a time a fault may find nothing to break, which breaks no promise.
    expect(violations.filter(({ invariant }) => invariant !== 'faults-take-effect').slice(0, 20)).toEqual([]);
  });

  it.each(FENCES)('%s taken out is noticed', async (fence) => {
    const { fault, violated } = PROOFS[fence];
    const noticed = new Set<string>();
    // A fault that found nothing to break proves nothing, and has another go.
    for (let go = 0; go < MAX_GOES && !noticed.has(violated); go++) {
      const { violations } = await outcomeOf([fault], fence);
      for (const { invariant } of violations) noticed.add(invariant);
    }
    expect([...noticed]).toContain(violated);
  });
});
