import { callOrder } from '../call-load.js';
import type { Fault } from '../fault.js';

/** How long the receiver takes, which is longer than it takes to kill a leader. */
const WORK_MS = 2_000;

/** The leader dies between an answer 202 and what the receiver then reports. */
export const fault: Fault = {
  kind: 'kill-handed-on',
  scenario: 'http-mixed',
  lane: 'nodes',
  async inject(scene, random) {
    const call = { handsOn: true };
    const wish = callOrder({ workMs: WORK_MS, timeoutMs: 30_000, call }, scene.rig.sink!.origins, random);
    const { ids } = await scene.load.order([wish]);
    const [id] = ids;
    const isHandedOn = () => id !== undefined && scene.database.isHandedOn(id);
    if (!(await scene.until(isHandedOn, 5_000)))
      return { targets: [], effective: false, detail: 'nothing was handed on' };
    const { node, epoch } = await scene.leader();
    const { member } = node;
    const at = await member.kill();
    const effective = await scene.database.isHandedOn(id!);
    await node.start();
    const detail = `${member.name} died while ${id} was handed on`;
    return { targets: [member.name], effective, detail, leaderGone: { epoch, at } };
  },
};
