import { setTimeout as sleep } from 'node:timers/promises';
import type { Fault } from '../fault.js';

/** The store of artifacts is gone for a while, and a worker has lost what it had downloaded. */
export const fault: Fault = {
  kind: 'store-down',
  scenario: 'exec-mixed',
  // Of the workers, because one that is killed meanwhile would be told of as this fault's victim.
  lane: 'workers',
  async inject(scene, random) {
    const worker = scene.someWorker(random);
    const giveBack = await scene.rig.programs!.takeAway();
    worker.forgetPrograms();
    await sleep(random.between(500, 3_000));
    await giveBack();
    const detail = `the store was gone, and ${worker.member.name} had nothing in its cache`;
    return { targets: [worker.member.name], effective: true, detail };
  },
};
