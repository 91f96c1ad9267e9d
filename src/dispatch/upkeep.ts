import { messageOf } from '../core/errors.js';
import { Loop } from '../core/loop.js';
import { forgetSilentNodes } from '../store/cluster-state.js';
import { makePartitionsAhead, removeOldDays } from '../store/retention.js';
import { addStale, foldTallies, forgetMinutes } from '../store/tallies.js';
import { forgetWorkers } from '../store/workers.js';
import { saveNewestProgress } from './progress.js';
import type { LeaderState } from './state.js';

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;
/** How long dead workers can be looked at. */
const KEEP_DEAD_MS = DAY_MS;
/** Silence after which a node is forgotten; one that lives says so every few seconds. */
const FORGET_NODE_MS = MINUTE_MS;

/** What a leader does by itself: folds counts, keeps partitions, forgets what is old, saves progress. */
export class Upkeep {
  private readonly minute: Loop;
  private readonly second: Loop;
  private readonly stale = new Map<string, { completions: number; failures: number }>();

  constructor(private readonly state: LeaderState) {
    const onError = (loop: string, error: unknown) =>
      state.log.warn({ loop, error: messageOf(error) }, 'upkeep failed');
    this.minute = new Loop({ name: 'upkeep', everyMs: MINUTE_MS, pass: () => this.runOnce(), onError });
    this.second = new Loop({ name: 'save', everyMs: 1_000, pass: () => this.save(), onError });
  }

  start(): void {
    this.minute.start();
    this.second.start();
  }

  async stop(): Promise<void> {
    await Promise.all([this.minute.stop(), this.second.stop()]);
  }

  /** Counts a report that was refused because a newer attempt owns the job. */
  countStale(tenant: string, succeeded: boolean): void {
    const counts = this.stale.get(tenant) ?? { completions: 0, failures: 0 };
    if (succeeded) counts.completions += 1;
    else counts.failures += 1;
    this.stale.set(tenant, counts);
  }

  async runOnce(): Promise<void> {
    const { state } = this;
    const { hot, pool, term, config } = state;
    const now = state.clock.now();
    await state.write(() => foldTallies(hot, term, Math.floor(now / MINUTE_MS) * MINUTE_MS));
    await state.write(() => makePartitionsAhead(pool, term, now));
    const removed = await state.write(() => removeOldDays(pool, term, now - config.historyRetention));
    if (removed > 0) state.log.info({ removed }, 'old days were removed from history');
    await state.write(() => forgetMinutes(hot, term, now - config.historyRetention));
    await state.write(() => forgetWorkers(hot, term, now - KEEP_DEAD_MS, []));
    await forgetSilentNodes(pool, now - FORGET_NODE_MS);
  }

  /** Writes what may lag a second behind: progress of running jobs and counts of stale reports. */
  async save(): Promise<void> {
    const { state } = this;
    await saveNewestProgress(state, state.running.values());
    if (this.stale.size > 0) {
      const counts = [...this.stale].map(([tenant, each]) => ({ tenant, ...each }));
      this.stale.clear();
      await state.write(() => addStale(state.hot, state.term, counts, state.clock.now()));
    }
  }
}
