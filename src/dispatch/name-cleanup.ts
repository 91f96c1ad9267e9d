import { oldestDay } from '../store/partitions.js';
import {
  BEFORE_ALL_JOBS,
  BEFORE_ALL_NAMES,
  findLiveNames,
  findNamesOf,
  type JobPosition,
  keepNames,
  type LaterNames,
  type NamePair,
  removeNames,
} from '../store/unused-names.js';
import type { LeaderState } from './leader-state.js';

const HOUR_MS = 3_600_000;
/** How often a name in use is put down as such. */
const KEEP_EVERY_MS = 12 * HOUR_MS;
/** What is added to the age of the oldest history: jobs may end long after their names were last put down. */
const MARGIN_MS = 7 * 24 * HOUR_MS;
/** Names that one statement looks at. */
const PAGE = 2_000;
/** Jobs outside the live table whose names are read at once. */
const LATER_PAGE = 10_000;

/** Removes names of queues and needs that no job in any place uses any more; answers how many. */
export async function forgetNames(state: LeaderState): Promise<number> {
  const now = state.clock.now();
  await keepUsed(state, now, now - KEEP_EVERY_MS);
  // Days may stay for longer than the setting says: it was lowered just now, or a reader keeps them from being detached.
  const oldest = Math.min(now - state.config.historyRetention, await oldestDay(state.pool));
  const before = oldest - MARGIN_MS;
  let removed = 0;
  for (const kind of ['queues', 'needs'] as const) {
    for (let after: number | null = 0; after !== null; ) {
      const from: number = after;
      const page = await state.write(() => removeNames(state.hot, state.term, kind, from, before, PAGE));
      removed += page.removed;
      after = page.read < PAGE ? null : page.last;
    }
  }
  return removed;
}

/** The names are read with the deadlines of reads, and written in portions with those of a leader's writes. */
async function keepUsed(state: LeaderState, now: number, since: number): Promise<void> {
  const keep = async (names: readonly NamePair[]) => {
    for (let from = 0; from < names.length; from += PAGE) {
      const portion = names.slice(from, from + PAGE);
      await state.write(() => keepNames(state.hot, state.term, portion, now, since));
    }
  };
  for (let after: NamePair | undefined = BEFORE_ALL_NAMES; after; ) {
    const names: NamePair[] = await findLiveNames(state.pool, after, PAGE);
    await keep(names);
    after = names.length < PAGE ? undefined : names.at(-1);
  }
  for (const place of ['later', 'kept'] as const) {
    for (let after: JobPosition | null = BEFORE_ALL_JOBS; after !== null; ) {
      const { names, last }: LaterNames = await findNamesOf(state.pool, place, after, LATER_PAGE);
      await keep(names);
      after = last;
    }
  }
}
