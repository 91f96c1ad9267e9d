import { setTimeout as sleep } from 'node:timers/promises';
import type { Fault } from '../fault.js';
import { monotonic } from '../monotonic.js';

/** The leader stands still for longer than its lease, and wakes up believing that it leads. */
export const fault: Fault = {
  kind: 'leader-pause',
  scenario: 'leader-pause',
  lane: 'nodes',
  async inject(scene, random) {
    const { node, epoch } = await scene.leader();
    const at = monotonic();
    node.member.pause();
    const still = await scene.until(() => node.member.isPaused, 1_000);
    await sleep(scene.settings.leaseTtlMs * (1.2 + random.next() * 0.8));
    const replaced = await scene.until(async () => (await scene.database.lease()).epoch > epoch, 10_000);
    node.member.resume();
    return {
      targets: [node.member.name],
      effective: still && replaced,
      detail: `${node.member.name} stood still for ${Math.round(monotonic() - at)} ms`,
      leaderGone: { epoch, at },
    };
  },
};
