import {
  BEFORE_ALL_NAMES,
  findLiveNames,
  keepNames,
  keepNamesOfLater,
  type NamePair,
  removeNames,
} from '../store/unused-names.js';
import type { LeaderState } from './leader-state.js';

const HOUR_MS = 3_600_000;
/** How often a name in use is put down as such. */
const KEEP_EVERY_MS = 12 * HOUR_MS;
/** What is added to the retention of history: jobs may end long after their names were last put down. */
const MARGIN_MS = 7 * 24 * HOUR_MS;
/** Names that one statement looks at. */
const PAGE = 2_000;

/** Removes names of queues and needs that no job in any place uses any more; answers how many. */
export async function forgetNames(state: LeaderState): Promise<number> {
  const now = state.clock.now();
  await keepUsed(state, now, now - KEEP_EVERY_MS);
  const before = now - state.config.historyRetention - MARGIN_MS;
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

/** What takes long does so with the deadlines of reads: nothing waits for it, and without it nothing is removed. */
async function keepUsed(state: LeaderState, now: number, since: number): Promise<void> {
  for (let after: NamePair | undefined = BEFORE_ALL_NAMES; after; ) {
    const names: NamePair[] = await findLiveNames(state.pool, after, PAGE);
    if (names.length > 0) await state.write(() => keepNames(state.hot, state.term, names, now, since));
    after = names.length < PAGE ? undefined : names.at(-1);
  }
  await state.write(() => keepNamesOfLater(state.pool, state.term, now, since));
}
