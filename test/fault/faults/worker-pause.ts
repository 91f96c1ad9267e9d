import { setTimeout as sleep } from 'node:timers/promises';
import type { Fault } from '../fault.js';
import { monotonic } from '../monotonic.js';

/** A worker stands still until it counts as dead, and wakes up with results that are no longer wanted. */
export const fault: Fault = {
  kind: 'worker-pause',
  scenario: 'worker-pause',
  lane: 'workers',
  async inject(scene, random) {
    const { member } = scene.someWorker(random);
    const begin = monotonic();
    member.pause();
    const still = await scene.until(() => member.isPaused, 1_000);
    await sleep(scene.settings.workerTimeoutMs * (1.2 + random.next() * 0.4));
    member.resume();
    const detail = `${member.name} stood still for ${Math.round(monotonic() - begin)} ms`;
    return { targets: [member.name], effective: still, detail };
  },
};
