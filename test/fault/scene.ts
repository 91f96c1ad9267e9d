import { setTimeout as sleep } from 'node:timers/promises';
import type { Settings } from './history.js';
import type { Load } from './load.js';
import { monotonic } from './monotonic.js';
import type { Client } from './observers/client.js';
import type { DatabaseObserver } from './observers/database-observer.js';
import type { EffectFiles } from './observers/effect-files.js';
import type { Random } from './random.js';
import type { NodeSlot } from './rig/node-slot.js';
import type { Rig } from './rig/rig.js';
import type { WorkerSlot } from './rig/worker-slot.js';

const LOOK_EVERY_MS = 10;

/** What a fault can see and touch. */
export class Scene {
  constructor(
    readonly rig: Rig,
    readonly database: DatabaseObserver,
    readonly client: Client,
    readonly effects: EffectFiles,
    readonly load: Load,
  ) {}

  get settings(): Settings {
    return this.rig.settings;
  }

  /** The node that leads now, with its epoch; waits until there is one. */
  async leader(): Promise<{ node: NodeSlot; epoch: number }> {
    for (;;) {
      const lease = await this.database.lease();
      const node = this.rig.nodes.find(({ member }) => member.name === lease.holder && member.isAlive);
      if (node && !lease.expired) return { node, epoch: lease.epoch };
      await sleep(LOOK_EVERY_MS);
    }
  }

  /** The leader, or any node: whichever chance wants. */
  async someNode(random: Random): Promise<NodeSlot> {
    return random.next() < 0.6 ? (await this.leader()).node : random.pick(this.rig.nodes);
  }

  /** The epoch that was last seen in the lease. */
  get epochSeen(): number {
    return this.database.leases.at(-1)?.epoch ?? 0;
  }

  /** The living node that led in a term, if an onlooker saw that term. */
  nodeOfEpoch(epoch: number): NodeSlot | undefined {
    const holder = this.database.leases.findLast((lease) => lease.epoch === epoch)?.holder;
    return this.rig.nodes.find(({ member }) => member.name === holder && member.isAlive);
  }

  /**
   * Loses the answer to the next commit of one of the statements, at whichever node commits first: who leads may
   * change at any moment. Null when nobody did within ten seconds.
   */
  async loseCommit(
    statements: readonly string[],
    onLost: (node: NodeSlot) => void = () => undefined,
  ): Promise<NodeSlot | null> {
    let loser: NodeSlot | null = null;
    const takeBack = this.rig.nodes.map((node) =>
      node.lostCommits.loseNext(statements, () => {
        if (loser) return;
        loser = node;
        onLost(node);
      }),
    );
    await this.until(() => loser !== null, 10_000);
    for (const each of takeBack) each();
    return loser;
  }

  /** Waits until every one of the orders has started; answers with how many have not in time. */
  async unstarted(orders: readonly { readonly n: number }[], withinMs: number): Promise<number> {
    const left = new Set(orders.map(({ n }) => n));
    let seen = 0;
    await this.until(() => {
      this.effects.look();
      const { all } = this.effects;
      for (; seen < all.length; seen += 1) left.delete(all[seen]!.n);
      return left.size === 0;
    }, withinMs);
    return left.size;
  }

  someWorker(random: Random): WorkerSlot {
    return random.pick(this.rig.workers);
  }

  /** Waits for something to become true; false when it did not in time. */
  async until(condition: () => boolean | Promise<boolean>, withinMs: number): Promise<boolean> {
    const deadline = monotonic() + withinMs;
    for (;;) {
      if (await condition()) return true;
      if (monotonic() > deadline) return false;
      await sleep(LOOK_EVERY_MS);
    }
  }
}
