import type { Fault } from '../fault.js';
import type { NodeSlot } from '../rig/node-slot.js';

/** The leader dies when an answer full of assignments has just passed on its way to a worker. */
export const fault: Fault = {
  kind: 'kill-handed-over',
  scenario: 'kill-points',
  lane: 'nodes',
  async inject(scene) {
    const links = scene.rig.workers.flatMap((worker) => worker.links);
    let killed: { readonly node: NodeSlot; readonly epoch: number } | null = null;
    for (const link of links) {
      link.onHandOver = (epoch) => {
        const node = scene.nodeOfEpoch(epoch);
        if (killed || !node) return;
        killed = { node, epoch };
        void node.member.kill();
      };
    }
    await scene.until(() => killed !== null, 10_000);
    for (const link of links) link.onHandOver = null;
    if (!killed) return { targets: [], effective: false, detail: 'nothing was handed over' };
    const { node, epoch } = killed as { node: NodeSlot; epoch: number };
    const { member } = node;
    const at = await member.ended;
    await node.start();
    const detail = `${member.name} died after a hand-over`;
    return { targets: [member.name], effective: true, detail, leaderGone: { epoch, at } };
  },
};
