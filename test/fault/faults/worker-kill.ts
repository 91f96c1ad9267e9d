import { setTimeout as sleep } from 'node:timers/promises';
import type { Fault } from '../fault.js';

/** A worker is killed with everything it runs, and comes back after a moment. */
export const fault: Fault = {
  kind: 'worker-kill',
  scenario: 'worker-kill',
  lane: 'workers',
  async inject(scene, random) {
    const worker = scene.someWorker(random);
    const victim = worker.member.name;
    await worker.member.kill();
    await sleep(random.between(0, 2_000));
    await worker.start();
    return { targets: [victim], effective: true, detail: `${victim} was gone` };
  },
};
