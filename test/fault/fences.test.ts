import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { FENCES, type Fence } from '../../src/host/test-switches.js';
import type { FENCE_PROOFS } from '../fence-proofs.js';
import { keepEvidence } from './evidence.js';
import type { Fault } from './fault.js';
import type { Settings } from './history.js';
import { type Outcome, type Pace, run } from './run.js';

/**
 * Each fence is taken out and the fault that it is there for is injected: the checker must notice. With all fences
 * in place the same faults do no harm, so it is the missing fence that was noticed.
 */

const SETTINGS: Settings = {
  ...{ leaseTtlMs: 2_000, heartbeatMs: 300, workerTimeoutMs: 3_000 },
  ...{ nodes: 2, workers: 2, slots: 20, jobsPerSecond: 200 },
  ...{ workflowsPerSecond: 0, batchesPerSecond: 0, callsPerSecond: 0, programsPerSecond: 0 },
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
    const { outcome, ids } = await scene.load.order(
      Array.from({ length: 10 }, () => ({ failures: 1, workMs: 700 })),
    );
    await sleep(1_500);
    const effective = outcome === 'ok' && ids.length > 0;
    return { targets: [], effective, detail: 'old attempts reported while new ones ran' };
  },
};

/** A claim is committed and its leader never learns. */
const lostClaim: Fault = {
  ...{ kind: 'lost-claim', scenario: 'fences', lane: 'database' },
  async inject(scene) {
    const node = await scene.loseCommit(['claim-jobs']);
    return { targets: [], effective: node !== null, detail: 'the answer to a claim was lost' };
  },
};

/** Hand-overs take a while, so that heartbeats cross them. */
const slowHandOvers: Fault = {
  ...{ kind: 'slow-hand-overs', scenario: 'fences', lane: 'reports' },
  async inject(scene) {
    const links = scene.rig.workers.flatMap((worker) => worker.links);
    for (const link of links) link.handOverDelayMs = scene.settings.heartbeatMs / 2;
    await sleep(2_000);
    for (const link of links) link.handOverDelayMs = 0;
    const delayed = links.reduce((sum, link) => sum + link.delayed, 0);
    return { targets: [], effective: delayed > 0, detail: `${delayed} hand-overs took longer` };
  },
};

/** The fences that are proven here. */
type Proven = {
  [F in Fence]: (typeof FENCE_PROOFS)[F] extends 'test/fault/fences.test.ts' ? F : never;
}[Fence];

const PROOFS: Readonly<Record<Proven, { readonly fault: Fault; readonly violated: string }>> = {
  term: { fault: lateWrites, violated: 'epochs-grow' },
  attempt: { fault: slowSecondAttempts, violated: 'stale-refused' },
  'in-doubt': { fault: lostClaim, violated: 'nothing-lost' },
  'lost-by-death': { fault: slowHandOvers, violated: 'retries-have-a-reason' },
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

const PROVEN = FENCES.filter((fence): fence is Proven => fence in PROOFS);

describe('the fences', () => {
  it('all in place keep every promise', async () => {
    const faults = PROVEN.map((fence) => PROOFS[fence].fault);
    const { violations } = await outcomeOf(faults, '');
    expect(violations.slice(0, 20)).toEqual([]);
  });

  it.each(PROVEN)('%s taken out is noticed', async (fence) => {
    const { fault, violated } = PROOFS[fence];
    const { violations } = await outcomeOf([fault], fence);
    expect([...new Set(violations.map(({ invariant }) => invariant))]).toContain(violated);
  });
});
