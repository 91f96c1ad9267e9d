import { LeaderElsewhere } from '../cluster/leader-elsewhere.js';
import { messageOf } from '../core/errors.js';
import type { Log } from '../core/log.js';
import { News } from '../core/news.js';
import { noLeader } from '../dispatch/leader-state.js';

/**
 * Everybody at this node who waits for the end of a job.
 *
 * The leader alone knows at once when a job ends. However many wait here, they share one line to it: the ids that are
 * waited for go there in batches, and the ids of those that ended come back. When the leader is lost, the next one is
 * given all ids; a job that ended in between is found in the table, because that is looked at after the ids have arrived.
 */

/** Where it is told which jobs end: the dispatcher of this node, or a line to the leader elsewhere. */
export interface EndSource {
  /** Aborts when nothing more comes from it. */
  readonly over: AbortSignal;
  /** Once it resolves, the ends of the jobs in `add` are told, and those in `remove` no more. */
  change(add: readonly string[], remove: readonly string[]): Promise<void>;
  close(): void;
}

export interface OwnedJob {
  readonly tenant: string;
  readonly id: string;
}

export interface EndWatchParts {
  /** Opens a line to whoever leads; null while nobody does. LeaderElsewhere: that leader has no such line. */
  readonly open: (onEnded: (ids: readonly string[]) => void) => Promise<EndSource | null>;
  /** Told whenever another leader may be there than before. */
  readonly leaderNews: News;
  /** Called when a leader tells nothing any more, so that it is found out whether it still leads. */
  readonly onLeaderLost: () => void;
  /** Which of these jobs have ended, as the table says. */
  readonly findEnded: (jobs: readonly OwnedJob[]) => Promise<readonly string[]>;
  readonly log: Log;
}

interface Waiter {
  settle(ended: boolean): void;
  fail(error: unknown): void;
}

interface Watched extends OwnedJob {
  readonly waiters: Set<Waiter>;
}

/** How long those who wait do so without a leader before they are told that there is none. */
const PATIENCE_MS = 5_000;
/** So long it is waited for another leader before the same one is asked again. */
const RETRY_PAUSE_MS = 50;
/** How many ids go to the leader, and are looked up, at a time. */
const BATCH = 1_000;
/** How often an idle line is tried, so that one that is dead does not count as one on which nothing happens. */
const TRY_EVERY_MS = 5_000;
/** How long the line is kept for the next who waits. */
const LINGER_MS = 10_000;

export class EndWatch {
  private readonly watched = new Map<string, Watched>();
  /** Ids that the source has not been told of, or still watches although nobody waits. */
  private changed = new Set<string>();
  private readonly wake = new News();
  private attending = false;
  private closed = false;
  private attendedAt = 0;

  constructor(private readonly parts: EndWatchParts) {}

  /** Resolves true when the job may have ended, false when the time is up or the caller has gone. */
  wait({ tenant, id }: OwnedJob, ms: number, signal: AbortSignal): Promise<boolean> {
    if (signal.aborted || this.closed) return Promise.resolve(false);
    return new Promise((resolve, reject) => {
      const end = () => {
        clearTimeout(timer);
        signal.removeEventListener('abort', onAbort);
        this.leave(id, waiter);
      };
      const waiter: Waiter = {
        settle: (ended) => {
          end();
          resolve(ended);
        },
        fail: (error) => {
          end();
          reject(error);
        },
      };
      const onAbort = () => waiter.settle(false);
      const timer = setTimeout(onAbort, ms);
      signal.addEventListener('abort', onAbort, { once: true });
      this.join({ tenant, id }, waiter);
    });
  }

  /** Lets everybody go. */
  close(): void {
    this.closed = true;
    for (const { waiters } of [...this.watched.values()])
      for (const waiter of [...waiters]) waiter.settle(false);
    this.wake.tell();
  }

  private join(job: OwnedJob, waiter: Waiter): void {
    const known = this.watched.get(job.id);
    if (known) {
      known.waiters.add(waiter);
      return;
    }
    this.watched.set(job.id, { ...job, waiters: new Set([waiter]) });
    this.changed.add(job.id);
    this.wake.tell();
    if (!this.attending) void this.attend();
  }

  private leave(id: string, waiter: Waiter): void {
    const job = this.watched.get(id);
    if (!job?.waiters.delete(waiter) || job.waiters.size > 0) return;
    this.watched.delete(id);
    this.changed.add(id);
    this.wake.tell();
  }

  /** Keeps a line to whoever leads, as long as somebody waits. */
  private async attend(): Promise<void> {
    this.attending = true;
    this.attendedAt = performance.now();
    while (this.watched.size > 0) {
      // Looked out for from here on, because the next leader may come while this one is being asked.
      const next = this.parts.leaderNews.next(RETRY_PAUSE_MS);
      try {
        const source = await this.parts.open((ids) => this.tell(ids));
        if (source) await this.follow(source);
      } catch (error) {
        this.parts.log.debug({ error: messageOf(error) }, 'the leader does not tell which jobs end');
        if (error instanceof LeaderElsewhere) this.failAll(error);
      }
      if (performance.now() - this.attendedAt > PATIENCE_MS) this.failAll(noLeader());
      if (this.watched.size === 0) break;
      this.parts.onLeaderLost();
      await next;
    }
    this.changed.clear();
    this.attending = false;
  }

  /** Keeps a source told of who is waited for, until it is over or nobody has waited for a while. */
  private async follow(source: EndSource): Promise<void> {
    const onOver = () => this.wake.tell();
    source.over.addEventListener('abort', onOver, { once: true });
    this.changed = new Set(this.watched.keys());
    try {
      for (let idle = false; !source.over.aborted && !(idle && this.watched.size === 0); ) {
        await this.tellSource(source);
        const askedAt = performance.now();
        const patience = this.watched.size === 0 ? LINGER_MS : TRY_EVERY_MS;
        if (this.changed.size === 0 && !source.over.aborted && !this.closed) await this.wake.next(patience);
        idle = this.closed || performance.now() - askedAt >= patience;
      }
    } finally {
      source.over.removeEventListener('abort', onOver);
      source.close();
    }
  }

  private async tellSource(source: EndSource): Promise<void> {
    const batch: string[] = [];
    for (const id of this.changed) {
      if (batch.push(id) === BATCH) break;
    }
    for (const id of batch) this.changed.delete(id);
    const added = batch.flatMap((id) => this.watched.get(id) ?? []);
    const removed = batch.filter((id) => !this.watched.has(id));
    await source.change(
      added.map(({ id }) => id),
      removed,
    );
    this.attendedAt = performance.now();
    if (added.length === 0) return;
    const ended = await this.parts.findEnded(added);
    this.tell(ended);
    // Their ends came before the source was told of them, so it watches them still.
    for (const id of ended) this.changed.add(id);
  }

  private tell(ids: readonly string[]): void {
    for (const id of ids) {
      const job = this.watched.get(id);
      if (job) for (const waiter of [...job.waiters]) waiter.settle(true);
      this.changed.delete(id);
    }
  }

  private failAll(error: unknown): void {
    for (const { waiters } of [...this.watched.values()])
      for (const waiter of [...waiters]) waiter.fail(error);
  }
}
