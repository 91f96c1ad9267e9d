import type { Fault } from '../fault.js';

/** The leader dies when an answer full of assignments has just passed on its way to a worker. */
export const fault: Fault = {
  kind: 'kill-handed-over',
  scenario: 'kill-points',
  lane: 'nodes',
  async inject(scene) {
    const { node, epoch } = await scene.leader();
    const { member } = node;
    const links = scene.rig.workers.flatMap((worker) => worker.links);
    let handedOver = false;
    for (const link of links) {
      link.onHandOver = () => {
        handedOver = true;
        void member.kill();
      };
    }
    await scene.until(() => handedOver, 10_000);
    for (const link of links) link.onHandOver = null;
    if (!handedOver) return { targets: [], effective: false, detail: 'nothing was handed over' };
    const at = await member.ended;
    await node.start();
    const detail = `${member.name} died after a hand-over`;
    return { targets: [member.name], effective: true, detail, leaderGone: { epoch, at } };
  },
};
