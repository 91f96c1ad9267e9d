import { isEnded } from '../../../src/core/job.js';
import type { Invariant, Seen } from '../checker.js';
import { brokenBy, graceMs, wasClockBack, wasDisturbed } from '../excuses.js';
import type { Effect, JobRecord, Span } from '../history.js';

/** How far the due time and the clock of the run may differ by rounding. */
const ROUNDING_MS = 5;
/** The share of the rate before the faults that counts as all that the cluster can do, as in `it-recovers`. */
const BUSY_SHARE = 0.9;
/** How far the clock of a node may lag that knows the database over a broken link only, and how soon it is right again. */
const CLOCK_LAG_MS = 500;
const CLOCK_MENDS_MS = 5_000;
/** How long a batch may wait beside jobs that start: until it has aged, and for the longest job that then runs. */
const BATCH_PATIENCE_MS = 9_000;

/**
 * Nothing starts early, and nothing waits when nothing is broken and there is capacity. A job that starts later than
 * the bound after it was due and everything had healed is excused only by the backlog before it: the cluster started
 * jobs at its full rate all the while, and none of them had become due so much later that it jumped the queue.
 */
export const invariant: Invariant = {
  name: 'lateness',
  rule: 'A job never starts before it is due, and soon after it is due, all faults around it have healed, and those due before it have started.',
  *check(seen) {
    const bound = graceMs(seen.settings);
    const ordered = orderedDues(seen);
    const starts = new Starts(seen, ordered);
    const broken = seen.faults.flatMap((fault) => brokenBy(fault) ?? []).sort((a, b) => a.from - b.from);
    for (const job of seen.jobs) {
      const first = seen.startsByJob.get(job.id)?.[0];
      const due = dueOf(seen, job, ordered);
      if (!first || !due || seen.replayed.has(job.id)) continue;
      if (first.at < due.earliest - ROUNDING_MS) {
        yield { job: job.id, detail: `started ${Math.round(due.earliest - first.at)} ms before it was due` };
      }
      for (const stretch of stretches(broken, due.latest, first.at)) {
        const detail = tooLong(seen, starts, stretch, bound);
        if (detail === null) continue;
        yield { job: job.id, detail };
        break;
      }
    }
  },
};

/** Why a job should have started in a time in which nothing was broken; null if there is nothing to say. */
function tooLong(seen: Seen, starts: Starts, { from, to }: Span, bound: number): string | null {
  const lateBy = Math.round(to - from);
  if (lateBy <= bound) return null;
  const started = starts.between(from, to);
  const wanted = ((lateBy - bound) / 1_000) * seen.aftermath.rateBefore * BUSY_SHARE;
  if (started < wanted) {
    return `waited ${lateBy} ms longer than it had to, while only ${started} others started and ${Math.round(wanted)} could have`;
  }
  if (starts.latestDueBefore(to) <= from + bound) return null;
  return `waited ${lateBy} ms longer than it had to, while others started that were due long after it`;
}

interface Due {
  /** When it would be due if it was stored as soon as it was sent. */
  readonly ordered: number;
  readonly earliest: number;
  readonly latest: number;
  /** Whether it may start before others that were due earlier. */
  readonly isUrgent: boolean;
}

/** The row of a job that was tried again says when its last attempt was due; only its order knows the first. */
function dueOf(seen: Seen, job: JobRecord, ordered: ReadonlyMap<number, Due>): Due | undefined {
  const order = ordered.get(job.n);
  const { partOf = null, delayMs = 0 } = seen.orderByNumber.get(job.n) ?? {};
  const ready = seen.readyByJob.get(job.id);
  if (ready !== undefined) return dueAfter(seen, ready, delayMs);
  if (partOf === 'batch' && order) return { ...order, latest: order.latest + BATCH_PATIENCE_MS };
  if (job.attempts.length > (isEnded(job.state) && !wasWaitingAgain(job) ? 1 : 0)) return order;
  // A clock that was set back makes a job due before it was ordered, and that is no reason to call it late.
  const latest = Math.max(job.runAt, order?.ordered ?? 0);
  return { ordered: 0, isUrgent: false, ...order, earliest: job.runAt, latest };
}

