import type { Clock } from '../core/clock.js';
import { type AttemptFigures, OTHER } from '../core/figures.js';
import { WideHistogram } from '../core/histogram.js';
import { ATTEMPT_OUTCOMES, type AttemptOutcome } from '../core/job.js';
import type { Directory } from './directory.js';
import type { Running } from './running.js';

/** How long a pair of queue and task must be idle before another may take its place. */
const IDLE_MS = 600_000;

/** What is counted of the attempts of one queue and task. */
class Meter {
  readonly waiting = new WideHistogram();
  readonly runTime = new WideHistogram();
  readonly outcomes = Object.fromEntries(ATTEMPT_OUTCOMES.map((outcome) => [outcome, 0])) as Record<
    AttemptOutcome,
    number
  >;
  /** How often it has counted, and how often it had when idle ones were last looked for. */
  uses = 0;
  usesBefore = -1;

  constructor(
    readonly queue: string,
    readonly task: string,
  ) {}

  /** What it has counted by now. */
  figures(): AttemptFigures {
    const { queue, task, outcomes } = this;
    const { waiting, runTime } = this;
    return {
      ...{ queue, task, outcomes: { ...outcomes } },
      waiting: { counts: [...waiting.counts], sumMs: waiting.sumMs },
      runTime: { counts: [...runTime.counts], sumMs: runTime.sumMs },
    };
  }
}

/**
 * Counts attempts by queue and task since the term began. The first pairs that come get a meter of their own; when all
 * are taken, those that were idle for a while are given away, and the rest is counted together. Called for every
 * attempt, so it makes no objects and joins no texts.
 */
export class AttemptMeters {
  private readonly other = new Meter(OTHER, OTHER);
  /** By the names of queue and task; tenants share the names. */
  private readonly meters = new Map<string, Map<string, Meter>>();
  private size = 0;
  private lookedAt: number;
  /** The last pair: attempts of one pair mostly come together. */
  private lastQueue = -1;
  private lastNeeds = -1;
  private last: Meter;

  constructor(
    private readonly directory: Pick<Directory, 'queue' | 'needsOf'>,
    private readonly clock: Pick<Clock, 'steady'>,
    private readonly limit: number,
  ) {
    this.lookedAt = clock.steady();
    this.last = this.other;
    this.meters.set(OTHER, new Map([[OTHER, this.other]]));
  }

  /** Counts an attempt that was claimed. */
  claimed(running: Running): void {
    const meter = this.meterOf(running);
    meter.uses += 1;
    meter.waiting.add(Math.max(0, running.claimedAt - running.runAt));
  }

  /** Counts an attempt that has ended. */
  ended(running: Running, outcome: AttemptOutcome, startedAt: number | null, now: number): void {
    const meter = this.meterOf(running);
    meter.uses += 1;
    meter.outcomes[outcome] += 1;
    meter.runTime.add(Math.max(0, now - (startedAt ?? running.claimedAt)));
  }

  /** What was counted so far; `other` comes last. */
  figures(): AttemptFigures[] {
    const all = [...this.meters.values()].flatMap((tasks) => [...tasks.values()]);
    const own = all.filter((meter) => meter !== this.other);
    return (this.other.uses > 0 ? [...own, this.other] : own).map((meter) => meter.figures());
  }

  private meterOf({ queue, needs }: Running): Meter {
    if (queue === this.lastQueue && needs === this.lastNeeds) return this.last;
    const meter = this.find(queue, needs);
    if (meter !== this.other) {
      this.lastQueue = queue;
      this.lastNeeds = needs;
      this.last = meter;
    }
    return meter;
  }

  private find(queueId: number, needsId: number): Meter {
    const queue = this.directory.queue(queueId);
    const needs = this.directory.needsOf(needsId);
    if (!queue || !needs) return this.other;
    const task = needs.target === 'handler' ? needs.handler : needs.target;
    return this.meters.get(queue.name)?.get(task) ?? this.add(queue.name, task);
  }

  private add(queue: string, task: string): Meter {
    if (this.size >= this.limit && !this.forgetIdle()) return this.other;
    const meter = new Meter(queue, task);
    const tasks = this.meters.get(queue);
    if (tasks) tasks.set(task, meter);
    else this.meters.set(queue, new Map([[task, meter]]));
    this.size += 1;
    return meter;
  }

  /** Forgets the meters that have counted nothing since the last look; answers whether there is room now. */
  private forgetIdle(): boolean {
    const now = this.clock.steady();
    if (now - this.lookedAt < IDLE_MS) return false;
    this.lookedAt = now;
    this.lastQueue = -1;
    for (const [queue, tasks] of this.meters) {
      for (const [task, meter] of tasks) {
        const isIdle = meter.uses === meter.usesBefore;
        meter.usesBefore = meter.uses;
        if (!isIdle || meter === this.other) continue;
        tasks.delete(task);
        this.size -= 1;
      }
      if (tasks.size === 0) this.meters.delete(queue);
    }
    return this.size < this.limit;
  }
}
