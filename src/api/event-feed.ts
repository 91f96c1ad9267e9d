import { setMaxListeners } from 'node:events';
import { PunctualError } from '../core/errors.js';
import { EventRing, type RingEntry, type RingLimits } from '../core/event-ring.js';
import { type CompiledFilter, eventId, parseEventId, serverSentEvent } from '../core/events.js';
import { News } from '../core/news.js';
import { noLeader } from '../dispatch/leader-state.js';
import { EventSampler, WINDOW_MS } from './event-sampler.js';
import type { AnswerStream } from './route.js';

/** How long a client is asked to wait before it connects again. */
const RETRY_MS = 1_000;
/** How long a new listener waits for the leader. */
const PATIENCE_MS = 5_000;
/** How much a listener that resumes is sent before it must have read some of it. */
const PORTION_CHARACTERS = 128 * 1024;
const HEARTBEAT = ':\n\n';

/** Why a stream cannot go on where it was. */
type ResetReason = 'new-leader' | 'too-old' | 'gap';

/** What a listener wishes to hear. */
export interface ListenerWish {
  readonly filter: CompiledFilter;
  /** The id of the event after which it resumes; null if it begins. */
  readonly after: string | null;
  /** How many events of a second are told one by one; null for all. */
  readonly sample: number | null;
}

/** Those who wish to hear the same: its text is joined and encoded once. */
interface Group {
  readonly filter: CompiledFilter;
  readonly streams: Set<AnswerStream>;
  /** Null if all events are told. */
  readonly sampler: EventSampler | null;
  /** Ends the window of the sampler. */
  window: NodeJS.Timeout | undefined;
}

const NO_GROUP = { workflow: undefined, batch: undefined };

/** Everybody at this node who listens to the events of one tenant, and the newest of these events. */
export class EventFeed {
  /** Missing until the leader has told where its ring begins. */
  private ring: EventRing | undefined;
  private epoch = 0;
  /** The newest event that the leader had when it began to tell: until it is here, the ring is not all of the leader's. */
  private expected = 0;
  private refused = false;
  private readonly begun = new News();
  private readonly groups = new Map<string, Group>();
  private readonly streams = new Set<AnswerStream>();

  constructor(
    /** The limits of a ring, as they are now. */
    private readonly limits: () => RingLimits,
    /** The most bytes that a listener may have left unread. */
    private readonly mostUnsent: () => number,
    /** Aborts when the node stops. */
    private readonly over: AbortSignal,
  ) {
    setMaxListeners(0, over);
  }

  /** How many listen. */
  get size(): number {
    return this.streams.size;
  }

  /** Tells a listener what it wishes to hear until it has gone. */
  async serve(wish: ListenerWish, stream: AnswerStream): Promise<void> {
    this.streams.add(stream);
    try {
      await this.untilBegun(stream.gone);
      stream.gone.throwIfAborted();
      await this.catchUp(wish, stream);
      await firstAborted(stream.gone, this.over);
    } finally {
      this.streams.delete(stream);
      this.leaveGroup(wish, stream);
    }
  }

  /** The leader's ring begins; where this is not the one that was known, or not all of it, everybody reads anew. */
  begin(epoch: number, base: number, last: number): void {
    const { ring } = this;
    this.refused = false;
    const goesOn = ring && epoch === this.epoch && base <= ring.last && ring.last <= last;
    if (!goesOn) this.restart(epoch, base);
    this.expected = last;
    this.begun.tell();
  }

  receive(sequence: number, entries: readonly RingEntry[]): void {
    if (!this.ring || entries.length === 0) return;
    if (sequence > this.ring.last + 1) this.restart(this.epoch, sequence - 1);
    const { ring } = this;
    // After a subscription was lost and opened again, the leader tells what is known already.
    const fresh = sequence === ring.last + 1 ? entries : entries.slice(ring.last + 1 - sequence);
    const limits = this.limits();
    const wasComplete = this.isComplete;
    for (const entry of fresh) ring.add(entry, limits);
    if (!wasComplete && this.isComplete) this.begun.tell();
    for (const group of this.groups.values()) {
      const text = group.sampler?.take(fresh) ?? joined(fresh, group.filter);
      if (text !== '') this.send(group.streams, text);
      if (group.sampler?.hasBegun) group.window ??= setTimeout(() => this.endWindow(group), WINDOW_MS);
    }
  }

  private endWindow(group: Group): void {
    group.window = undefined;
    const text = group.sampler!.endWindow(eventId(this.epoch, this.ring!.last));
    if (text !== '') this.send(group.streams, text);
  }

  /** The leader keeps no ring for this tenant: those who listen are let go, and told to come again. */
  refuse(): void {
    this.refused = true;
    this.begun.tell();
    for (const { streams } of this.groups.values()) for (const stream of streams) stream.drop();
  }

  /** Shows those who hear nothing that their connection lives. */
  beat(): void {
    for (const { streams } of this.groups.values())
      for (const stream of streams) if (stream.unsent === 0) void stream.write(HEARTBEAT);
  }

  /** Whether there is a ring with all that the leader's had: else a listener would resume too early, or hear what is old. */
  private get isComplete(): boolean {
    return this.ring !== undefined && this.ring.last >= this.expected;
  }

  private async untilBegun(gone: AbortSignal): Promise<void> {
    const deadline = performance.now() + PATIENCE_MS;
    const wake = () => this.begun.tell();
    const signals = [gone, this.over];
    for (const signal of signals) signal.addEventListener('abort', wake, { once: true });
    try {
      while (!this.isComplete && !gone.aborted) {
        if (this.over.aborted) throw noLeader();
        if (this.refused) throw tooManyTenants();
        const patience = deadline - performance.now();
        if (patience <= 0) throw noLeader();
        await this.begun.next(patience);
      }
    } finally {
      for (const signal of signals) signal.removeEventListener('abort', wake);
    }
  }

