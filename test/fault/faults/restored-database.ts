import { setTimeout as sleep } from 'node:timers/promises';
import type { Fault } from '../fault.js';
import type { Order } from '../history.js';
import { monotonic } from '../monotonic.js';
import type { Random } from '../random.js';
import { someLabels } from '../rig/worker-slot.js';
import type { Scene } from '../scene.js';

/** Queues that each node learns in the time that is lost. */
const NAMES_PER_NODE = 5;

/**
 * The database is replaced by an older copy of itself while nodes and workers live on, as after a failover to a replica that
 * was behind. What each node has learned since then, names and terms above all, has never been.
 */
export const fault: Fault = {
  kind: 'restored-database',
  scenario: 'restored-database',
  lane: 'database',
  async inject(scene, random) {
    const { rig, database } = scene;
    await rig.stranger();
    const lastCopied = await database.lastWrite();
    const copiedAt = monotonic();
    await rig.postgres.copy();
    const run = random.between(0, 2 ** 31);
    const lostNames = rig.nodes.map((node) => newNames(`lost-${run}-${node.name}`, NAMES_PER_NODE, random));
    await useNames(scene, lostNames);
    await sleep(random.between(500, 1_500));
    const { node: leader } = await scene.leader();
    // The nodes are cut off first, so that what is read here is all that will be lost.
    for (const node of rig.nodes) node.isCutOff = true;
    await scene.until(async () => (await database.terminate('punctual%')) === 0, 10_000);
    const written = await database.audit(lastCopied);
    const downAt = monotonic();
    await rig.postgres.restore();
    const last = await database.lastWrite();
    const lost = written.filter(({ seq }) => seq > last);
    // Mostly the last leader comes first, and would take the same epoch again.
    const first = random.next() < 0.8 ? leader : random.pick(rig.nodes);
    first.isCutOff = false;
    await sleep(scene.settings.leaseTtlMs * 1.2);
    for (const node of rig.nodes) node.isCutOff = false;
    const at = monotonic();
    // Another tenant gets the numbers of the names that were lost, and then the names are used again.
    const names = newNames(`restored-${run}`, NAMES_PER_NODE * rig.nodes.length * 2, random);
    await scene.load.order(names.map((wish) => ({ ...wish, tenant: 'stranger' })));
    await useNames(scene, lostNames);
    return {
      ...{ targets: ['postgres'], effective: lost.length > 0, restored: { copiedAt, downAt, at, lost } },
      detail: `${lost.length} writes of ${Math.round(downAt - copiedAt)} ms were lost`,
    };
  },
};

/** Jobs in queues and with needs that nobody has used before. */
function newNames(prefix: string, count: number, random: Random): Partial<Order>[] {
  return Array.from({ length: count }, (_, index) => ({
    queue: `${prefix}-${index}`,
    requires: someLabels(random),
  }));
}

/** Every node takes jobs for queues that it alone is asked for. */
async function useNames({ rig, load }: Scene, names: readonly (readonly Partial<Order>[])[]): Promise<void> {
  await Promise.all(rig.nodes.map((node, index) => load.order(names[index]!, { node })));
}
