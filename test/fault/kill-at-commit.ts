import type { Injected } from './fault.js';
import type { Scene } from './scene.js';

/** Kills the leader at the very moment when the database has committed the statement and says so. */
export async function killAtCommit(scene: Scene, statement: string): Promise<Injected> {
  let epoch = 0;
  const node = await scene.loseCommit([statement], (loser) => {
    epoch = scene.epochSeen;
    void loser.member.kill();
  });
  if (!node) return { targets: [], effective: false, detail: `nobody committed ${statement}` };
  const { member } = node;
  const at = await member.ended;
  await node.start();
  const detail = `${member.name} died after the commit of ${statement}`;
  return { targets: [member.name], effective: true, detail, leaderGone: { epoch, at } };
}
