import type { Middleware, MiddlewareContext } from '../core/task.js';

/** How the work that a middleware is wrapped around has ended. */
type Outcome =
  | { readonly kind: 'returned'; readonly value: unknown }
  | { readonly kind: 'threw'; readonly thrown: unknown };

/** Tells a developer about a mistake in a middleware that the worker could make up for. */
export type OnMistake = (message: string) => void;

/**
 * Runs the work inside the middleware, the first outermost. What a middleware returns is the result; if it returns
 * nothing, what `next()` gave stands, be it a result or an error: a forgotten `return` loses no result, and an error
 * that was caught only to be reported is not taken for success.
 */
export function runThrough(
  middleware: readonly Middleware[],
  context: MiddlewareContext,
  work: () => unknown,
  onMistake: OnMistake,
): Promise<unknown> {
  const from = (index: number): Promise<unknown> => {
    const outer = middleware[index];
    if (outer) return runOne(outer, context, () => from(index + 1), onMistake);
    // A handler must not start when its attempt was told to stop while a middleware prepared it.
    context.signal.throwIfAborted();
    return Promise.resolve(work());
  };
  return settled(() => from(0)).then(unwrap);
}

async function runOne(
  middleware: Middleware,
  context: MiddlewareContext,
  work: () => Promise<unknown>,
  onMistake: OnMistake,
): Promise<unknown> {
  let inner: Promise<Outcome> | null = null;
  let given: NextResult | null = null;
  let innerEnded = false;
  let isOver = false;
  const next = (): Promise<unknown> => {
    if (inner !== null) throw new Error(`The middleware ${nameOf(middleware)} called next() twice.`);
    if (isOver) throw new Error(`The middleware ${nameOf(middleware)} called next() after it had ended.`);
    inner = settled(work).then((outcome) => {
      innerEnded = true;
      return outcome;
    });
    given = NextResult.of(inner);
    return given;
  };
  const own = await settled(() => middleware(context, next));
  isOver = true;
  const started = inner as Promise<Outcome> | null;
  const wasAwaited = (given as NextResult | null)?.wasAwaited;
  if (started === null) {
    if (own.kind === 'returned' && own.value === undefined) {
      throw new Error(`The middleware ${nameOf(middleware)} neither called next() nor returned a result.`);
    }
    return unwrap(own);
  }
  if (!innerEnded || !wasAwaited) {
    onMistake(`The middleware ${nameOf(middleware)} did not wait for next(); the worker waits in its place.`);
    // The handler still runs. Ending the attempt now could start the next one beside it.
    const outcome = await started;
    return own.kind === 'threw' || outcome.kind === 'returned' ? resultOf(own, outcome) : unwrap(outcome);
  }
  return resultOf(own, await started);
}

/** What `next()` returns: a promise that knows whether somebody awaits it. */
class NextResult extends Promise<unknown> {
  wasAwaited = false;

  static of(outcome: Promise<Outcome>): NextResult {
    const result = new NextResult((resolve, reject) => {
      void outcome.then((ended) => (ended.kind === 'returned' ? resolve(ended.value) : reject(ended.thrown)));
    });
    // If nobody awaits it, its error is not an unhandled rejection: `runOne` takes the outcome into account.
    Promise.prototype.then.call(result, undefined, () => undefined);
    return result;
  }

  /** Promises that are derived from it are ordinary ones. */
  static override get [Symbol.species](): PromiseConstructor {
    return Promise;
  }

  // biome-ignore lint/suspicious/noThenProperty: `await` calls it, which is what has to be known.
  override then<A = unknown, B = never>(
    onReturned?: ((value: unknown) => A | PromiseLike<A>) | null,
    onThrown?: ((thrown: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    this.wasAwaited = true;
    return super.then(onReturned, onThrown);
  }
}

/** The middleware's own outcome; that of the work if the middleware returned nothing. */
function resultOf(own: Outcome, work: Outcome): unknown {
  return own.kind === 'returned' && own.value === undefined ? unwrap(work) : unwrap(own);
}

/** Calls something that may throw or reject, and resolves with how it ended. */
async function settled(call: () => unknown): Promise<Outcome> {
  try {
    return { kind: 'returned', value: await call() };
  } catch (thrown) {
    return { kind: 'threw', thrown };
  }
}

function unwrap(outcome: Outcome): unknown {
  if (outcome.kind === 'threw') throw outcome.thrown;
  return outcome.value;
}

function nameOf({ name }: Middleware): string {
  return name === '' ? '(without a name)' : name;
}
