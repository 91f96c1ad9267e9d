import type { Fault } from '../fault.js';
import { monotonic } from '../monotonic.js';

/** The leader is asked to stop, as in a rolling restart, and a new node takes its place. */
export const fault: Fault = {
  kind: 'leader-stop',
  scenario: 'leader-stop',
  lane: 'nodes',
  async inject(scene) {
    const { node, epoch } = await scene.leader();
    const victim = node.member.name;
    const at = monotonic();
    const gone = await node.member.stop();
    await node.start();
    const detail = `${victim} stopped within ${Math.round(gone - at)} ms`;
    return { targets: [victim], effective: true, detail, leaderGone: { epoch, at } };
  },
};
