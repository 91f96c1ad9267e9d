import type { Clock } from '../core/clock.js';
import type { Log } from '../core/log.js';
import { Loop, logFailure } from '../core/loop.js';
import { forgetNode, seeNode } from '../store/cluster-state.js';
import type { Queryable } from '../store/database.js';
import type { PeerCaller } from './peer-caller.js';

interface MembershipParts {
  readonly db: Queryable;
  readonly self: { readonly id: string; readonly url: string; readonly version: string };
  readonly clock: Clock;
  readonly peers: PeerCaller;
  readonly log: Log;
  /** Called after each look, for other periodic work of the node. */
  readonly onSeen: () => Promise<void>;
}

const SEEN_EVERY_MS = 5_000;

/**
 * Which other nodes there are. The truth is the table of nodes; messages between nodes only make them read it sooner.
 */
export class Membership {
  private readonly loop: Loop;
  /** The addresses of the other nodes. */
  private others: ReadonlySet<string> = new Set();
  private hasJoined = false;

  constructor(private readonly parts: MembershipParts) {
    this.loop = new Loop({
      name: 'membership',
      everyMs: SEEN_EVERY_MS,
      pass: () => this.runOnce(),
      onError: logFailure(parts.log, 'this node could not be registered'),
    });
  }

  start(): void {
    this.loop.start();
  }

  stop(): Promise<void> {
    return this.loop.stop();
  }

  /** Looks now, because a node says that it has joined. */
  look(): void {
    this.loop.wake();
  }

  /** Tells the other nodes that a shard's lease has changed; those that cannot be reached find out themselves. */
  tellOfLease(shard: number): Promise<void> {
    return this.tell('/internal/lease-changed', shard);
  }

  /** Tells the other nodes that keys have changed; those that cannot be reached find out themselves. */
  tellOfKeys(): Promise<void> {
    return this.tell('/internal/keys-changed');
  }

  /** Removes this node from the table. */
  async leave(): Promise<void> {
    await forgetNode(this.parts.db, this.parts.self).catch(() => undefined);
  }

  private async runOnce(): Promise<void> {
    const { db, self, clock, onSeen } = this.parts;
    const others = await seeNode(db, self, clock.now());
    // A node that died is in the table for a while, and the one in its place may have its address, which may be this one.
    this.others = new Set(others.map(({ url }) => url).filter((url) => url !== self.url));
    if (!this.hasJoined) {
      this.hasJoined = true;
      // The others then know this node before their next look, and can tell it when they stop.
      void this.tell('/internal/node-joined');
    }
    await onSeen();
  }

  private async tell(path: string, shard?: number): Promise<void> {
    await Promise.all([...this.others].map((url) => this.parts.peers.post(url, path, {}, shard)));
  }
}