  /** Sends what the listener has missed, as fast as it reads; then it is told everything together with its group. */
  private async catchUp(wish: ListenerWish, stream: AnswerStream): Promise<void> {
    const { filter, after, sample } = wish;
    // What was missed while the listener was away is one window, however long it was.
    const sampler = sample === null ? null : new EventSampler(filter, sample);
    let ring = this.ring!;
    let { epoch } = this;
    let position = this.resumeAt(after) ?? ring.last;
    void stream.write(`retry: ${RETRY_MS}\n${this.greeting(filter, after)}`);
    while (!stream.gone.aborted) {
      if (this.refused) return stream.drop();
      if (ring !== this.ring) {
        void stream.write(this.restartText(filter, epoch));
        sampler?.forget();
        ring = this.ring!;
        epoch = this.epoch;
        position = ring.last;
      }
      const entries = ring.after(position, PORTION_CHARACTERS);
      if (entries === null) return stream.drop();
      if (entries.length === 0) {
        const sum = sampler?.endWindow(eventId(epoch, position)) ?? '';
        if (sum !== '') void stream.write(sum);
        return this.joinGroup(wish, stream);
      }
      position += entries.length;
      const text = sampler?.take(entries) ?? joined(entries, filter);
      if (text !== '') await stream.write(text);
    }
  }

  /** The number after which to go on; null if that is not possible. */
  private resumeAt(after: string | null): number | null {
    const position = after === null ? null : parseEventId(after);
    if (position === null || position.epoch !== this.epoch) return null;
    return this.ring!.after(position.sequence, 0) === null ? null : position.sequence;
  }

  /** What a stream begins with: `hello` if it begins or goes on where the client says, else `reset`. */
  private greeting(filter: CompiledFilter, after: string | null): string {
    const resumesAt = this.resumeAt(after);
    if (after === null || resumesAt !== null) {
      const id = eventId(this.epoch, resumesAt ?? this.ring!.last);
      const data = { id, resumed: resumesAt !== null };
      return serverSentEvent(id, 'hello', JSON.stringify(data));
    }
    const isNewLeader = parseEventId(after)?.epoch !== this.epoch;
    return this.resetText(filter, isNewLeader ? 'new-leader' : 'too-old', isNewLeader);
  }

  /** Tells that events may be missing, and whether another leader is the reason. */
  private resetText(filter: CompiledFilter, reason: ResetReason, isNewLeader: boolean): string {
    const id = eventId(this.epoch, this.ring!.last);
    const reset = serverSentEvent(id, 'reset', JSON.stringify({ id, reason }));
    const type = 'leader.elected';
    const nothing = {
      ...{ job: undefined, queue: undefined, task: undefined, schedule: undefined },
      ...NO_GROUP,
    };
    if (!isNewLeader || !filter.matches({ type, ...nothing })) return reset;
    const elected = { id, type, at: new Date().toISOString(), epoch: this.epoch };
    return reset + serverSentEvent(id, type, JSON.stringify(elected));
  }

  private restart(epoch: number, base: number): void {
    const before = this.epoch;
    this.epoch = epoch;
    this.ring = new EventRing(base);
    for (const { filter, streams, sampler } of this.groups.values()) {
      sampler?.forget();
      this.send(streams, this.restartText(filter, before));
    }
  }

  /** What a listener is told that has heard events of the epoch `before` from a ring that is no more. */
  private restartText(filter: CompiledFilter, before: number): string {
    const isNewLeader = before !== this.epoch;
    return this.resetText(filter, isNewLeader ? 'new-leader' : 'gap', isNewLeader);
  }

  /** Sends a text to all listeners of a group. One that does not read is dropped and never waited for. */
  private send(streams: ReadonlySet<AnswerStream>, text: string): void {
    const piece = Buffer.from(text);
    const mostUnsent = this.mostUnsent();
    for (const stream of streams) {
      if (stream.unsent > mostUnsent) stream.drop();
      else void stream.write(piece);
    }
  }

  private joinGroup(wish: ListenerWish, stream: AnswerStream): void {
    const { filter, sample } = wish;
    const sampler = sample === null ? null : new EventSampler(filter, sample);
    const group = this.groups.get(keyOf(wish)) ?? { filter, streams: new Set(), sampler, window: undefined };
    group.streams.add(stream);
    this.groups.set(keyOf(wish), group);
  }

  private leaveGroup(wish: ListenerWish, stream: AnswerStream): void {
    const group = this.groups.get(keyOf(wish));
    if (!group?.streams.delete(stream) || group.streams.size > 0) return;
    clearTimeout(group.window);
    this.groups.delete(keyOf(wish));
  }
}

function keyOf({ filter, sample }: ListenerWish): string {
  return sample === null ? filter.key : `${sample} ${filter.key}`;
}

function joined(entries: readonly RingEntry[], filter: CompiledFilter): string {
  let text = '';
  for (const entry of entries) if (filter.matches(entry)) text += entry.text;
  return text;
}

/** Resolves when one of the signals aborts, and leaves no listener behind. */
function firstAborted(...signals: readonly AbortSignal[]): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      for (const signal of signals) signal.removeEventListener('abort', end);
      resolve();
    };
    for (const signal of signals) signal.addEventListener('abort', end);
    if (signals.some((signal) => signal.aborted)) end();
  });
}

function tooManyTenants(): PunctualError {
  const detail = 'The leader keeps events of as many tenants as it can; try again later.';
  return new PunctualError('TOO_MANY_LISTENERS', detail, { retryAfter: 10 });
}
