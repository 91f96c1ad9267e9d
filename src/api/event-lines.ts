import { PunctualError } from '../core/errors.js';
import { dataOf } from '../core/event-ring.js';
import type { Dispatcher } from '../dispatch/dispatcher.js';
import type { Hearing } from '../dispatch/event-recorder.js';
import { noLeader } from '../dispatch/leader-state.js';

/**
 * The lines on which this node, while it leads, tells other nodes what happens. Each other node opens one for all its
 * listeners, and says of which rings it wants the events. `LeaderEvents` reads what is written here.
 */

/** Writes to the other node; a promise means that it should be waited for. */
type Say = (text: string) => Promise<void> | undefined;

/** How much is said of one ring before the next has its turn. */
const PORTION_CHARACTERS = 256 * 1024;

interface Told {
  readonly hearing: Hearing;
  /** The number of the last event that was said. */
  position: number;
}

class EventLine {
  private readonly rings = new Map<string, Told>();
  private saying = false;
  private closed = false;
  readonly over = new AbortController();
  private readonly stopListening: () => void;

  constructor(
    private readonly dispatcher: Dispatcher,
    private readonly say: Say,
  ) {
    this.stopListening = dispatcher.onOver(() => this.over.abort());
  }

  change(add: readonly string[], remove: readonly string[]): void {
    for (const name of remove) {
      this.rings.get(name)?.hearing.stop();
      this.rings.delete(name);
    }
    for (const name of add) if (!this.over.signal.aborted && !this.rings.has(name)) this.begin(name);
    void this.sayNews();
  }

  close(): void {
    this.closed = true;
    this.stopListening();
    for (const { hearing } of this.rings.values()) hearing.stop();
    this.rings.clear();
  }

  private begin(name: string): void {
    try {
      const hearing = this.dispatcher.events.hear(name, () => void this.sayNews());
      this.rings.set(name, { hearing, position: hearing.ring.base });
      const { base, last } = hearing.ring;
      void this.say(`S ${name} ${this.dispatcher.epoch} ${base} ${last}\n`);
    } catch (error) {
      if (!(error instanceof PunctualError)) throw error;
      void this.say(`X ${name}\n`);
    }
  }

  /**
   * Says what is new, as fast as the other node reads. If a ring forgets events before they were said, the other node
   * notices that numbers are missing.
   */
  private async sayNews(): Promise<void> {
    if (this.saying) return;
    this.saying = true;
    for (let said = true; said && !this.closed; ) {
      said = false;
      for (const [name, told] of this.rings) {
        const { ring } = told.hearing;
        const position = Math.max(told.position, ring.base);
        const entries = ring.after(position, PORTION_CHARACTERS)!;
        if (entries.length === 0) continue;
        told.position = position + entries.length;
        said = true;
        const lines = entries.map((entry, i) => `E ${name} ${position + 1 + i} ${dataOf(entry)}\n`);
        await this.say(lines.join(''));
        if (this.closed) break;
      }
    }
    this.saying = false;
  }
}

export class EventLines {
  private readonly lines = new Map<string, EventLine>();

  constructor(private readonly leader: () => Dispatcher | undefined) {}

  /** How many other nodes listen. */
  get size(): number {
    return this.lines.size;
  }

  /** Opens a line; answers with what aborts when there is no more to come. */
  open(id: string, say: Say): AbortSignal {
    const dispatcher = this.leader();
    if (!dispatcher) throw noLeader();
    const line = new EventLine(dispatcher, say);
    this.lines.set(id, line);
    return line.over.signal;
  }

  /** Changes of which rings a line tells. */
  change(id: string, add: readonly string[], remove: readonly string[]): void {
    const line = this.lines.get(id);
    if (!line) throw noLeader();
    line.change(add, remove);
  }

  /** Forgets a line. */
  close(id: string): void {
    this.lines.get(id)?.close();
    this.lines.delete(id);
  }
}
