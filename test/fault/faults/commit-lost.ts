import type { Fault } from '../fault.js';

/** Statements of a leader whose loss at the commit leaves it in doubt. */
const STATEMENTS = ['claim-jobs', 'finish-jobs', 'retry-jobs'];

/** The database commits a write of the leader, and the answer never arrives. */
export const fault: Fault = {
  kind: 'commit-lost',
  scenario: 'commit-lost',
  lane: 'database',
  async inject(scene, random) {
    const { node } = await scene.leader();
    const statement = random.pick(STATEMENTS);
    let lost = false;
    void node.lostCommits.loseNext([statement]).then(() => {
      lost = true;
    });
    await scene.until(() => lost, 10_000);
    node.lostCommits.disarm();
    const detail = `the answer to ${statement} of ${node.member.name} ${lost ? 'was' : 'was not'} lost`;
    return { targets: [node.member.name], effective: lost, detail };
  },
};
