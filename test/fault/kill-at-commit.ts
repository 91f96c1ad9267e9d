import type { Injected } from './fault.js';
import type { Scene } from './scene.js';

/** Kills the leader at the very moment when the database has committed the statement and says so. */
export async function killAtCommit(scene: Scene, statement: string): Promise<Injected> {
  const { node, epoch } = await scene.leader();
  const { member } = node;
  let committed = false;
  void node.lostCommits.loseNext([statement]).then(() => {
    committed = true;
    return member.kill();
  });
  await scene.until(() => committed || !member.isAlive, 10_000);
  node.lostCommits.disarm();
  if (!committed) return { targets: [], effective: false, detail: `${member.name} ran no ${statement}` };
  const at = await member.ended;
  await node.start();
  const detail = `${member.name} died after the commit of ${statement}`;
  return { targets: [member.name], effective: true, detail, leaderGone: { epoch, at } };
}
