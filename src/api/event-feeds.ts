import { messageOf } from '../core/errors.js';
import { type RingEntry, ringLimits } from '../core/event-ring.js';
import type { EventReceiver, EventSource } from '../core/event-source.js';
import type { Log } from '../core/log.js';
import { News } from '../core/news.js';
import { noLeader } from '../dispatch/leader-state.js';
import { EventFeed, type ListenerWish } from './event-feed.js';
import type { AnswerStream } from './route.js';

/**
 * Everybody at this node who listens to events of a shard.
 *
 * The leader alone knows what happens. However many listen here, they share one source: the dispatcher in this process, or
 * one subscription to the leader elsewhere. A feed holds a copy of the leader's ring, so that a client can resume at any
 * node. When the leader is lost, the streams stay open and go on with a `reset` once there is another one.
 */

export interface EventFeedsParts {
  /** Opens a source at whoever leads; null while nobody does. */
  readonly open: (receiver: EventReceiver) => Promise<EventSource | null>;
  /** Told whenever another leader may be there than before. */
  readonly leaderNews: News;
  /** Called when a source ended by itself, so that it is found out whether the leader still leads. */
  readonly onLeaderLost: () => void;
  readonly log: Log;
}

/** How often those who listen are shown that their connection lives; proxies close what is silent for a minute. */
const HEARTBEAT_MS = 15_000;
/** How long a feed is kept for the next listener. */
const LINGER_MS = 5_000;
/** How long to wait for another leader before the same one is asked again. */
const RETRY_PAUSE_MS = 50;
const MAX_PAUSE_MS = 2_000;
/** A source without changes needs no attention; it is looked at now and then in case a wake-up was lost. */
const LOOK_EVERY_MS = 60_000;
/** The most bytes that one listener, and all together, may have left unread. */
const MOST_UNSENT = 1024 * 1024;
const MOST_UNSENT_TOGETHER = 64 * 1024 * 1024;

export class EventFeeds implements EventReceiver {
  private readonly feeds = new Map<string, EventFeed>();
  private readonly lingering = new Map<string, NodeJS.Timeout>();
  /** Rings that the source must be asked for, or must no longer be. */
  private changed = new Set<string>();
  private readonly wake = new News();
  private attending = false;
  private readonly over = new AbortController();
  private listeners = 0;
  private heart: NodeJS.Timeout | undefined;

  constructor(private readonly parts: EventFeedsParts) {}

  /** How many listen at this node. */
  get size(): number {
    return this.listeners;
  }

  /** Whether the node has a source of events, or looks for one. */
  get isAttending(): boolean {
    return this.attending;
  }

  /** Tells a listener the events of a ring that it wishes to hear, until it has gone. */
  async listen(ring: string, wish: ListenerWish, stream: AnswerStream): Promise<void> {
    if (this.isClosed) throw noLeader();
    const feed = this.feedOf(ring);
    this.listeners += 1;
    this.heart ??= this.beatLater();
    try {
      await feed.serve(wish, stream);
    } finally {
      this.listeners -= 1;
      if (feed.size === 0) this.lingerOn(ring, feed);
    }
  }

  /** Ends the subscription and all streams. */
  close(): void {
    this.over.abort();
    clearTimeout(this.heart);
    for (const timer of this.lingering.values()) clearTimeout(timer);
    this.wake.tell();
  }

  /** Whether the node has stopped to serve events. */
  get isClosed(): boolean {
    return this.over.signal.aborted;
  }

  begin(ring: string, epoch: number, base: number, last: number): void {
    this.feeds.get(ring)?.begin(epoch, base, last);
  }

  receive(ring: string, sequence: number, entries: readonly RingEntry[]): void {
    this.feeds.get(ring)?.receive(sequence, entries);
  }

  refuse(ring: string): void {
    this.feeds.get(ring)?.refuse();
    // The next listener asks again.
    this.forget(ring);
  }

  private feedOf(ring: string): EventFeed {
    clearTimeout(this.lingering.get(ring));
    this.lingering.delete(ring);
    const known = this.feeds.get(ring);
    if (known) return known;
    const feed = new EventFeed(
      () => ringLimits(this.feeds.size),
      () => Math.min(MOST_UNSENT, MOST_UNSENT_TOGETHER / this.listeners),
      this.over.signal,
    );
    this.feeds.set(ring, feed);
    this.changed.add(ring);
    this.wake.tell();
    if (!this.attending) void this.attend();
    return feed;
  }

  private lingerOn(ring: string, feed: EventFeed): void {
    if (this.isClosed || this.feeds.get(ring) !== feed) return;
    const timer = setTimeout(() => this.forget(ring), LINGER_MS).unref();
    this.lingering.set(ring, timer);
  }

  private forget(ring: string): void {
    clearTimeout(this.lingering.get(ring));
    this.lingering.delete(ring);
    this.feeds.delete(ring);
    this.changed.add(ring);
    this.wake.tell();
  }

  private beatLater(): NodeJS.Timeout {
    return setTimeout(() => {
      this.heart = undefined;
      for (const feed of this.feeds.values()) feed.beat();
      if (this.listeners > 0) this.heart = this.beatLater();
    }, HEARTBEAT_MS).unref();
  }

  /** Keeps a source as long as there are feeds. */
  private async attend(): Promise<void> {
    this.attending = true;
    let pause = RETRY_PAUSE_MS;
    while (this.feeds.size > 0 && !this.isClosed) {
      // Looked out for from here on, because the next leader may come while this one is being asked.
      const next = this.parts.leaderNews.next(pause);
      pause = Math.min(2 * pause, MAX_PAUSE_MS);
      try {
        const source = await this.parts.open(this);
        if (source) {
          pause = RETRY_PAUSE_MS;
          await this.follow(source);
        }
      } catch (error) {
        this.parts.log.debug({ error: messageOf(error) }, 'the leader tells no events');
      }
      if (this.feeds.size === 0 || this.isClosed) break;
      this.parts.onLeaderLost();
      await next;
    }
    this.changed.clear();
    this.attending = false;
  }

  /** Keeps a source told of which rings are wanted, until it is over or none is. */
  private async follow(source: EventSource): Promise<void> {
    const onOver = () => this.wake.tell();
    source.over.addEventListener('abort', onOver, { once: true });
    this.changed = new Set(this.feeds.keys());
    try {
      while (!source.over.aborted && !this.isClosed && this.feeds.size > 0) {
        const rings = [...this.changed];
        this.changed.clear();
        const isWanted = (ring: string) => this.feeds.has(ring);
        if (rings.length > 0)
          await source.change(
            rings.filter(isWanted),
            rings.filter((ring) => !isWanted(ring)),
          );
        if (this.changed.size === 0 && !source.over.aborted && !this.isClosed)
          await this.wake.next(LOOK_EVERY_MS);
      }
    } finally {
      source.over.removeEventListener('abort', onOver);
      source.close();
    }
  }
}
