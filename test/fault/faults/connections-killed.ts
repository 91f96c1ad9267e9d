import type { Fault } from '../fault.js';

/** An operator ends the sessions of all nodes, or of the leader's lease alone. */
export const fault: Fault = {
  kind: 'connections-killed',
  scenario: 'connections-killed',
  lane: 'database',
  async inject(scene, random) {
    const { node } = await scene.leader();
    const which = random.pick([
      'punctual%',
      `punctual ${node.member.name}`,
      `punctual lease ${node.member.name}`,
    ]);
    const ended = await scene.database.terminate(which);
    return { targets: [which], effective: ended > 0, detail: `${ended} sessions of ${which} ended` };
  },
};
