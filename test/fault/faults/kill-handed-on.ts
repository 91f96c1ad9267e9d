import type { Fault } from '../fault.js';

/** The leader dies between an answer 202 and what the receiver then reports. */
export const fault: Fault = {
  kind: 'kill-handed-on',
  scenario: 'http-mixed',
  lane: 'nodes',
  async inject(scene) {
    let before: readonly string[] = [];
    await scene.until(async () => {
      before = await scene.database.handedOn();
      return before.length > 0;
    }, 10_000);
    if (before.length === 0) return { targets: [], effective: false, detail: 'nothing was handed on' };
    const { node, epoch } = await scene.leader();
    const { member } = node;
    const at = await member.kill();
    const after = await scene.database.handedOn();
    await node.start();
    const count = before.filter((attempt) => after.includes(attempt)).length;
    const detail = `${member.name} died while ${count} attempts were handed on`;
    return { targets: [member.name], effective: count > 0, detail, leaderGone: { epoch, at } };
  },
};
