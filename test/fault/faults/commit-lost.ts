import type { Fault } from '../fault.js';

/** Statements of a leader whose loss at the commit leaves it in doubt. */
const STATEMENTS = ['claim-jobs', 'finish-jobs', 'retry-jobs'];

/** The database commits a write of the leader, and the answer never arrives. */
export const fault: Fault = {
  kind: 'commit-lost',
  scenario: 'commit-lost',
  lane: 'database',
  async inject(scene, random) {
    const statement = random.pick(STATEMENTS);
    const node = await scene.loseCommit([statement]);
    if (!node) return { targets: [], effective: false, detail: `nobody committed ${statement}` };
    const { name } = node.member;
    return { targets: [name], effective: true, detail: `the answer to ${statement} of ${name} was lost` };
  },
};
