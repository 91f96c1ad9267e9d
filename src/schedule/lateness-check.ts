import { EarliestTimer } from '../core/clock.js';
import { Loop, logFailure } from '../core/loop.js';
import { judgeOccurrences, nextJudgement } from '../store/occurrences.js';
import type { ScheduleLeader } from './schedule-leader.js';

const MAX_BATCH = 1_000;
/** Checks are gathered for so long: nobody waits for them, and one statement checks many. */
const GATHER_MS = 2_000;
/** Late occurrences of one pass that are logged one by one. */
const LOGGED = 20;

/** Checks once for each occurrence whether its job started in time; late ones are recorded and logged. */
export class LatenessCheck {
  private readonly loop: Loop;
  private readonly timer: EarliestTimer;

  constructor(private readonly leader: ScheduleLeader) {
    this.loop = new Loop({
      name: 'lateness check',
      everyMs: 60_000,
      pass: () => this.runOnce(),
      onError: logFailure(leader.log, 'the lateness of occurrences could not be checked'),
    });
    this.timer = new EarliestTimer(leader.clock, () => this.loop.wake());
  }

  start(): void {
    this.loop.start();
  }

  async stop(): Promise<void> {
    this.timer.stop();
    await this.loop.stop();
  }

  /** An occurrence is to be checked at this moment. */
  expect(checkAt: number | null): void {
    if (checkAt !== null) this.timer.arm(checkAt + GATHER_MS);
  }

  async runOnce(): Promise<void> {
    const { leader } = this;
    let count = 0;
    for (let more = true; more; ) {
      const now = leader.clock.now();
      const checked = await leader.write(() => judgeOccurrences(leader.hot, leader.term, now, MAX_BATCH));
      for (const { tenant, schedule, at, lateBy, job, state } of checked) {
        if (state !== 'late') continue;
        count += 1;
        const fields = { tenant, schedule, at: new Date(at).toISOString(), lateBy, job };
        if (count <= LOGGED) leader.log.warn(fields, `an occurrence of schedule ${schedule} is late`);
      }
      more = checked.length === MAX_BATCH;
    }
    if (count > LOGGED) leader.log.warn({ count: count - LOGGED }, 'more occurrences are late');
    this.expect(await nextJudgement(leader.hot));
  }
}
