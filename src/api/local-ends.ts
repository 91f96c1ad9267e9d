import type { Dispatcher } from '../dispatch/dispatcher.js';
import type { EndSource } from './end-watch.js';

/** Tells which jobs end under the dispatcher of this node, for as long as its term lasts. */
export class LocalEnds implements EndSource {
  private readonly listening = new Map<string, () => void>();
  private readonly controller = new AbortController();
  private readonly stopListening: () => void;
  private ended: string[] = [];

  constructor(
    private readonly dispatcher: Dispatcher,
    private readonly onEnded: (ids: readonly string[]) => void,
  ) {
    this.stopListening = dispatcher.onOver(() => this.controller.abort());
  }

  get over(): AbortSignal {
    return this.controller.signal;
  }

  async change(add: readonly string[], remove: readonly string[]): Promise<void> {
    for (const id of add) {
      if (this.over.aborted || this.listening.has(id)) continue;
      this.listening.set(
        id,
        this.dispatcher.onJobEnd(id, () => this.note(id)),
      );
    }
    for (const id of remove) {
      this.listening.get(id)?.();
      this.listening.delete(id);
    }
  }

  close(): void {
    this.controller.abort();
    this.stopListening();
    for (const stop of this.listening.values()) stop();
    this.listening.clear();
  }

  /** Jobs end by the hundred in one statement: those that end together are told together. */
  private note(id: string): void {
    this.listening.delete(id);
    if (this.ended.push(id) > 1) return;
    setImmediate(() => {
      const ended = this.ended;
      this.ended = [];
      if (!this.over.aborted) this.onEnded(ended);
    });
  }
}
