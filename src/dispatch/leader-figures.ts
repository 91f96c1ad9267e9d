import { addQueues, type Figures, OTHER, type QueueFigures } from '../core/figures.js';
import { Recent } from '../core/recent.js';
import { PORTION, TimeSlice } from '../core/time-slice.js';
import { Top } from '../core/top.js';
import type { LeaderState } from './leader-state.js';
import type { QueueShare, SegmentGroup } from './queue-share.js';
import type { UnservedJobs } from './unserved-jobs.js';

/** How old figures may be: whoever looks every few seconds sees no difference. */
export const FIGURES_AGE_MS = 1_000;

/** The figures of one queue while they are added up. */
type Summing = { -readonly [K in keyof QueueFigures]: QueueFigures[K] };

const nothing = (queue: string): Summing => ({ queue, ready: 0, running: 0, unserved: 0, oldestReadyMs: 0 });

/** Queues that need attention come first, then those with the most jobs. */
function comesFirst(a: QueueFigures, b: QueueFigures): boolean {
  if (a.unserved > 0 !== b.unserved > 0) return a.unserved > 0;
  const [jobsOfA, jobsOfB] = [a.ready + a.running, b.ready + b.running];
  return jobsOfA === jobsOfB ? a.queue < b.queue : jobsOfA > jobsOfB;
}

/** The figures that only a leader has. They are read from its memory in time slices: there may be very many queues. */
export class LeaderFigures {
  private readonly recent = new Recent(FIGURES_AGE_MS, () => this.read());

  constructor(
    private readonly state: LeaderState,
    private readonly unserved: UnservedJobs,
  ) {}

  /** The figures of now, or of at most a second ago. */
  get(): Promise<Figures> {
    return this.recent.get();
  }

  private async read(): Promise<Figures> {
    const { state } = this;
    const byName = new Map<string, Summing>();
    const queue = ({ info }: QueueShare): Summing => {
      let sum = byName.get(info.name);
      if (!sum) {
        sum = nothing(info.name);
        byName.set(info.name, sum);
      }
      return sum;
    };
    await state.shares.eachShare((share) => {
      if (share.running > 0) queue(share).running += share.running;
    });
    const now = state.clock.now();
    await state.shares.eachGroup((share, group) => this.addGroup(queue(share), share, group, now));
    const slots = this.countSlots();
    const [queues, all] = await this.first(byName.values());
    const { running, backlog, sessions } = state;
    const { ready, unserved } = all;
    const origins = state.origins.figures();
    return {
      totals: {
        running: running.size,
        waiting: backlog.size,
        ready,
        unserved,
        workers: sessions.size,
        slots,
        batchesWaiting: state.gangs.waitingCount,
        batchesRunning: state.gangs.running.size,
        slotsKept: state.gangs.slotsKept(sessions.values(), state.clock.steady()),
        endsPending: state.workflowMeters.endsPending(),
        originsOpen: origins.open,
        originsPaused: origins.paused,
      },
      queues,
      attempts: state.meters.figures(),
      workflows: state.workflowMeters.figures(),
    };
  }

  private addGroup(sum: Summing, share: QueueShare, group: SegmentGroup, now: number): void {
    const ready = group.readyCount;
    if (ready === 0) return;
    sum.ready += ready;
    if (this.unserved.isUnserved(share, group)) sum.unserved += ready;
    sum.oldestReadyMs = Math.max(sum.oldestReadyMs, now - group.oldestReady);
  }

  private countSlots(): number {
    let slots = 0;
    for (const session of this.state.sessions.values()) if (!session.draining) slots += session.slots;
    return slots;
  }

  /** The queues to be named, with all others as one, and the sum of all. */
  private async first(sums: Iterable<QueueFigures>): Promise<[QueueFigures[], QueueFigures]> {
    const top = new Top<QueueFigures>(this.state.config.metricsLabels, comesFirst);
    const slice = new TimeSlice();
    let all: QueueFigures = nothing(OTHER);
    let other: QueueFigures = nothing(OTHER);
    let seen = 0;
    for (const sum of sums) {
      all = addQueues(all, sum);
      const rest = sum.queue === OTHER ? sum : top.add(sum);
      if (rest) other = addQueues(other, rest);
      seen += 1;
      if (seen % PORTION === 0 && slice.isOver) await slice.next();
    }
    const named = top.take();
    return [other.ready + other.running > 0 ? [...named, other] : named, all];
  }
}
