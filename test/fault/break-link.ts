import { setTimeout as sleep } from 'node:timers/promises';
import type { Injected } from './fault.js';
import { monotonic } from './monotonic.js';
import type { Random } from './random.js';
import type { LinkState } from './rig/tcp-proxy.js';
import type { Scene } from './scene.js';

/** How many of a hundred links stay broken for longer than a lease lasts. */
const LONG_PERCENT = 25;

/** Breaks one link of a node, mostly for less time than a lease lasts and sometimes for more. */
export async function breakLink(
  scene: Scene,
  random: Random,
  which: 'database' | 'peers',
  state: LinkState,
): Promise<Injected> {
  // Nodes call nobody but the leader.
  const node = which === 'peers' ? (await scene.leader()).node : await scene.someNode(random);
  const link = node[which];
  const begin = monotonic();
  link.become(state);
  const isLong = random.next() * 100 < LONG_PERCENT;
  await sleep(scene.settings.leaseTtlMs * (isLong ? 1.05 + random.next() * 0.25 : 0.1 + random.next() * 0.4));
  // On a way that nobody uses for a while the fault has not happened yet.
  await scene.until(() => link.hits > 0, scene.settings.leaseTtlMs * 2);
  const { hits } = link;
  link.become({ kind: 'open' });
  const detail = `${hits} hits on the ${which} link of ${node.member.name} in ${Math.round(monotonic() - begin)} ms`;
  return { targets: [node.member.name], effective: hits > 0, detail };
}
