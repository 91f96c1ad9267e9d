import type { Fault } from '../fault.js';

/** The database stores a submission, and the node that stored it never learns. */
export const fault: Fault = {
  kind: 'submission-commit-lost',
  scenario: 'commit-lost',
  lane: 'database',
  async inject(scene, random) {
    const node = random.pick(scene.rig.nodes);
    let lost = false;
    void node.lostCommits.loseNext(['insert-jobs', 'insert-later', 'COMMIT']).then(() => {
      lost = true;
    });
    await scene.until(() => lost, 10_000);
    node.lostCommits.disarm();
    const detail = `the answer to a submission at ${node.member.name} ${lost ? 'was' : 'was not'} lost`;
    return { targets: [node.member.name], effective: lost, detail };
  },
};
