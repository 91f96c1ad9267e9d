import type { Term } from '../cluster/term.js';
import { messageOf } from '../core/errors.js';
import type { Log } from '../core/log.js';
import { Dispatcher, type DispatcherOptions } from '../dispatch/dispatcher.js';
import { noLeader } from '../dispatch/state.js';

/** How long a request waits for a leader before it is told that there is none. */
const PATIENCE_MS = 5_000;

/** Builds a dispatcher for every term and throws it away when the term ends. */
export class Leading {
  private dispatcher: Dispatcher | undefined;
  private waiting: (() => void)[] = [];
  private stopping: Promise<unknown> = Promise.resolve();
  private closed = false;

  constructor(
    private readonly log: Log,
    private readonly optionsFor: (term: Term) => DispatcherOptions,
  ) {}

  /** The dispatcher while this node leads. */
  get current(): Dispatcher | undefined {
    return this.dispatcher;
  }

  begin(term: Term): void {
    const options = this.optionsFor(term);
    const dispatcher = new Dispatcher(options);
    term.onOver((reason) => {
      this.log.info({ epoch: term.epoch, reason }, 'the term is over');
      if (this.dispatcher === dispatcher) this.dispatcher = undefined;
      this.stopping = Promise.all([this.stopping, dispatcher.stop()]);
    });
    dispatcher.start().then(
      () => {
        if (term.over) return;
        this.dispatcher = dispatcher;
        for (const resolve of this.waiting.splice(0)) resolve();
      },
      (error: unknown) => options.renounce(`the term could not begin: ${messageOf(error)}`),
    );
  }

  /** The dispatcher, waiting for it briefly. */
  async get(): Promise<Dispatcher> {
    const deadline = performance.now() + PATIENCE_MS;
    while (!this.dispatcher) {
      const left = deadline - performance.now();
      if (left <= 0 || this.closed) throw noLeader();
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, left);
        this.waiting.push(() => {
          clearTimeout(timer);
          resolve();
        });
      });
    }
    return this.dispatcher;
  }

  /** Nobody waits for a leader any more; resolves when no dispatcher of an ended term does anything. */
  async close(): Promise<void> {
    this.closed = true;
    for (const resolve of this.waiting.splice(0)) resolve();
    await this.stopping;
  }
}
