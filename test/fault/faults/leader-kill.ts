import { setTimeout as sleep } from 'node:timers/promises';
import type { Fault } from '../fault.js';

/** The leader is killed and comes back after a moment as a new node. */
export const fault: Fault = {
  kind: 'leader-kill',
  scenario: 'leader-kill',
  lane: 'nodes',
  async inject(scene, random) {
    const { node, epoch } = await scene.leader();
    const victim = node.member.name;
    const at = await node.member.kill();
    await sleep(random.between(0, 1_500));
    await node.start();
    return {
      ...{ targets: [victim], effective: true, detail: `${victim} was gone`, leaderGone: { epoch, at } },
    };
  },
};
