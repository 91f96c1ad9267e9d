import { setTimeout as sleep } from 'node:timers/promises';
import type { Fault } from '../fault.js';
import type { ReportFate } from '../rig/worker-link.js';

const FATES: readonly ReportFate[] = ['pass', 'lose', 'lose-answer', 'repeat', 'late'];

/** Reports of all workers are lost, repeated, late and out of order for a while. */
export const fault: Fault = {
  kind: 'report-chaos',
  scenario: 'report-chaos',
  lane: 'reports',
  async inject(scene, random) {
    const links = scene.rig.workers.flatMap((worker) => worker.links);
    const before = links.reduce((sum, link) => sum + link.meddled, 0);
    for (const link of links) link.fate = () => random.pick(FATES);
    await sleep(random.between(1_000, 3_000));
    for (const link of links) link.fate = () => 'pass';
    const meddled = links.reduce((sum, link) => sum + link.meddled, 0) - before;
    // A late report must not stop a job from ending, nor start it again: no target is named.
    return { targets: [], effective: meddled > 0, detail: `${meddled} reports were meddled with` };
  },
};
