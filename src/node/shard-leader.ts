import { setTimeout as pause } from 'node:timers/promises';
import { LeaderElsewhere } from '../cluster/leader-elsewhere.js';
import type { Leadership } from '../cluster/leadership.js';
import type { Term } from '../cluster/term.js';
import { messageOf } from '../core/errors.js';
import type { Log } from '../core/log.js';
import type { News } from '../core/news.js';
import { Dispatcher, type DispatcherOptions } from '../dispatch/dispatcher.js';
import { noLeader } from '../dispatch/leader-state.js';

/** How long a request waits for a leader before it is told that there is none. */
const PATIENCE_MS = 5_000;
const MAX_LOAD_PAUSE_MS = 1_000;

interface ShardLeaderParts {
  readonly log: Log;
  readonly leadership: Leadership;
  readonly optionsFor: (term: Term) => DispatcherOptions;
  /** Told whenever another leader may be there than before. */
  readonly leaderNews: News;
}

/** The leader of a shard as this node knows it: its own dispatcher, one for each of its terms, or the node that leads. */
export class ShardLeader {
  private dispatcher: Dispatcher | undefined;
  private ending: Promise<unknown> = Promise.resolve();
  private closed = false;

  constructor(private readonly parts: ShardLeaderParts) {}

  /** The dispatcher while this node leads. */
  get current(): Dispatcher | undefined {
    return this.dispatcher;
  }

  /** Leads during the term: from when everything is loaded until the term is over. */
  begin(term: Term): void {
    term.onOver((reason) => {
      this.parts.log.info({ epoch: term.epoch, reason }, 'the term is over');
      this.dispatcher = undefined;
    });
    const led = this.lead(term).catch((error: unknown) => {
      term.end(`leading failed: ${messageOf(error)}`);
    });
    this.ending = Promise.all([this.ending, led]);
  }

  /**
   * Loading only reads, so when it fails (a database without a free connection, say) it is tried again in the
   * same term. A new term would change nothing but the epoch, over and over.
   */
  private async lead(term: Term): Promise<void> {
    for (let failures = 1; !term.over; failures++) {
      const dispatcher = new Dispatcher(this.parts.optionsFor(term));
      const over = new Promise<void>((resolve) => term.onOver(() => resolve()));
      try {
        await dispatcher.start();
        if (!term.over) {
          this.dispatcher = dispatcher;
          this.parts.leaderNews.tell();
        }
        await over;
      } catch (error) {
        this.parts.log.warn({ epoch: term.epoch, error: messageOf(error) }, 'the term could not begin yet');
        await Promise.race([
          over,
          pause(Math.min(MAX_LOAD_PAUSE_MS, 50 * 2 ** failures), undefined, { ref: false }),
        ]);
      } finally {
        await dispatcher.stop();
      }
    }
  }

  /** The dispatcher of this node, or LeaderElsewhere; waits briefly while nobody leads. */
  async get(): Promise<Dispatcher> {
    const deadline = performance.now() + PATIENCE_MS;
    for (;;) {
      if (this.dispatcher) return this.dispatcher;
      const { leader, shard } = this.parts.leadership;
      if (leader) throw new LeaderElsewhere(shard, leader.url);
      const patience = deadline - performance.now();
      if (this.closed || patience <= 0) throw noLeader();
      await this.parts.leaderNews.next(patience);
    }
  }

  /** From now on nobody waits here for a leader. */
  endWaiting(): void {
    this.closed = true;
    this.parts.leaderNews.tell();
  }

  /** Resolves when no dispatcher of an ended term does anything. */
  async close(): Promise<void> {
    this.endWaiting();
    await this.ending;
  }
}
