import type { RingEntry } from './event-ring.js';

/** Where a node gets events from: the dispatcher in its own process, or a subscription to the leader elsewhere. */
export interface EventSource {
  /** Aborts when nothing more comes from it. */
  readonly over: AbortSignal;
  /** Asks for the events of these rings, and no longer for those of others. */
  change(add: readonly string[], remove: readonly string[]): Promise<void>;
  close(): void;
}

/** What a source tells about the rings that it was asked for. */
export interface EventReceiver {
  /** A ring begins: it knows the events of this term after `base`, and they follow. `last` is the newest of them. */
  begin(ring: string, epoch: number, base: number, last: number): void;
  /** The next events of a ring; `sequence` is the number of the first. */
  receive(ring: string, sequence: number, entries: readonly RingEntry[]): void;
  /** The leader cannot keep another ring. */
  refuse(ring: string): void;
}
