import { earlier } from '../core/clock.js';
import { messageOf } from '../core/errors.js';
import { insertScheduledJobs, startWaiting } from '../store/fire-occurrences.js';
import { leaderTransaction } from '../store/leader-statement.js';
import { toWaiting } from '../store/read-backlog.js';
import { type FirstWaiting, readFirstWaiting } from '../store/read-overlap.js';
import { findSchedule } from '../store/schedules.js';
import type { OccurrenceFirer } from './occurrence-firer.js';
import { dueAt, planJob } from './plan-firing.js';
import { type ScheduleLeader, tellFired } from './schedule-leader.js';

/**
 * Occurrences that wait for the previous job of their schedule (`overlap: queue`). They start one by one, in order,
 * each when the job before it has ended. The ledger says which occurrences wait, so a new leader knows them too; the
 * end of a job only makes the leader look sooner.
 */
export class OverlapQueue {
  private readonly watched = new Set<string>();

  constructor(
    private readonly leader: ScheduleLeader,
    private readonly firer: OccurrenceFirer,
    private readonly onReady: () => void,
  ) {}

  /** Starts the next occurrence of each schedule that may go on; answers when the first lateness check is due. */
  async runOnce(): Promise<number | null> {
    const first = await this.startReady();
    // A job may have ended between the read and the start of the watch, which nobody would report: read again.
    return first.watches ? earlier(first.checkAt, (await this.startReady()).checkAt) : first.checkAt;
  }

  /** `watches` is true when a job is watched that was not watched before. */
  private async startReady(): Promise<{ checkAt: number | null; watches: boolean }> {
    let checkAt: number | null = null;
    let watches = false;
    for (const first of await readFirstWaiting(this.leader.hot)) {
      if (first.ready) checkAt = earlier(checkAt, await this.tryStart(first));
      else if (this.watch(first.lastJob!)) watches = true;
    }
    return { checkAt, watches };
  }

  /** False when the job was watched already. */
  private watch(jobId: string): boolean {
    if (this.watched.has(jobId)) return false;
    this.watched.add(jobId);
    this.leader.onJobEnd(jobId, () => {
      this.watched.delete(jobId);
      this.onReady();
    });
    return true;
  }

  /** A schedule that fails does not stop the others. */
  private async tryStart(first: FirstWaiting): Promise<number | null> {
    try {
      return await this.start(first);
    } catch (error) {
      if (this.leader.isOver) throw error;
      const { tenant, name } = first;
      this.leader.log.error(
        { tenant, schedule: name, error: messageOf(error) },
        'a waiting occurrence cannot start',
      );
      return null;
    }
  }

  private async start({ tenant, name, schedule: id, at }: FirstWaiting): Promise<number | null> {
    const { leader, firer } = this;
    const schedule = await findSchedule(leader.hot, tenant, name);
    // While a schedule is paused none of its occurrences start; those that wait go on when it is resumed.
    if (schedule?.id !== id || schedule.paused) return null;
    const parsed = await firer.parse(schedule);
    const now = leader.clock.now();
    const planned = planJob(parsed, at, dueAt(schedule, parsed, at), now);
    const jobs = await firer.makeJobs([{ schedule, job: planned }]);
    const checkAt = Math.max(now, planned.runAt + parsed.lateAfterMs);
    const started = await leader.write(() =>
      leaderTransaction(leader.hot, leader.term, async (db) => {
        if (!(await startWaiting(db, { schedule: id, at }, planned.id, checkAt))) return false;
        await insertScheduledJobs(db, jobs, now);
        return true;
      }),
    );
    if (!started) return null;
    // Other occurrences may wait for it. The watch begins before the job can start, so that its end is not missed.
    this.watch(planned.id);
    tellFired(leader, jobs);
    await leader.admitNew(jobs.map(({ row }) => toWaiting(row)));
    return checkAt;
  }
}
