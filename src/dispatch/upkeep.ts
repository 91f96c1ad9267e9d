import { Loop, logFailure } from '../core/loop.js';
import { forgetSilentNodes } from '../store/cluster-state.js';
import { makePartitionsAhead, removeOldDays } from '../store/retention.js';
import { addStale, foldTallies, forgetMinutes } from '../store/tallies.js';
import { forgetDeadWorkers } from '../store/workers.js';
import { forgetNames } from './forgetting-names.js';
import { saveNewestProgress } from './progress.js';
import type { LeaderState } from './state.js';

const SECOND_MS = 1_000;
const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;
/** The first jobs of a term must not wait for connections that upkeep has taken. */
const AFTER_TAKEOVER_MS = 2_000;
/** How long dead workers can be looked at. */
const KEEP_DEAD_MS = DAY_MS;
const FORGET_NAMES_EVERY_MS = 6 * 60 * MINUTE_MS;
/** How many of them per tenant: one that is started again every few seconds leaves thousands in a day. */
const KEEP_DEAD = 1_000;
/** Silence after which a node is forgotten; one that lives says so every few seconds. */
const FORGET_NODE_MS = MINUTE_MS;

/** Reports that were refused because a newer attempt owns the job. */
interface StaleCounts {
  readonly completions: number;
  readonly failures: number;
}

/**
 * What a leader does by itself: folds counts, keeps partitions, forgets what is old, saves progress. Each goes on by
 * itself, so that one that fails keeps no other from its work.
 */
export class Upkeep {
  private readonly loops: readonly Loop[];
  private readonly stale = new Map<string, StaleCounts>();

  constructor(private readonly state: LeaderState) {
    const onError = logFailure(state.log, 'upkeep failed');
    const every = (everyMs: number, name: string, pass: () => Promise<void>, firstMs = AFTER_TAKEOVER_MS) => {
      let begun = false;
      const passLater = async () => {
        if (begun) return pass();
        begun = true;
        return firstMs;
      };
      return new Loop({ name, everyMs, pass: passLater, onError });
    };
    this.loops = [
      every(MINUTE_MS, 'fold counts', () => this.foldCounts()),
      every(MINUTE_MS, 'make days', () => this.makeDays()),
      every(MINUTE_MS, 'remove days', () => this.removeDays()),
      every(MINUTE_MS, 'forget minutes', () => this.forgetMinutes()),
      every(MINUTE_MS, 'forget workers', () => this.forgetWorkers()),
      every(MINUTE_MS, 'forget nodes', () =>
        forgetSilentNodes(state.hot, state.clock.now() - FORGET_NODE_MS),
      ),
      every(FORGET_NAMES_EVERY_MS, 'forget names', () => this.forgetNames(), MINUTE_MS),
      every(SECOND_MS, 'save progress', () => saveNewestProgress(state, state.running.values())),
      every(SECOND_MS, 'save stale counts', () => this.saveStale()),
    ];
  }

  start(): void {
    for (const loop of this.loops) loop.start();
  }

  async stop(): Promise<void> {
    await Promise.all(this.loops.map((loop) => loop.stop()));
  }

  /** Counts a report that was refused because a newer attempt owns the job. */
  countStale(tenant: string, succeeded: boolean): void {
    this.addStale(tenant, { completions: succeeded ? 1 : 0, failures: succeeded ? 0 : 1 });
  }

  private async foldCounts(): Promise<void> {
    const { state } = this;
    const before = Math.floor(state.clock.now() / MINUTE_MS) * MINUTE_MS;
    while (await state.write(() => foldTallies(state.hot, state.term, before)));
  }

  private async makeDays(): Promise<void> {
    const { state } = this;
    await state.write(() => makePartitionsAhead(state.hot, state.term, state.clock.now()));
  }

  private async removeDays(): Promise<void> {
    const { state } = this;
    const removed = await state.write(() => removeOldDays(state.hot, state.term, this.oldest));
    if (removed > 0) state.log.info({ removed }, 'old days were removed from history');
  }

  private async forgetMinutes(): Promise<void> {
    const { state } = this;
    while (await state.write(() => forgetMinutes(state.hot, state.term, this.oldest)));
  }

  private async forgetWorkers(): Promise<void> {
    const { state } = this;
    const seenBefore = state.clock.now() - KEEP_DEAD_MS;
    while (await state.write(() => forgetDeadWorkers(state.hot, state.term, seenBefore, KEEP_DEAD)));
  }

  private async forgetNames(): Promise<void> {
    const removed = await forgetNames(this.state);
    if (removed > 0) this.state.log.info({ removed }, 'names that no job uses any more were removed');
  }

  /** What lies before this moment is no longer kept. */
  private get oldest(): number {
    return this.state.clock.now() - this.state.config.historyRetention;
  }

  private async saveStale(): Promise<void> {
    const { state } = this;
    if (this.stale.size === 0) return;
    const taken = [...this.stale];
    this.stale.clear();
    const counts = taken.map(([tenant, each]) => ({ tenant, ...each }));
    try {
      await state.write(() => addStale(state.hot, state.term, counts, state.clock.now()));
    } catch (error) {
      for (const [tenant, each] of taken) this.addStale(tenant, each);
      throw error;
    }
  }

  private addStale(tenant: string, more: StaleCounts): void {
    const { completions, failures } = this.stale.get(tenant) ?? { completions: 0, failures: 0 };
    this.stale.set(tenant, {
      completions: completions + more.completions,
      failures: failures + more.failures,
    });
  }
}
