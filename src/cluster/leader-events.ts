import { randomUUID } from 'node:crypto';
import { entryOf, type RingEntry } from '../core/event-ring.js';
import type { EventReceiver, EventSource } from '../core/event-source.js';
import { type LeaderAddress, LeaderStream, unexpected } from './leader-stream.js';

/** How often the leader shows that a subscription lives. */
export const EVENTS_HEARTBEAT_MS = 2_000;
/** After this silence the leader counts as lost. */
const SILENCE_MS = 3 * EVENTS_HEARTBEAT_MS;

/** How to reach the leader, and who is told of its events. */
interface LeaderEventsOptions extends LeaderAddress {
  readonly receiver: EventReceiver;
}

/**
 * The one subscription of this node to the events of a shard, with its leader on another node. Separate calls say which
 * rings are wanted. It does not share the connection of `LeaderEnds`: megabytes of events must not delay the news that a
 * job has ended.
 */
export class LeaderEvents implements EventSource {
  private readonly stream: LeaderStream;

  private constructor(private readonly options: LeaderEventsOptions) {
    this.stream = new LeaderStream(options, {
      path: `/internal/events/${randomUUID()}`,
      silenceMs: SILENCE_MS,
      receive: (lines) => this.receive(lines),
    });
  }

  /** Opens a subscription without rings. */
  static async open(options: LeaderEventsOptions): Promise<LeaderEvents> {
    const events = new LeaderEvents(options);
    const status = await events.stream.open();
    if (status !== 200) throw unexpected(status);
    return events;
  }

  /** Aborts when the subscription is closed, by whichever side. */
  get over(): AbortSignal {
    return this.stream.over;
  }

  change(add: readonly string[], remove: readonly string[]): Promise<void> {
    return this.stream.change({ add, remove });
  }

  readonly close = (): void => this.stream.close();

  /** Events of one ring that come together are passed on together. */
  private receive(lines: readonly string[]): void {
    const { receiver } = this.options;
    let name = '';
    let first = 0;
    let entries: RingEntry[] = [];
    const passOn = () => {
      if (entries.length > 0) receiver.receive(name, first, entries);
      entries = [];
    };
    for (const line of lines) {
      const [kind, ring = '', number = '', ...more] = line.split(' ', 5);
      if (kind === 'E') {
        const sequence = Number(number);
        if (ring !== name || sequence !== first + entries.length) passOn();
        if (entries.length === 0) {
          name = ring;
          first = sequence;
        }
        const data = line.slice(4 + ring.length + number.length);
        entries.push(entryOf(data));
        continue;
      }
      passOn();
      if (kind === 'S') receiver.begin(ring, Number(number), Number(more[0]), Number(more[1]));
      else if (kind === 'X') receiver.refuse(ring);
    }
    passOn();
  }
}
