import { graceMs } from '../excuses.js';
import type { Fault } from '../fault.js';
import type { Order, Submission } from '../history.js';
import { monotonic } from '../monotonic.js';
import type { Random } from '../random.js';
import type { NodeSlot } from '../rig/node-slot.js';
import { someLabels } from '../rig/worker-slot.js';
import type { Scene } from '../scene.js';

/** One large request at one node, and small ones at another all the while: their numbers for new names interleave. */
const LARGE_BULK = 5_000;
const SMALL_BULK = 300;
const MAX_SMALL_BULKS = 8;
/** How many of a hundred jobs require labels, and how many of those no worker has. */
const REQUIRING_PERCENT = 40;
const UNSERVABLE_PERCENT = 4;

/** Thousands of queues and sets of labels are used for the first time, and the leader is killed while more of them come. */
export const fault: Fault = {
  kind: 'many-names',
  scenario: 'many-names',
  lane: 'nodes',
  async inject(scene, random) {
    const before = await flood(scene, random);
    // What does not start within the bound will be called late: only the next term would free it.
    await scene.unstarted(servable(before), graceMs(scene.settings) * 1.2);
    const { node, epoch } = await scene.leader();
    const others = scene.rig.nodes.filter((other) => other !== node);
    const underWay = flood(scene, random, others);
    const from = monotonic();
    const at = await node.member.kill();
    await node.start();
    const to = monotonic();
    const after = await underWay;
    await scene.unstarted(servable(after), graceMs(scene.settings) * 1.2);
    const jobs = [...before, ...after].reduce((sum, { orders }) => sum + orders.length, 0);
    return {
      ...{ targets: [node.member.name], effective: true, detail: `${jobs} jobs in new queues` },
      ...{ leaderGone: { epoch, at }, broken: { from, to } },
    };
  },
};

async function flood(scene: Scene, random: Random, nodes = scene.rig.nodes): Promise<Submission[]> {
  const [one, other] = random.shuffle(nodes);
  const run = random.between(0, 2 ** 31);
  const bulk = (name: string, size: number, node: NodeSlot) => {
    const wishes = Array.from({ length: size }, (_, index) => wish(`new-${run}-${name}-${index}`, random));
    return scene.load.order(wishes, { node });
  };
  let isUnderWay = true;
  const large = bulk('large', LARGE_BULK, one!).finally(() => {
    isUnderWay = false;
  });
  const small: Submission[] = [];
  while (isUnderWay && small.length < MAX_SMALL_BULKS)
    small.push(await bulk(`small-${small.length}`, SMALL_BULK, other!));
  return [...small, await large];
}

function wish(name: string, random: Random): Partial<Order> {
  const chance = random.next() * 100;
  if (chance < UNSERVABLE_PERCENT) return { queue: name, requires: { nowhere: name }, servable: false };
  return { queue: name, requires: chance < REQUIRING_PERCENT ? someLabels(random) : {} };
}

function servable(submissions: readonly Submission[]): Order[] {
  return submissions.flatMap(({ orders }) => orders.filter((order) => order.servable));
}
