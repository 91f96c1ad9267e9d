import { MAX_TIMER_MS } from '../../../core/clock.js';

/** What a call is waiting for. */
type Phase = 'secrets' | 'turn' | 'answer';

const NOBODY = (): void => undefined;

/**
 * The time that a call has in all: to get its secrets, to wait for its turn, to resolve the name, to connect, to be answered and to
 * read the answer. Whoever waits is let go at the deadline, whether or not what was waited for can be stopped. There is no
 * signal of its own for that, because a call waits for one thing at a time and signals cost more than the rest of the deadline.
 */
export class CallDeadline {
  phase: Phase = 'secrets';
  readonly #timer: NodeJS.Timeout;
  readonly #outer: AbortSignal;
  readonly #stop = () => this.#end(this.#outer.reason);
  #listener: (reason: unknown) => void = NOBODY;
  #isEnded = false;
  #isOver = false;
  #reason: unknown;

  /** `outer` aborts when the attempt is told to stop. */
  constructor(
    readonly ms: number,
    outer: AbortSignal,
  ) {
    this.#outer = outer;
    this.#timer = setTimeout(
      () => {
        this.#isOver = !this.#isEnded;
        this.#end(new Error('The time of the call is up.'));
      },
      Math.min(ms, MAX_TIMER_MS),
    );
    if (outer.aborted) this.#stop();
    else outer.addEventListener('abort', this.#stop);
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

  release(): void {
    this.#listener = NOBODY;
    clearTimeout(this.#timer);
    this.#outer.removeEventListener('abort', this.#stop);
  }

  #end(reason: unknown): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#reason = reason;
    this.#listener(reason);
  }
}
