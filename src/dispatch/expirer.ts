import { EarliestTimer } from '../core/clock.js';
import { messageOf } from '../core/errors.js';
import { Loop, logFailure } from '../core/loop.js';
import { Batcher } from '../store/batcher.js';
import { type Expired, endWaitingJobs, findExpired, nextExpiry } from '../store/end-waiting-jobs.js';
import type { LeaderState } from './leader-state.js';
import { SetAside } from './set-aside.js';

/** The largest batch that is ended in one transaction. */
const LIMITS = { items: 500, bytes: 4 * 1024 * 1024 };
/** Jobs of each place that one statement looks for, and the most that one pass may skip. */
const MAX_CANDIDATES = 1_000;
/** When to look again for expired jobs that could not be ended. */
const SOON_MS = 50;
const AFTER_FAILURE_MS = 1_000;

/** The error of a job that could not start in time. */
const EXPIRED = { code: 'EXPIRED', message: 'The job could not be started before its startBefore.' };
const EXPIRED_TEXT = JSON.stringify(EXPIRED);

/** Ends jobs that were not started by their `startBefore`. Asks the database only when one may have passed. */
export class Expirer {
  private readonly loop: Loop;
  private readonly timer: EarliestTimer;
  private readonly batcher = new Batcher<Expired>(LIMITS, (job) => job.bytes);
  private readonly aside: SetAside;

  constructor(private readonly state: LeaderState) {
    this.aside = new SetAside(state.clock);
    this.timer = new EarliestTimer(state.clock, () => this.loop.wake());
    this.loop = new Loop({
      name: 'expiring',
      everyMs: 30_000,
      pass: () => this.runOnce(),
      onError: logFailure(state.log, 'expired jobs could not be ended'),
    });
  }

  start(): void {
    this.loop.start();
  }

  async stop(): Promise<void> {
    this.timer.stop();
    await this.loop.stop();
  }

  wake(): void {
    this.loop.wake();
  }

  /** Notes that a job has this `startBefore`. */
  expect(startBefore: number | null): void {
    this.timer.arm(startBefore);
  }

  async runOnce(): Promise<void> {
    const { state } = this;
    const aside = this.aside.current();
    const skipped = new Set(aside);
    while (skipped.size - aside.length < MAX_CANDIDATES) {
      const now = state.clock.now();
      const expired = await findExpired(state.reads, now, MAX_CANDIDATES, [...skipped]);
      for (const place of ['live', 'later'] as const) {
        await this.batcher.run(
          expired.filter((job) => job.later === (place === 'later')),
          async (jobs) => {
            const ended = await this.end(place, jobs, now);
            for (const { id } of jobs) if (!ended.has(id)) skipped.add(id);
          },
          (job, error) => {
            skipped.add(job.id);
            this.aside.add(job.id);
            state.log.error({ job: job.id, error: messageOf(error) }, 'an expired job cannot be ended');
          },
        );
      }
      if (expired.length < MAX_CANDIDATES) break;
    }
    const next = await nextExpiry(state.reads);
    // It may lie in the past if the claim of that job is in flight; the pause gives the claim time to end.
    const pause = aside.length > 0 ? AFTER_FAILURE_MS : SOON_MS;
    if (next !== null) this.expect(Math.max(next, state.clock.now() + pause));
  }

  /** Ends the jobs whose turn is free; answers with the ids of those that it ended. */
  private async end(
    place: 'live' | 'later',
    jobs: readonly Expired[],
    now: number,
  ): Promise<ReadonlySet<string>> {
    const { state } = this;
    // A job whose claim is in flight may still start; the next pass looks at it again.
    const mine = jobs.map((job) => job.id).filter((id) => !state.running.has(id) && state.tryTurn(id));
    if (mine.length === 0) return new Set();
    let ended: ReadonlySet<string> = new Set();
    try {
      const ends = mine.map((id) => ({ id, state: 'failed' as const, error: EXPIRED_TEXT }));
      const gone = await state.writeEnds(() => endWaitingJobs(state.hot, state.term, place, ends, now));
      ended = new Set(gone.map(({ id }) => id));
      for (const job of gone) state.failures.failed(job, EXPIRED);
    } finally {
      for (const id of mine) state.turns.release(id);
      // Also after a failure, because taking the turn removed the job from the backlog.
      await state.follow(mine.filter((id) => !ended.has(id)));
    }
    return ended;
  }
}
