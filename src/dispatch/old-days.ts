import { firstUuidAt } from '../core/uuid.js';
import { forgetWorkflows } from '../store/forget-workflows.js';
import {
  type JobOfDay,
  type Keeper,
  type KeptTogether,
  keepJobs,
  readJobsOfDay,
  readOlderThan,
  type TimeSpan,
} from '../store/keep-history.js';
import { dayBegin, oldestDay } from '../store/partitions.js';
import { CLOCK_ERROR_MS } from '../store/read-job.js';
import { removeOldDays } from '../store/retention.js';
import type { LeaderState } from './leader-state.js';

/** Workflows or batches that one statement reads, and about how many jobs of theirs are looked for by another. */
const READ_AT_ONCE = 2_000;
const JOBS_LOOKED_FOR = 2_000;
/** The most that one statement moves. */
const MOVED_AT_ONCE = 500;
const BYTES_AT_ONCE = 4_194_304;
const BEFORE_ALL = '00000000-0000-0000-0000-000000000000';

/**
 * Removes days of history that are too old, and keeps workflows and batches together: a job whose workflow or batch has
 * not ended, or ended within the retention, is moved out of its day before that is detached, and leaves with its workflow
 * or batch. Only those that outlast a day cost something.
 *
 * A workflow must not be set going again while jobs of it are being removed, or it would lose results that it needs. So
 * before anything is removed, the cutoff is set while nobody changes workflows; whoever wants to retry one later finds it,
 * and whoever did so before has made it one that has not ended. A crash at any moment leaves every job in exactly one
 * place: the next leader goes on with the days that are still attached.
 */
export class OldDays {
  /** All jobs that ended before this have left their days: what ended before may be forgotten. */
  goneBefore = 0;

  constructor(
    private readonly state: LeaderState,
    private readonly alone: <T>(work: () => Promise<T>) => Promise<T>,
  ) {}

  /** Answers how many tables were dropped. */
  async runOnce(): Promise<number> {
    const { state } = this;
    // Whole days, so that a workflow and its jobs leave together.
    const before = dayBegin(state.clock.now() - state.config.historyRetention);
    const removed = await state.write(() =>
      removeOldDays(state.hot, state.term, before, (day) => this.keepNeeded(day, before)),
    );
    if (removed > 0) state.log.info({ removed }, 'old days were removed from history');
    this.goneBefore = Math.min(before, await oldestDay(state.hot));
    while (await state.write(() => forgetWorkflows(state.hot, state.term, this.goneBefore)));
    return removed;
  }

  /** Moves the jobs of a day that are needed for longer. */
  private async keepNeeded(day: TimeSpan, before: number): Promise<void> {
    await this.alone(async () => {
      this.state.keptSince = Math.max(this.state.keptSince, before);
    });
    let kept = 0;
    for (const keeper of ['workflows', 'batches'] as const) {
      for await (const ids of this.needed(keeper, day, before))
        kept += await this.keepJobsOf(keeper, ids, day);
    }
    if (kept > 0) this.state.log.info({ kept }, 'jobs of workflows and batches were kept beyond their day');
  }

  /** Portions of the ids of those that began before the end of the day and have not ended before the moment. */
  private async *needed(keeper: Keeper, { to }: TimeSpan, before: number): AsyncGenerator<string[]> {
    const below = firstUuidAt(to + CLOCK_ERROR_MS);
    for (let after = BEFORE_ALL; ; ) {
      const page = await readOlderThan(this.state.hot, keeper, after, below, READ_AT_ONCE);
      const needed = page.filter(({ endedAt }) => endedAt === null || endedAt >= before);
      yield* portionsOf(needed, ({ size }) => size, JOBS_LOOKED_FOR, idsOf);
      if (page.length < READ_AT_ONCE || this.state.isOver) return;
      after = page.at(-1)!.id;
    }
  }

  private async keepJobsOf(keeper: Keeper, ids: readonly string[], day: TimeSpan): Promise<number> {
    let kept = 0;
    const jobs = await readJobsOfDay(this.state.hot, keeper, ids, day);
    jobs.sort((a, b) => (a.id < b.id ? -1 : 1));
    for (const portion of portionsOf(
      jobs,
      ({ bytes }) => bytes,
      BYTES_AT_ONCE,
      (some) => some,
    )) {
      for (let from = 0; from < portion.length; from += MOVED_AT_ONCE)
        kept += await this.move(portion.slice(from, from + MOVED_AT_ONCE), day);
    }
    return kept;
  }

  /** In the turns of the jobs, and alone: whoever deletes or retries one looks for it in one table after the other. */
  private move(jobs: readonly JobOfDay[], day: TimeSpan): Promise<number> {
    const { state } = this;
    return this.alone(async () => {
      const held: string[] = [];
      try {
        for (const { id } of jobs) {
          await state.turn(id);
          held.push(id);
        }
        return await state.write(() => keepJobs(state.hot, state.term, jobs, day));
      } finally {
        for (const id of held) state.turns.release(id);
      }
    });
  }
}

function idsOf(some: readonly KeptTogether[]): string[] {
  return some.map(({ id }) => id);
}

/** Splits a list so that the sizes of a portion come to no more than `most`, or it has one item. */
function* portionsOf<T, P>(
  items: readonly T[],
  sizeOf: (item: T) => number,
  most: number,
  made: (portion: T[]) => P,
): Generator<P> {
  let portion: T[] = [];
  let size = 0;
  for (const item of items) {
    if (portion.length > 0 && size + sizeOf(item) > most) {
      yield made(portion);
      portion = [];
      size = 0;
    }
    portion.push(item);
    size += sizeOf(item);
  }
  if (portion.length > 0) yield made(portion);
}
