import type { Timer } from '../core/clock.js';
import { messageOf } from '../core/errors.js';
import { Loop } from '../core/loop.js';
import { forgetOccurrences, forgetSchedules } from '../store/occurrences.js';
import { nextFire } from '../store/schedules.js';
import { Altering } from './altering.js';
import { Firing } from './firing.js';
import { InTurn } from './in-turn.js';
import { Judging } from './judging.js';
import type { CancelJob, Leader } from './leader.js';
import { Promoting } from './promoting.js';

/** How often the table is asked although nothing is expected: a timer that was lost costs no more than this. */
const LOOK_EVERY_MS = 30_000;
const FORGET_EVERY_MS = 60_000;

/**
 * Schedules of a shard during one term. Everything that writes about schedules goes through one queue, so that
 * firing and a change by somebody never cross. Memory holds nothing but the time of the next look: what is due
 * is one range of an index, and what was decided is in the ledger.
 */
export class Schedules {
  /** What people do to schedules. */
  readonly altering: Altering;
  private readonly inTurn = new InTurn();
  private readonly firing: Firing;
  private readonly promoting: Promoting;
  private readonly judging: Judging;
  private readonly loops: readonly Loop[];
  private readonly fire: Loop;
  private timer: Timer | undefined;
  private timerAt = Number.POSITIVE_INFINITY;
  private mayPromote = true;
  private lookedAt = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly leader: Leader,
    cancelJob: CancelJob,
  ) {
    this.firing = new Firing(leader, cancelJob);
    this.judging = new Judging(leader);
    this.promoting = new Promoting(leader, this.firing, () => this.lookForWaiting());
    this.altering = new Altering(leader, this.firing, this.inTurn, {
      onFireAt: (at) => this.expect(at),
      onJudgeAt: (at) => this.judging.expect(at),
      onWaiting: () => this.lookForWaiting(),
    });
    const onError = (loop: string, error: unknown) =>
      leader.log.warn({ loop, error: messageOf(error) }, 'schedules could not be served');
    this.fire = new Loop({ name: 'firing', everyMs: LOOK_EVERY_MS, pass: () => this.runOnce(), onError });
    const forget = new Loop({
      name: 'forgetting occurrences',
      everyMs: FORGET_EVERY_MS,
      pass: () => this.forget(),
      onError,
    });
    this.loops = [this.fire, forget];
  }

  start(): void {
    for (const loop of this.loops) loop.start();
    this.judging.start();
  }

  async stop(): Promise<void> {
    this.timer?.cancel();
    await Promise.all([...this.loops.map((loop) => loop.stop()), this.judging.stop()]);
  }

  /** Fires everything that is due, and promotes what has waited long enough. */
  async runOnce(): Promise<void> {
    const { leader } = this;
    for (;;) {
      const fired = await this.inTurn.run(() => this.firing.fireDue());
      if (fired === null) break;
      this.judging.expect(fired.judgeAt);
      if (fired.waiting) this.mayPromote = true;
    }
    const now = leader.clock.steady();
    if (this.mayPromote || now - this.lookedAt >= LOOK_EVERY_MS) {
      this.mayPromote = false;
      this.lookedAt = now;
      this.judging.expect(await this.inTurn.run(() => this.promoting.runOnce()));
    }
    this.expect(await nextFire(leader.hot));
  }

  private lookForWaiting(): void {
    this.mayPromote = true;
    this.fire.wake();
  }

  /** A schedule is to be looked at then. */
  private expect(fireAt: number | null): void {
    if (fireAt === null || fireAt >= this.timerAt) return;
    this.timer?.cancel();
    this.timerAt = fireAt;
    this.timer = this.leader.clock.at(fireAt, () => {
      this.timerAt = Number.POSITIVE_INFINITY;
      this.fire.wake();
    });
  }

  /** Forgets what is older than the ledger is kept. */
  private async forget(): Promise<void> {
    const { leader } = this;
    const oldest = leader.clock.now() - leader.config.ledgerRetention;
    while (await leader.write(() => forgetOccurrences(leader.hot, leader.term, oldest)));
    while (await leader.write(() => forgetSchedules(leader.hot, leader.term, oldest)));
  }
}
