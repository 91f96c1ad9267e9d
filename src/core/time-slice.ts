/**
 * Long work is cut into slices, so that it does not block the event loop for everybody else in the process. All such
 * work shares one budget per iteration of the loop: a hundred large requests at once block it for no longer than one.
 */

/** Items that are worked on between two looks at the clock: a millisecond or so for jobs. */
export const PORTION = 1_000;

/** How long all slices of one iteration together may block the event loop. */
const BUDGET_MS = 8;

/** When the budget of this iteration is used up; zero while nobody has asked in this iteration. */
let budgetEnd = 0;
/** Those who wait for a later iteration, in order. */
const waiting: (() => void)[] = [];
let isScheduled = false;

function schedule(): void {
  if (isScheduled) return;
  isScheduled = true;
  setImmediate(() => {
    isScheduled = false;
    budgetEnd = 0;
    // One continues per iteration, because what each does before it looks at the clock is not bounded by the budget.
    const next = waiting.shift();
    if (waiting.length > 0) schedule();
    next?.();
  });
}

/** Runs work that yields where it can pause, and lets the event loop run when it takes long. */
export async function inSlices<T>(work: Generator<void, T, void>): Promise<T> {
  const slice = new TimeSlice();
  for (;;) {
    const step = work.next();
    if (step.done) return step.value;
    if (slice.isOver) await slice.next();
  }
}

/** Tells long work when to let the event loop run. */
export class TimeSlice {
  /** Whether it is time to call `next`. */
  get isOver(): boolean {
    const now = performance.now();
    if (budgetEnd === 0) {
      budgetEnd = now + BUDGET_MS;
      schedule();
    }
    return now >= budgetEnd;
  }

  /** Lets the event loop run, and waits behind those who called this before. */
  next(): Promise<void> {
    return new Promise((resolve) => {
      waiting.push(resolve);
      schedule();
    });
  }
}
