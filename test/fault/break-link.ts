import { setTimeout as sleep } from 'node:timers/promises';
import type { Injected } from './fault.js';
import { monotonic } from './monotonic.js';
import type { Random } from './random.js';
import type { LinkState } from './rig/tcp-proxy.js';
import type { Scene } from './scene.js';

/** Breaks one link of a node for about as long as a lease, sometimes shorter and sometimes longer. */
export async function breakLink(
  scene: Scene,
  random: Random,
  which: 'database' | 'peers',
  state: LinkState,
): Promise<Injected> {
  const node = await scene.someNode(random);
  const link = node[which];
  const begin = monotonic();
  link.become(state);
  await sleep(scene.settings.leaseTtlMs * (0.4 + random.next() * 1.2));
  // On a way that nobody uses for a while the fault has not happened yet.
  await scene.until(() => link.hits > 0, scene.settings.leaseTtlMs * 2);
  const { hits } = link;
  link.become({ kind: 'open' });
  const detail = `${hits} hits on the ${which} link of ${node.member.name} in ${Math.round(monotonic() - begin)} ms`;
  return { targets: [node.member.name], effective: hits > 0, detail };
}
