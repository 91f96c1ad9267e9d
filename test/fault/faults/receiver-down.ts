import { setTimeout as sleep } from 'node:timers/promises';
import type { Fault } from '../fault.js';

/** The receiver is killed in the middle of its calls, and before it has reported about those that it took on. */
export const fault: Fault = {
  kind: 'receiver-down',
  scenario: 'http-mixed',
  lane: 'receiver',
  async inject(scene, random) {
    const sink = scene.rig.sink!;
    const victim = sink.member.name;
    await sink.member.kill();
    await sleep(random.between(500, 2_500));
    await sink.start();
    return { targets: [victim], effective: true, detail: `${victim} was gone` };
  },
};