/** Whether it was cancelled while it waited for another attempt. */
function wasWaitingAgain({ state, attempts }: JobRecord): boolean {
  return state === 'cancelled' && attempts.at(-1)?.outcome !== 'cancelled';
}

/**
 * A step is due when those before it have ended, whenever it was ordered. Its delay is counted by the clock of a node,
 * which lags behind that of the database while answers take long.
 */
function dueAfter(seen: Seen, ready: number, delayMs: number): Due {
  const due = ready + delayMs;
  const time = { from: ready, to: due };
  const lagMs = wasDisturbed(seen, time, CLOCK_MENDS_MS) ? CLOCK_LAG_MS : 0;
  const earliest = wasClockBack(seen, time) ? Number.NEGATIVE_INFINITY : due - lagMs;
  return { ordered: due, earliest, latest: due, isUrgent: false };
}

/** Between which moments each order became due, as its client can tell. */
function orderedDues(seen: Seen): Map<number, Due> {
  const dues = new Map<number, Due>();
  for (const { orders, sentAt, answeredAt } of seen.submissions) {
    for (const { n, delayMs, blocking } of orders) {
      const known = dues.get(n);
      dues.set(n, {
        ordered: Math.min(known?.ordered ?? Number.POSITIVE_INFINITY, sentAt + delayMs),
        earliest: wasClockBack(seen, { from: sentAt, to: answeredAt })
          ? Number.NEGATIVE_INFINITY
          : Math.min(known?.earliest ?? Number.POSITIVE_INFINITY, sentAt + delayMs),
        latest: Math.max(known?.latest ?? 0, answeredAt + delayMs),
        isUrgent: blocking,
      });
    }
  }
  return dues;
}

/**
 * The times between a job's due time and its start in which nothing was broken. A fault excuses the wait until it has
 * healed, but not that the job had waited too long when it came.
 */
function* stretches(broken: readonly Span[], due: number, start: number): Generator<Span> {
  let ready = due;
  for (const { from, to } of broken) {
    if (from > start) break;
    if (to < ready) continue;
    if (from > ready) yield { from: ready, to: from };
    ready = Math.min(to, start);
  }
  yield { from: ready, to: start };
}

/** All starts in order of time, with how far the due times had come at each. */
class Starts {
  readonly #at: number[] = [];
  readonly #latestDue: number[] = [];

  constructor(seen: Seen, ordered: ReadonlyMap<number, Due>) {
    const starts = [...seen.startsByJob.values()].flat().sort((a, b) => a.at - b.at);
    let latest = Number.NEGATIVE_INFINITY;
    for (const start of starts) {
      latest = Math.max(latest, dueOfFirst(seen, ordered, start));
      this.#at.push(start.at);
      this.#latestDue.push(latest);
    }
  }

  /** How many there were from one moment to just before another. */
  between(from: number, to: number): number {
    return Math.max(0, this.#before(to) - this.#before(from));
  }

  /** The latest due time among those that started before a moment. */
  latestDueBefore(moment: number): number {
    return this.#latestDue[this.#before(moment) - 1] ?? Number.NEGATIVE_INFINITY;
  }

  #before(moment: number): number {
    let [low, high] = [0, this.#at.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#at[middle]! < moment) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

/** When a start was due at the earliest, if it was its job's first; attempts after that have times of their own. */
function dueOfFirst(seen: Seen, ordered: ReadonlyMap<number, Due>, start: Effect): number {
  const job = seen.jobById.get(start.job);
  const isFirst = seen.startsByJob.get(start.job)?.[0] === start;
  const due = job && isFirst ? dueOf(seen, job, ordered) : undefined;
  return !due || due.isUrgent ? Number.NEGATIVE_INFINITY : due.earliest;
}
