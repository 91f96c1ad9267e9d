import { graceMs } from '../excuses.js';
import type { Fault } from '../fault.js';
import type { Order, Submission } from '../history.js';
import { monotonic } from '../monotonic.js';
import type { Random } from '../random.js';
import type { NodeSlot } from '../rig/node-slot.js';
import { someLabels } from '../rig/worker-slot.js';
import type { Scene } from '../scene.js';

const LARGE_BULK = 2_500;
const SMALL_BULK = 150;
const SMALL_BULKS = 3;
/** How long a large request is held up; nodes give up waiting for a lock after some seconds. */
const HELD_UP_MS = 500;
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
    const taken = [...before, ...after].filter(({ outcome }) => outcome === 'ok');
    const jobs = taken.reduce((sum, { orders }) => sum + orders.length, 0);
    return {
      ...{ targets: [node.member.name], effective: jobs >= LARGE_BULK, detail: `${jobs} jobs in new queues` },
      ...{ leaderGone: { epoch, at }, broken: { from, to } },
    };
  },
};

/**
 * One large request at one node, and small ones at another meanwhile. The large one is held up at its last name, which
 * somebody else is about to use as well: so the small ones are done first, with higher numbers for their names.
 */
async function flood(scene: Scene, random: Random, nodes = scene.rig.nodes): Promise<Submission[]> {
  const [one, other] = random.shuffle(nodes);
  const run = random.between(0, 2 ** 31);
  const bulk = (name: string, size: number, node: NodeSlot) => {
    const wishes = Array.from({ length: size }, (_, index) => wish(`new-${run}-${name}-${index}`, random));
    return scene.load.order([...wishes, wish(`new-${run}-${name}-last`, random)], { node });
  };
  const letGo = await holdUp(scene, `new-${run}-large-last`);
  const large = bulk('large', LARGE_BULK, one!);
  const small: Submission[] = [];
  for (let count = 0; count < SMALL_BULKS; count += 1)
    small.push(await bulk(`small-${count}`, SMALL_BULK, other!));
  await scene.unstarted(servable(small), HELD_UP_MS);
  await letGo();
  return [...small, await large];
}

/** Begins to use a name, and takes that back when told to. Does nothing while the server is away. */
async function holdUp(scene: Scene, name: string): Promise<() => Promise<void>> {
  try {
    const client = await scene.rig.postgres.connect();
    await client.query('BEGIN');
    await client.query(`INSERT INTO punctual.queues (tenant, name, created_at) VALUES ('default', $1, 0)`, [
      name,
    ]);
    return () => client.end().catch(() => undefined);
  } catch {
    return async () => undefined;
  }
}

function wish(name: string, random: Random): Partial<Order> {
  const chance = random.next() * 100;
  if (chance < UNSERVABLE_PERCENT) return { queue: name, requires: { nowhere: name }, servable: false };
  return { queue: name, requires: chance < REQUIRING_PERCENT ? someLabels(random) : {} };
}

/** The orders that were taken and that some worker can run. */
function servable(submissions: readonly Submission[]): Order[] {
  return submissions.flatMap(({ outcome, orders }) =>
    outcome === 'ok' ? orders.filter((order) => order.servable) : [],
  );
}
