import { Loop, logFailure } from '../core/loop.js';
import { Top } from '../core/top.js';
import { addQueueMinute, type QueueMinute } from '../store/queue-minutes.js';
import type { LeaderState } from './leader-state.js';

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;
/** Queues of which a minute is kept; those with the most to do come first. */
const MOST_QUEUES = 1_000;

/**
 * Keeps what every queue did, by the minute. It counts in memory and writes once a minute, and nothing while nothing happens, so
 * that jobs pay nothing for it. What was counted in the minute in which a term ends is lost.
 */
export class QueueMinutes {
  private readonly loop: Loop;

  constructor(private readonly state: LeaderState) {
    let begun = false;
    this.loop = new Loop({
      name: 'minutes of queues',
      everyMs: MINUTE_MS,
      pass: async () => {
        if (begun) await this.runOnce();
        begun = true;
        return MINUTE_MS - (state.clock.now() % MINUTE_MS);
      },
      onError: logFailure(state.log, 'the minutes of queues could not be kept'),
    });
  }

  start(): void {
    this.loop.start();
  }

  stop(): Promise<void> {
    return this.loop.stop();
  }

  /** Writes the minute that has just ended. */
  async runOnce(): Promise<void> {
    const { state } = this;
    const now = state.clock.now();
    const minutes = new Map<number, QueueMinute>();
    const of = (queue: number): QueueMinute => {
      const known = minutes.get(queue) ?? { queue, ended: 0, ready: 0, oldestReadyMs: 0 };
      minutes.set(queue, known);
      return known;
    };
    for (const [queue, ended] of state.shares.takeEnded()) of(queue).ended = ended;
    await state.shares.eachGroup(({ info }, group) => {
      const ready = group.readyCount;
      if (ready === 0) return;
      const minute = of(info.id);
      minute.ready += ready;
      minute.oldestReadyMs = Math.max(minute.oldestReadyMs, now - group.oldestReady);
    });
    if (minutes.size === 0 || state.isOver) return;
    const top = new Top<QueueMinute>(MOST_QUEUES, (a, b) => a.ended + a.ready > b.ended + b.ready);
    for (const minute of minutes.values()) top.add(minute);
    // A little before the end of the minute counts as its end: timers may be early.
    const ended = Math.round(now / MINUTE_MS) * MINUTE_MS - MINUTE_MS;
    await state.write(() => addQueueMinute(state.hot, state.term, ended, now - DAY_MS, top.take()));
  }
}
