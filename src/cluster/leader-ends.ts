import { randomUUID } from 'node:crypto';
import { LeaderElsewhere } from './leader-elsewhere.js';
import { type LeaderAddress, LeaderStream, unexpected } from './leader-stream.js';

const CONFIRMED_WITHIN_MS = 2_000;

/** How to reach the leader, and what to call when jobs end. */
interface LeaderEndsOptions extends LeaderAddress {
  readonly onEnded: (ids: readonly string[]) => void;
}

/**
 * A subscription to the ends of a shard's jobs, with its leader on another node. Separate calls add jobs to the
 * subscription and remove them. Each call is confirmed on the stream, so that a dead stream is noticed.
 */
export class LeaderEnds {
  private readonly stream: LeaderStream;
  private readonly confirmations = new Map<number, () => void>();
  private changes = 0;

  private constructor(private readonly options: LeaderEndsOptions) {
    this.stream = new LeaderStream(options, {
      path: `/internal/ends/${randomUUID()}`,
      silenceMs: 0,
      receive: (lines) => {
        for (const line of lines) this.receive(JSON.parse(line) as number | string[]);
      },
    });
  }

  /** Opens a subscription without jobs. */
  static async open(options: LeaderEndsOptions): Promise<LeaderEnds> {
    const ends = new LeaderEnds(options);
    const status = await ends.stream.open();
    // A leader of an older version has no such route: requests that wait are forwarded to it.
    if (status === 404) throw new LeaderElsewhere(options.shard, options.url);
    if (status !== 200) throw unexpected(status);
    return ends;
  }

  /** Aborts when the subscription is closed, by whichever side. */
  get over(): AbortSignal {
    return this.stream.over;
  }

  /** Adds and removes jobs; resolves when the leader has confirmed it on the stream. */
  async change(add: readonly string[], remove: readonly string[]): Promise<void> {
    const change = ++this.changes;
    const confirmed = this.confirmation(change);
    // It may reject while the call is still awaited; that must not count as an unhandled rejection.
    confirmed.catch(() => undefined);
    await this.stream.change({ change, add, remove });
    try {
      await confirmed;
    } catch (error) {
      this.close();
      throw error;
    }
  }

  readonly close = (): void => this.stream.close();

  /** A number confirms a change; a list names jobs that have ended. */
  private receive(message: number | string[]): void {
    if (typeof message === 'number') this.confirmations.get(message)?.();
    else this.options.onEnded(message);
  }

  private confirmation(change: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const settle = (end: () => void) => {
        clearTimeout(timer);
        this.confirmations.delete(change);
        this.over.removeEventListener('abort', failed);
        end();
      };
      const failed = () => settle(() => reject(new Error('the leader does not confirm any more')));
      const timer = setTimeout(failed, CONFIRMED_WITHIN_MS);
      this.over.addEventListener('abort', failed, { once: true });
      this.confirmations.set(change, () => settle(resolve));
    });
  }
}
