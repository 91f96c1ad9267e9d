import { EarliestTimer } from '../core/clock.js';
import { messageOf } from '../core/errors.js';
import { addAll } from '../core/long-lists.js';
import { Loop, logFailure } from '../core/loop.js';
import {
  type ArtifactWaiter,
  BEFORE_ALL_AWAITED,
  findArrived,
  findOverdue,
  freeArtifactJobs,
  nextOverdue,
  walkAwaited,
} from '../store/awaited-artifacts.js';
import { Batcher } from '../store/batcher.js';
import { endWaitingJobs } from '../store/end-waiting-jobs.js';
import type { LeaderState } from './leader-state.js';
import { SetAside } from './set-aside.js';

/** How often it looks without being told; while jobs wait for artifacts, the look-back tells it every second. */
const EVERY_MS = 30_000;
/** The largest batch that is freed or ended in one transaction. */
const LIMITS = { items: 500, bytes: 4 * 1024 * 1024 };
/** Jobs that one statement looks for, and the most that one pass may skip. */
const MAX_CANDIDATES = 1_000;
/** Artifacts that one pass looks at without having been told of them: some 30 ms of the database's time. */
const MOST_WALKED = 2_000;
const WALK_EVERY_MS = 1_000;
/** Artifacts that it is told of and remembers; the walk finds the others. */
const MOST_TOLD = 1_000;
/** When to look again for jobs whose turns others had. */
const SOON_MS = 50;

const MISSING = {
  code: 'ARTIFACT_MISSING',
  message: 'The artifact of the job was not uploaded in time, or was removed.',
};
const MISSING_TEXT = JSON.stringify(MISSING);

interface GateParts {
  /** Runs something while nothing else changes workflows. */
  alone<T>(work: () => Promise<T>): Promise<T>;
  /** Told that jobs may be admitted now. */
  onFreed(): void;
}

