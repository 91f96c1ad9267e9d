import type { Timer } from '../core/clock.js';
import { messageOf } from '../core/errors.js';
import { Loop } from '../core/loop.js';
import { judgeOccurrences, nextJudgement } from '../store/occurrences.js';
import type { Leader } from './leader.js';

const MAX_BATCH = 1_000;
/** Judgements are gathered for so long: nobody waits for them, and each asks for the jobs of many. */
const GATHER_MS = 2_000;
/** Late occurrences of one pass that are logged one by one. */
const LOGGED = 20;

/** Finds out about each occurrence, once, whether it started in time; those that did not are counted and logged. */
export class Judging {
  private readonly loop: Loop;
  private timer: Timer | undefined;
  private timerAt = Number.POSITIVE_INFINITY;

  constructor(private readonly leader: Leader) {
    this.loop = new Loop({
      name: 'judging occurrences',
      everyMs: 60_000,
      pass: () => this.runOnce(),
      onError: (loop, error) =>
        leader.log.warn({ loop, error: messageOf(error) }, 'late occurrences could not be counted'),
    });
  }

  start(): void {
    this.loop.start();
  }

  async stop(): Promise<void> {
    this.timer?.cancel();
    await this.loop.stop();
  }

  /** There is an occurrence to be judged at this moment. */
  expect(judgeAt: number | null): void {
    if (judgeAt === null || judgeAt >= this.timerAt) return;
    this.timer?.cancel();
    this.timerAt = judgeAt;
    this.timer = this.leader.clock.at(judgeAt + GATHER_MS, () => {
      this.timerAt = Number.POSITIVE_INFINITY;
      this.loop.wake();
    });
  }

  async runOnce(): Promise<void> {
    const { leader } = this;
    let count = 0;
    for (let more = true; more; ) {
      const now = leader.clock.now();
      const judged = await leader.write(() => judgeOccurrences(leader.hot, leader.term, now, MAX_BATCH));
      for (const { tenant, schedule, at, lateBy, job, state } of judged) {
        if (state !== 'late') continue;
        count += 1;
        const fields = { tenant, schedule, at: new Date(at).toISOString(), lateBy, job };
        if (count <= LOGGED) leader.log.warn(fields, 'an occurrence is late');
      }
      more = judged.length === MAX_BATCH;
    }
    if (count > LOGGED) leader.log.warn({ count: count - LOGGED }, 'more occurrences are late');
    this.expect(await nextJudgement(leader.hot));
  }
}
