import { setTimeout as pause } from 'node:timers/promises';
import { LeaderElsewhere } from '../cluster/leader-elsewhere.js';
import type { Leadership } from '../cluster/leadership.js';
import type { Term } from '../cluster/term.js';
import { messageOf } from '../core/errors.js';
import type { Log } from '../core/log.js';
import { Dispatcher, type DispatcherOptions } from '../dispatch/dispatcher.js';
import { noLeader } from '../dispatch/state.js';

/** How long a request waits for a leader before it is told that there is none. */
const PATIENCE_MS = 5_000;
const LOOK_EVERY_MS = 20;

/** Builds a dispatcher for every term and throws it away when the term ends. */
export class Leading {
  private dispatcher: Dispatcher | undefined;
  private stopping: Promise<unknown> = Promise.resolve();
  private closed = false;

  constructor(
    private readonly log: Log,
    private readonly leadership: () => Leadership,
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
        if (!term.over) this.dispatcher = dispatcher;
      },
      (error: unknown) => options.renounce(`the term could not begin: ${messageOf(error)}`),
    );
  }

  /** The dispatcher of this node, or LeaderElsewhere; waits briefly while nobody leads. */
  async get(): Promise<Dispatcher> {
    const deadline = performance.now() + PATIENCE_MS;
    for (;;) {
      if (this.dispatcher) return this.dispatcher;
      const url = this.leadership().leaderUrl;
      if (url !== null) throw new LeaderElsewhere(url);
      if (this.closed || performance.now() > deadline) throw noLeader();
      await pause(LOOK_EVERY_MS);
    }
  }

  /** Nobody waits for a leader any more; resolves when no dispatcher of an ended term does anything. */
  async close(): Promise<void> {
    this.closed = true;
    await this.stopping;
  }
}