/** Frees jobs when their artifacts arrive, and fails those that have waited for too long. */
export class ArtifactGate {
  private readonly loop: Loop;
  private readonly timer: EarliestTimer;
  private readonly batcher = new Batcher<ArtifactWaiter>(LIMITS, (job) => job.bytes);
  private readonly aside: SetAside;
  /** Artifacts that are said to have arrived. */
  private told: string[] = [];
  /** Where the walk over all that are awaited goes on. */
  private walked = BEFORE_ALL_AWAITED;
  private walkedAt = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly state: LeaderState,
    private readonly parts: GateParts,
  ) {
    this.aside = new SetAside(state.clock);
    this.timer = new EarliestTimer(state.clock, () => this.loop.wake());
    this.loop = new Loop({
      name: 'artifacts',
      everyMs: EVERY_MS,
      pass: () => this.runOnce(),
      onError: logFailure(state.log, 'jobs that wait for artifacts could not be looked after'),
    });
  }

  start(): void {
    this.loop.start();
  }

  async stop(): Promise<void> {
    this.timer.stop();
    await this.loop.stop();
  }

  /** Looks again, at these artifacts first, because they have arrived. */
  wake(arrived: readonly string[] = []): void {
    this.remember(arrived);
    this.loop.wake();
  }

  /**
   * Looks after jobs that need not wait any more: those of artifacts that it was told of, those that it comes across in its walk over
   * all that are awaited, and those that have waited for too long. Answers with when to look again, if others have their turns.
   */
  async runOnce(): Promise<number> {
    const { state } = this;
    const { told } = this;
    this.told = [];
    const arrived = [...new Set([...told, ...(await this.walk(told.length > 0))])];
    const left = await this.settleThoseOf(arrived);
    if (left > 0) this.remember(arrived);
    const now = state.clock.now();
    const overdue = await this.each(
      (skipped) => findOverdue(state.reads, MAX_CANDIDATES, skipped, now),
      (jobs) => this.fail(jobs),
    );
    const next = await nextOverdue(state.reads);
    if (next !== null && next > now) this.timer.arm(next);
    return left + overdue > 0 ? SOON_MS : EVERY_MS;
  }

  private remember(arrived: readonly string[]): void {
    addAll(this.told, arrived.slice(0, MOST_TOLD - this.told.length));
  }

  /** The artifacts of the next part of the walk that have arrived. Many uploads are no reason to walk more often. */
  private async walk(isTold: boolean): Promise<readonly string[]> {
    const now = performance.now();
    if (isTold && now - this.walkedAt < WALK_EVERY_MS) return [];
    this.walkedAt = now;
    const { arrived, after } = await walkAwaited(this.state.reads, this.walked, MOST_WALKED);
    this.walked = after ?? BEFORE_ALL_AWAITED;
    return arrived;
  }

  private async settleThoseOf(artifacts: readonly string[]): Promise<number> {
    if (artifacts.length === 0) return 0;
    return this.each(
      (skipped) => findArrived(this.state.reads, MAX_CANDIDATES, skipped, artifacts),
      (jobs) => this.settle(jobs),
    );
  }

  /** Does something with all that a look finds, in batches; answers how many were left because others had their turns. */
  private async each(
    find: (skipped: readonly string[]) => Promise<readonly ArtifactWaiter[]>,
    work: (jobs: readonly ArtifactWaiter[]) => Promise<ReadonlySet<string>>,
  ): Promise<number> {
    const { state } = this;
    const aside = this.aside.current();
    const skipped = new Set(aside);
    let left = 0;
    while (skipped.size - aside.length < MAX_CANDIDATES) {
      const found = await find([...skipped]);
      await this.batcher.run(
        found,
        async (jobs) => {
          const done = await work(jobs);
          const others = jobs.filter(({ id }) => !done.has(id));
          left += others.length;
          for (const { id } of others) skipped.add(id);
        },
        (job, error) => {
          skipped.add(job.id);
          this.aside.add(job.id);
          state.log.error(
            { job: job.id, error: messageOf(error) },
            'a job that waits for an artifact cannot be looked after',
          );
        },
      );
      if (found.length < MAX_CANDIDATES) break;
    }
    return left;
  }

  private async settle(jobs: readonly ArtifactWaiter[]): Promise<ReadonlySet<string>> {
    const ready = jobs.filter(({ isReady }) => isReady);
    const gone = jobs.filter(({ isReady }) => !isReady);
    const freed = ready.length === 0 ? [] : await this.free(ready);
    const failed = gone.length === 0 ? [] : await this.fail(gone);
    return new Set([...freed, ...failed]);
  }

  private async free(jobs: readonly ArtifactWaiter[]): Promise<ReadonlySet<string>> {
    const { state } = this;
    const mine = jobs.filter(({ id }) => state.tryTurn(id));
    if (mine.length === 0) return new Set();
    const ids = mine.map(({ id }) => id);
    let freed: ReadonlySet<string> = new Set();
    try {
      freed = await this.parts.alone(() =>
        state.write(() =>
          freeArtifactJobs(state.hot, state.term, ids, state.clock.now(), state.config.laterThreshold),
        ),
      );
    } finally {
      for (const id of ids) state.turns.release(id);
    }
    for (const { id, batch } of mine) if (batch !== null && freed.has(id)) state.gangs.arrived(batch, id);
    if (freed.size > 0) this.parts.onFreed();
    return freed;
  }

  private async fail(jobs: readonly ArtifactWaiter[]): Promise<ReadonlySet<string>> {
    const { state } = this;
    const mine = jobs.map(({ id }) => id).filter((id) => state.tryTurn(id));
    if (mine.length === 0) return new Set();
    try {
      const ends = mine.map((id) => ({ id, state: 'failed' as const, error: MISSING_TEXT }));
      const now = state.clock.now();
      const gone = await state.writeEnds(() => endWaitingJobs(state.hot, state.term, 'later', ends, now));
      for (const job of gone) state.failures.failed(job, MISSING);
      return new Set(gone.map(({ id }) => id));
    } finally {
      for (const id of mine) state.turns.release(id);
    }
  }
}
