import type { AttemptOutcome } from './job.js';

/** What a leader knows and no other node does, for metrics. The other nodes ask it for that. */
export interface Figures {
  readonly totals: TotalFigures;
  /** The queues with the most to do, and one called `other` for the rest. */
  readonly queues: readonly QueueFigures[];
  readonly attempts: readonly AttemptFigures[];
  readonly workflows?: WorkflowFigures | undefined;
}

/** What a leader has measured of workflows since its term began. */
export interface WorkflowFigures {
  /** From the submission to the end. */
  readonly time: HistogramFigures;
  /** From the end of a step until one that waited for it was released. */
  readonly release: HistogramFigures;
}

/** The name under which metrics count everything beyond the names that they may show. */
export const OTHER = 'other';

/** The figures of a whole shard. */
export interface TotalFigures {
  readonly running: number;
  readonly waiting: number;
  readonly ready: number;
  /** Ready jobs that no worker has served for a while. */
  readonly unserved: number;
  readonly workers: number;
  readonly slots: number;
  /** Batches in memory that wait, and that run. */
  readonly batchesWaiting: number;
  readonly batchesRunning: number;
  /** Slots that are kept for waiting batches, as far as they are free. */
  readonly slotsKept: number;
  /** Ended steps in memory that are not counted yet. */
  readonly endsPending: number;
  /** Origins of http targets whose circuit is open, and that are paused. */
  readonly originsOpen: number;
  readonly originsPaused: number;
}

/** The figures of the queues of one name. */
export interface QueueFigures {
  readonly queue: string;
  readonly ready: number;
  readonly running: number;
  readonly unserved: number;
  /** How long its job that starts next has been due; of several kinds of jobs, the longest. */
  readonly oldestReadyMs: number;
}

/** Counts in wide buckets, and the sum of what was counted. */
export interface HistogramFigures {
  readonly counts: readonly number[];
  readonly sumMs: number;
}

/** The attempts of one queue and one task, since the leader's term began. */
export interface AttemptFigures {
  readonly queue: string;
  readonly task: string;
  /** From when the attempt was due until it was claimed. */
  readonly waiting: HistogramFigures;
  /** From when the attempt started until it ended. */
  readonly runTime: HistogramFigures;
  readonly outcomes: Readonly<Record<AttemptOutcome, number>>;
}

/** Adds up the figures of several shards. */
export function mergeFigures(all: readonly Figures[]): Figures {
  const [first, ...rest] = all;
  if (!first || rest.length === 0) return first ?? NO_FIGURES;
  return rest.reduce(
    (sum, each) => ({
      totals: addNumbers(sum.totals, each.totals),
      queues: mergeBy([...sum.queues, ...each.queues], ({ queue }) => queue, addQueues),
      attempts: mergeBy(
        [...sum.attempts, ...each.attempts],
        ({ queue, task }) => JSON.stringify([queue, task]),
        addAttempts,
      ),
      workflows: addWorkflows(sum.workflows, each.workflows),
    }),
    first,
  );
}

const NO_FIGURES: Figures = {
  totals: {
    ...{ running: 0, waiting: 0, ready: 0, unserved: 0, workers: 0, slots: 0 },
    ...{ batchesWaiting: 0, batchesRunning: 0, slotsKept: 0, endsPending: 0 },
    ...{ originsOpen: 0, originsPaused: 0 },
  },
  queues: [],
  attempts: [],
};

/** The figures of two queues as one. */
export function addQueues(a: QueueFigures, b: QueueFigures): QueueFigures {
  return {
    queue: a.queue,
    ready: a.ready + b.ready,
    running: a.running + b.running,
    unserved: a.unserved + b.unserved,
    oldestReadyMs: Math.max(a.oldestReadyMs, b.oldestReadyMs),
  };
}

function addAttempts(a: AttemptFigures, b: AttemptFigures): AttemptFigures {
  return {
    ...a,
    waiting: addHistograms(a.waiting, b.waiting),
    runTime: addHistograms(a.runTime, b.runTime),
    outcomes: addNumbers(a.outcomes, b.outcomes),
  };
}

function addWorkflows(
  a: WorkflowFigures | undefined,
  b: WorkflowFigures | undefined,
): WorkflowFigures | undefined {
  if (!a || !b) return a ?? b;
  return { time: addHistograms(a.time, b.time), release: addHistograms(a.release, b.release) };
}

function addHistograms(a: HistogramFigures, b: HistogramFigures): HistogramFigures {
  return {
    counts: a.counts.map((count, bucket) => count + (b.counts[bucket] ?? 0)),
    sumMs: a.sumMs + b.sumMs,
  };
}

function addNumbers<T extends object>(a: T, b: T): T {
  const sums = Object.entries(a).map(([name, value]) => [name, value + (b as Record<string, number>)[name]!]);
  return Object.fromEntries(sums) as T;
}

function mergeBy<T>(items: readonly T[], keyOf: (item: T) => string, add: (a: T, b: T) => T): T[] {
  const merged = new Map<string, T>();
  for (const item of items) {
    const key = keyOf(item);
    const known = merged.get(key);
    merged.set(key, known === undefined ? item : add(known, item));
  }
  return [...merged.values()];
}
