import type { Clock } from '../core/clock.js';

const FIRST_PAUSE_MS = 5_000;
const LONGEST_PAUSE_MS = 300_000;
/** The most jobs that are remembered; beyond that the oldest are forgotten and tried again. */
const MAX_JOBS = 1_000;

/** Jobs that a pass failed to process, each skipped for a pause that doubles with every failure. */
export class SetAside {
  private readonly jobs = new Map<string, { readonly until: number; readonly pauseMs: number }>();

  constructor(private readonly clock: Pick<Clock, 'steady'>) {}

  add(jobId: string): void {
    const before = this.jobs.get(jobId);
    const pauseMs = before ? Math.min(2 * before.pauseMs, LONGEST_PAUSE_MS) : FIRST_PAUSE_MS;
    this.jobs.delete(jobId);
    this.jobs.set(jobId, { until: this.clock.steady() + pauseMs, pauseMs });
    const [oldest] = this.jobs.keys();
    if (this.jobs.size > MAX_JOBS) this.jobs.delete(oldest!);
  }

  /** The jobs to skip now. */
  current(): string[] {
    const now = this.clock.steady();
    const current: string[] = [];
    for (const [id, { until, pauseMs }] of this.jobs) {
      if (until > now) current.push(id);
      // It has been tried since and did not fail again, or no longer exists.
      else if (until + pauseMs + LONGEST_PAUSE_MS < now) this.jobs.delete(id);
    }
    return current;
  }
}
