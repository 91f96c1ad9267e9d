import type { Timer } from '../core/clock.js';
import { messageOf } from '../core/errors.js';
import { Loop } from '../core/loop.js';
import { endWaitingJobs, findExpired, nextExpiry } from '../store/end-waiting-jobs.js';
import type { LeaderState } from './state.js';

const MAX_BATCH = 500;

/** The end of a job that could not start in time. */
export const EXPIRED = JSON.stringify({
  code: 'EXPIRED',
  message: 'The job could not be started before its startBefore.',
});

/** Ends jobs that were not started by their `startBefore`. Asks the database only when one can have passed. */
export class Expiring {
  private readonly loop: Loop;
  private timer: Timer | undefined;
  private timerAt = Number.POSITIVE_INFINITY;

  constructor(private readonly state: LeaderState) {
    this.loop = new Loop({
      name: 'expiring',
      everyMs: 30_000,
      pass: () => this.runOnce(),
      onError: (loop, error) =>
        state.log.warn({ loop, error: messageOf(error) }, 'expired jobs could not be ended'),
    });
  }

  start(): void {
    this.loop.start();
  }

  async stop(): Promise<void> {
    this.timer?.cancel();
    await this.loop.stop();
  }

  wake(): void {
    this.loop.wake();
  }

  /** A job with this last moment to start exists. */
  expect(startBefore: number | null): void {
    if (startBefore === null || startBefore >= this.timerAt) return;
    this.timer?.cancel();
    this.timerAt = startBefore;
    this.timer = this.state.clock.at(startBefore, () => {
      this.timerAt = Number.POSITIVE_INFINITY;
      this.loop.wake();
    });
  }

  async runOnce(): Promise<void> {
    const { state } = this;
    for (;;) {
      const now = state.clock.now();
      const expired = await findExpired(state.hot, now, MAX_BATCH);
      for (const place of ['live', 'later'] as const) {
        const ids = expired.filter((job) => job.later === (place === 'later')).map((job) => job.id);
        await this.end(place, ids, now);
      }
      if (expired.length < MAX_BATCH) break;
    }
    const next = await nextExpiry(state.hot);
    // One whose claim is in flight can lie in the past: give the claim time to end.
    if (next !== null) this.expect(Math.max(next, state.clock.now() + 50));
  }

  private async end(place: 'live' | 'later', ids: readonly string[], now: number): Promise<void> {
    const { state } = this;
    // A job whose claim is in flight may yet start; it is looked at again on the next pass.
    const mine = ids.filter((id) => !state.running.has(id) && state.tryTurn(id));
    if (mine.length === 0) return;
    let ended: readonly string[] = [];
    try {
      const ends = mine.map((id) => ({ id, state: 'failed' as const, error: EXPIRED }));
      ended = await state.write(() => endWaitingJobs(state.hot, state.term, place, ends, now));
    } finally {
      for (const id of mine) state.turns.give(id);
    }
    for (const id of ended) state.jobEnded(id);
    const gone = new Set(ended);
    await state.follow(mine.filter((id) => !gone.has(id)));
  }
}
