import { EarliestTimer } from '../core/clock.js';
import { Loop, logFailure } from '../core/loop.js';
import { SerialQueue } from '../core/serial-queue.js';
import type { AppliedSchedules, ScheduleInput } from '../core/wire.js';
import { forgetOccurrences, forgetSchedules } from '../store/occurrences.js';
import { nextFire } from '../store/schedules.js';
import { LatenessCheck } from './lateness-check.js';
import { applySchedules, type Owner } from './managed-schedules.js';
import { OccurrenceFirer } from './occurrence-firer.js';
import { OverlapQueue } from './overlap-queue.js';
import { ScheduleChanges } from './schedule-changes.js';
import type { RunControl, ScheduleLeader } from './schedule-leader.js';

/** How often the table is read although nothing is expected, in case a timer was lost. */
const LOOK_EVERY_MS = 30_000;
const FORGET_EVERY_MS = 60_000;

/**
 * The schedules of a shard during one term. Everything that writes about schedules goes through one serial queue, so
 * that firing and a user's change never interleave. Memory holds only the moment of the next pass: what is due is one
 * range of an index, and what was decided is in the ledger.
 */
export class Schedules {
  /** What users do to schedules. */
  readonly changes: ScheduleChanges;
  private readonly writes = new SerialQueue();
  private readonly firer: OccurrenceFirer;
  private readonly overlapQueue: OverlapQueue;
  private readonly lateness: LatenessCheck;
  private readonly loops: readonly Loop[];
  private readonly fire: Loop;
  private readonly fireTimer: EarliestTimer;
  private waitingMayStart = true;
  private waitingReadAt = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly leader: ScheduleLeader,
    control: RunControl,
  ) {
    this.firer = new OccurrenceFirer(leader, control);
    this.lateness = new LatenessCheck(leader);
    this.overlapQueue = new OverlapQueue(leader, this.firer, () => this.startWaitingSoon());
    this.changes = new ScheduleChanges(leader, this.firer, this.writes, {
      onFireAt: (at) => this.fireTimer.arm(at),
      onLatenessCheckAt: (at) => this.lateness.expect(at),
      onWaiting: () => this.startWaitingSoon(),
    });
    const onError = logFailure(leader.log, 'schedules could not be served');
    this.fire = new Loop({ name: 'firing', everyMs: LOOK_EVERY_MS, pass: () => this.runOnce(), onError });
    this.fireTimer = new EarliestTimer(leader.clock, () => this.fire.wake());
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
    this.lateness.start();
  }

  async stop(): Promise<void> {
    this.fireTimer.stop();
    await Promise.all([...this.loops.map((loop) => loop.stop()), this.lateness.stop()]);
  }

  /** Fires everything that is due, and starts occurrences whose previous run has ended. */
  async runOnce(): Promise<void> {
    const { leader } = this;
    for (;;) {
      const fired = await this.writes.run(() => this.firer.fireDue());
      if (fired === null) break;
      this.lateness.expect(fired.checkAt);
      if (fired.waiting) this.waitingMayStart = true;
    }
    const now = leader.clock.steady();
    if (this.waitingMayStart || now - this.waitingReadAt >= LOOK_EVERY_MS) {
      this.waitingMayStart = false;
      this.waitingReadAt = now;
      this.lateness.expect(await this.writes.run(() => this.overlapQueue.runOnce()));
    }
    this.fireTimer.arm(await nextFire(leader.hot));
  }

  /** Makes the schedules of a program what its code says, or tells what that would take. */
  manage(
    owner: Owner,
    wanted: readonly ScheduleInput[],
    options: { readonly prune: boolean; readonly dryRun: boolean },
  ): Promise<AppliedSchedules> {
    return applySchedules(this.leader, this.changes, owner, wanted, options);
  }

  private startWaitingSoon(): void {
    this.waitingMayStart = true;
    this.fire.wake();
  }

  /** Removes what is older than the ledger's retention. */
  private async forget(): Promise<void> {
    const { leader } = this;
    const oldest = leader.clock.now() - leader.config.ledgerRetention;
    while (await leader.write(() => forgetOccurrences(leader.hot, leader.term, oldest)));
    while (await leader.write(() => forgetSchedules(leader.hot, leader.term, oldest)));
  }
}
