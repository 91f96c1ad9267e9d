import type { Fault } from '../fault.js';

/** The database stores a submission, and the node that stored it never learns. */
export const fault: Fault = {
  kind: 'submission-commit-lost',
  scenario: 'commit-lost',
  lane: 'database',
  async inject(scene) {
    const losing = scene.loseCommit(['insert-jobs', 'insert-varied-jobs', 'insert-later']);
    // The load may be held back just now.
    void scene.load.order([{}]);
    const node = await losing;
    if (!node) return { targets: [], effective: false, detail: 'nobody stored a submission' };
    const { name } = node.member;
    return { targets: [name], effective: true, detail: `the answer to a submission at ${name} was lost` };
  },
};
