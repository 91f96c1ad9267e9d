import { setTimeout as pause } from 'node:timers/promises';
import { type Graph, graphOf } from '../graphs.js';
import type { Ledger } from '../ledger.js';
import { now, ticking } from '../moments.js';
import { mean, spread } from '../statistics.js';
import type { GraphSystem, System } from '../systems/system.js';
import type { GraphTask, SliceResult } from './slice.js';
import { problemsOf } from './throughput.js';

/** What does not end within this time is lost. */
const PATIENCE_MS = 60_000;
/** Submissions of small graphs at once. */
const AT_ONCE = 32;

/** Takes the starts of a slice, and tells when all jobs of a group have started; groups have equal sizes. */
export class GroupStarts {
  /** By number. */
  readonly at: number[] = [];
  readonly #started: number[] = [];
  readonly #waiting = new Map<number, () => void>();

  constructor(
    private readonly ledger: Ledger,
    private readonly size: number,
  ) {}

  start(number: number): void {
    this.at[number] = now();
    this.ledger.start(number);
    const group = Math.floor(number / this.size);
    const started = (this.#started[group] ?? 0) + 1;
    this.#started[group] = started;
    if (started === this.size) this.#waiting.get(group)?.();
  }

  /** Resolves with whether the group has started in time. To be called before it is submitted. */
  async whole(group: number): Promise<boolean> {
    const enough = new AbortController();
    const all = new Promise<boolean>((resolve) => this.#waiting.set(group, () => resolve(true)));
    const late = pause(PATIENCE_MS, false, { signal: enough.signal }).catch(() => false);
    const isWhole = await Promise.race([all, late]);
    enough.abort();
    this.#waiting.delete(group);
    return isWhole;
  }
}

/** How many jobs are submitted together. */
export function groupSize({ graph, graphs }: GraphTask): number {
  return graphs * (graph === null ? 1 : graphOf(graph).length);
}

/** Submits one group of graphs after another in each lane, and lets each come to its end. */
export async function measureGraphs(
  system: GraphSystem,
  ledger: Ledger,
  starts: GroupStarts,
  task: GraphTask,
  progress: (text: string) => void,
): Promise<SliceResult> {
  const graph = task.graph === null ? null : graphOf(task.graph);
  const size = groupSize(task);
  const begin = now();
  const counting = begin + task.warmUpSeconds * 1_000;
  const end = counting + task.seconds * 1_000;
  ledger.begin(begin);
  const stopTelling = ticking(1_000, () => progress(`${ledger.started.toLocaleString('en')} started`));
  let groups = 0;
  const took: number[] = [];
  const lane = async () => {
    while (now() < end) {
      const group = groups++;
      const [at, whole] = [now(), starts.whole(group)];
      await submitGroup(system, graph, group * size, task);
      if (!(await whole)) return;
      took.push(...durations(task, starts, group * size, { size, submittedAt: at, counting }));
    }
  };
  await Promise.all(Array.from({ length: task.lanes }, lane));
  const seconds = (now() - begin) / 1_000;
  stopTelling();
  await system.finish();
  const submitted = groups * size;
  const account = await ledger.account(submitted);
  const perSecond = account.perSecond.slice(task.warmUpSeconds, Math.floor(seconds));
  return {
    ...{ settings: system.settings, submitted, account, perSecond, jobsPerSecond: mean(perSecond) },
    ...(took.length > 0 && { delays: took, spread: spread(took) }),
    problems: [...problemsOf(account), ...(await system.check(submitted))],
  };
}

async function submitGroup(
  system: GraphSystem,
  graph: Graph | null,
  first: number,
  { graphs, way }: GraphTask,
): Promise<void> {
  if (graph === null) return system.submitMany(first, graphs);
  let next = 0;
  const lane = async () => {
    while (next < graphs) await system.submitGraph(graph, first + next++ * graph.length, way);
  };
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, graphs) }, lane));
}

interface Group {
  readonly size: number;
  readonly submittedAt: number;
  /** What is before does not count. */
  readonly counting: number;
}

/** The time of each step after the one before, or of the whole group from its submission to its last start. */
function durations(
  { measure }: GraphTask,
  { at }: GroupStarts,
  first: number,
  { size, submittedAt, counting }: Group,
): number[] {
  const starts = at.slice(first, first + size);
  if (measure === 'step')
    return starts.slice(1).flatMap((start, i) => (starts[i]! >= counting ? [start - starts[i]!] : []));
  return submittedAt >= counting ? [starts.reduce((last, start) => Math.max(last, start)) - submittedAt] : [];
}

/** A system as one that takes graphs. */
export function takesGraphs(system: System): GraphSystem {
  if (!('submitGraph' in system)) throw new Error('This system takes no graphs.');
  return system as GraphSystem;
}
