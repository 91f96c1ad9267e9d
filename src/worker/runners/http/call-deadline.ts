import { type Deadlines, Timed } from '../../deadlines.js';
import { monotonic } from '../../worker-clock.js';
import type { Stop } from '../runner.js';

/** What a call is waiting for. */
type Phase = 'secrets' | 'turn' | 'answer';

const NOBODY = (): void => undefined;

/**
 * The time that a call has in all: to get its secrets, to wait for its turn, to resolve the name, to connect, to be answered and to
 * read the answer. Whoever waits is let go at the deadline, whether or not what was waited for can be stopped. There is no
 * signal of its own for that, because a call waits for one thing at a time and signals cost more than the rest of the deadline;
 * and no timer of its own, because nearly all calls end long before.
 */
export class CallDeadline extends Timed {
  phase: Phase = 'secrets';
  readonly #deadlines: Deadlines;
  readonly #stop: Stop;
  #listener: (reason: unknown) => void = NOBODY;
  #isEnded = false;
  #isOver = false;
  #reason: unknown;

  constructor(
    readonly ms: number,
    stop: Stop,
    deadlines: Deadlines,
  ) {
    super();
    this.#stop = stop;
    this.#deadlines = deadlines;
    if (stop.isTold) {
      this.#end(stop.reason);
      return;
    }
    this.dueAt = monotonic.now() + ms;
    deadlines.add(this);
    stop.listen((reason) => this.#end(reason));
  }

  /** Whether the call must end. */
  get isEnded(): boolean {
    return this.#isEnded;
  }

  /** Whether that is because the time is up. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** Whether the attempt was told to stop. */
  get isStopped(): boolean {
    return this.#isEnded && !this.#isOver;
  }

  get reason(): unknown {
    return this.#reason;
  }

  /** Calls back when the call must end, at once if it must already. There is one listener: the last. */
  listen(listener: (reason: unknown) => void): void {
    if (this.#isEnded) listener(this.#reason);
    else this.#listener = listener;
  }

  /** What the promise resolves to, unless the call must end before. */
  within<T>(promise: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      this.listen(reject);
      promise.then(resolve, reject);
    });
  }

  expire(): void {
    this.#isOver = !this.#isEnded;
    this.#end(new Error('The time of the call is up.'));
  }

  release(): void {
    this.#listener = NOBODY;
    this.#deadlines.remove(this);
    this.#stop.listen(null);
  }

  #end(reason: unknown): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#reason = reason;
    this.#listener(reason);
  }
}
