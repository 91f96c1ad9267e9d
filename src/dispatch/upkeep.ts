import { Loop, logFailure } from '../core/loop.js';
import { saveProgress } from '../store/claims.js';
import { forgetSilentNodes, publishLimits } from '../store/cluster-state.js';
import { forgetOld } from '../store/forget-old.js';
import { makePartitionsAhead } from '../store/retention.js';
import { addStale, foldTallies } from '../store/tallies.js';
import { forgetDeadWorkers } from '../store/workers.js';
import { BEFORE_ALL_VERSIONS, forgetVersions } from '../store/workflow-definitions.js';
import { ArtifactCleanup } from './artifact-cleanup.js';
import type { AuditChain } from './audit-chain.js';
import type { LeaderState } from './leader-state.js';
import { forgetNames } from './name-cleanup.js';
import { OldDays } from './old-days.js';
import type { Running } from './running.js';

const SECOND_MS = 1_000;
const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;
/** How long upkeep waits, so that the first jobs of a term find free connections. */
const AFTER_TAKEOVER_MS = 2_000;
/** How long dead workers are kept for people to see. */
const KEEP_DEAD_MS = DAY_MS;
/** How many dead workers are kept per tenant: one that restarts every few seconds leaves thousands a day. */
const KEEP_DEAD = 1_000;
const FORGET_NAMES_EVERY_MS = 6 * 60 * MINUTE_MS;
/** How long dead nodes are kept for people to see. */
const FORGET_NODE_MS = 10 * MINUTE_MS;

/** Reports that were refused because a newer attempt owns the job. */
interface StaleCounts {
  readonly completions: number;
  readonly failures: number;
}

/**
 * Background work of a leader: folds tallies, makes and removes partitions, deletes old rows, saves progress, publishes
 * its limits. Each has its own loop, so that one that fails does not hold up the others.
 */
export class Upkeep {
  private readonly loops: readonly Loop[];
  private readonly stale = new Map<string, StaleCounts>();
  private readonly oldDays: OldDays;
  readonly artifacts: ArtifactCleanup;
  /** Where the replaced versions of definitions begin that are looked at next. */
  private versions = BEFORE_ALL_VERSIONS;

  constructor(
    private readonly state: LeaderState,
    private readonly audit: AuditChain,
    /** Runs something while nothing else changes workflows. */
    alone: <T>(work: () => Promise<T>) => Promise<T>,
  ) {
    this.oldDays = new OldDays(state, alone);
    this.artifacts = new ArtifactCleanup(state);
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
      every(MINUTE_MS, 'publish limits', () => this.publishLimits(), 0),
      every(MINUTE_MS, 'fold counts', () => this.foldCounts()),
      every(MINUTE_MS, 'make days', () => this.makeDays()),
      // After days were made: no day can be detached while another one is attached.
      every(MINUTE_MS, 'remove days', () => this.removeDays(), 2 * AFTER_TAKEOVER_MS),
      every(MINUTE_MS, 'forget old', () => this.forgetOld()),
      every(MINUTE_MS, 'forget versions', () => this.forgetVersions()),
      every(MINUTE_MS, 'forget artifacts', () => this.artifacts.runOnce()),
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

  private async publishLimits(): Promise<void> {
    const { state } = this;
    const found = await state.write(() => publishLimits(state.hot, state.term, state.config));
    await this.audit.found(found);
  }

  private async makeDays(): Promise<void> {
    const { state } = this;
    await state.write(() => makePartitionsAhead(state.hot, state.term, state.clock.now()));
  }

  /** Batches leave with the jobs of their days. */
  private async removeDays(): Promise<void> {
    if ((await this.oldDays.runOnce()) > 0) await this.forgetOld();
  }

  private async forgetOld(): Promise<void> {
    const { state } = this;
    const answers = state.clock.now() - state.config.idempotencyRetention;
    const before = { minutes: this.oldest, answers, batches: this.oldDays.goneBefore };
    while (await state.write(() => forgetOld(state.hot, state.term, before)));
  }

  /** A page at a time: versions that workflows use are looked at again and again. */
  private async forgetVersions(): Promise<void> {
    const { state, versions } = this;
    const replacedBefore = state.clock.now() - MINUTE_MS;
    const next = await state.write(() => forgetVersions(state.hot, state.term, versions, replacedBefore));
    this.versions = next ?? BEFORE_ALL_VERSIONS;
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

  /** The moment before which history is no longer kept. */
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

/** Writes the progress of those attempts whose newest progress is only in memory. */
export async function saveNewestProgress(state: LeaderState, attempts: Iterable<Running>): Promise<void> {
  const changed = Array.from(attempts).filter((running) => !running.progressSaved);
  if (changed.length === 0) return;
  const saved = changed.map((running) => ({ running, progress: running.progress }));
  const reports = changed.map(({ id, fence, progress }) => ({
    id,
    fence,
    progress: JSON.stringify(progress),
  }));
  await state.write(() => saveProgress(state.hot, state.term, reports));
  // Marked after the write, so that a failed save is repeated, and only if no newer progress came meanwhile.
  for (const { running, progress } of saved) if (running.progress === progress) running.progressSaved = true;
}
