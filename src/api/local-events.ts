import { PunctualError } from '../core/errors.js';
import type { EventReceiver, EventSource } from '../core/event-source.js';
import type { Dispatcher } from '../dispatch/dispatcher.js';
import type { Hearing } from '../dispatch/event-recorder.js';

interface Heard {
  readonly hearing: Hearing;
  /** The number of the last event that was passed on. */
  position: number;
}

/** The events of the dispatcher of this node, for as long as its term lasts. */
export class LocalEvents implements EventSource {
  private readonly heard = new Map<string, Heard>();
  private readonly controller = new AbortController();
  private readonly stopListening: () => void;

  constructor(
    private readonly dispatcher: Pick<Dispatcher, 'epoch' | 'events' | 'onOver'>,
    private readonly receiver: EventReceiver,
  ) {
    this.stopListening = dispatcher.onOver(() => this.controller.abort());
  }

  get over(): AbortSignal {
    return this.controller.signal;
  }

  async change(add: readonly string[], remove: readonly string[]): Promise<void> {
    for (const name of remove) {
      this.heard.get(name)?.hearing.stop();
      this.heard.delete(name);
    }
    for (const name of add) if (!this.over.aborted && !this.heard.has(name)) this.begin(name);
  }

  close(): void {
    this.controller.abort();
    this.stopListening();
    for (const { hearing } of this.heard.values()) hearing.stop();
    this.heard.clear();
  }

  private begin(name: string): void {
    try {
      const hearing = this.dispatcher.events.hear(name, () => this.pass(name));
      const { base, last } = hearing.ring;
      this.heard.set(name, { hearing, position: base });
      this.receiver.begin(name, this.dispatcher.epoch, base, last);
      this.pass(name);
    } catch (error) {
      if (!(error instanceof PunctualError)) throw error;
      this.receiver.refuse(name);
    }
  }

  private pass(name: string): void {
    const heard = this.heard.get(name);
    if (!heard || this.over.aborted) return;
    const { ring } = heard.hearing;
    // More may come in one moment than a ring keeps; the receiver notices that numbers are missing.
    const position = Math.max(heard.position, ring.base);
    const entries = ring.after(position)!;
    heard.position = position + entries.length;
    this.receiver.receive(name, position + 1, entries);
  }
}
