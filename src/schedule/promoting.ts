import { messageOf } from '../core/errors.js';
import { insertScheduledJobs, startWaiting } from '../store/fire-occurrences.js';
import { leaderTransaction } from '../store/leader-statement.js';
import { toWaiting } from '../store/new-waiting.js';
import { type FirstWaiting, readFirstWaiting } from '../store/read-overlap.js';
import { findSchedule } from '../store/schedules.js';
import { earlier, type Firing } from './firing.js';
import type { Leader } from './leader.js';
import { dueAt, planJob } from './plan-firing.js';

/**
 * Occurrences that wait for the job before them get their own when that has ended, in order. That they wait is
 * in the ledger, so every leader knows; the end of a job only makes it look sooner.
 */
export class Promoting {
  private readonly watched = new Set<string>();

  constructor(
    private readonly leader: Leader,
    private readonly firing: Firing,
    private readonly onReady: () => void,
  ) {}

  /** Promotes one occurrence of each schedule that may go on; answers when the first of them is to be judged. */
  async runOnce(): Promise<number | null> {
    const first = await this.promoteReady();
    // A job may have ended after it was looked at and before it was watched; nobody would tell of that one.
    return first.watches ? earlier(first.judgeAt, (await this.promoteReady()).judgeAt) : first.judgeAt;
  }

  private async promoteReady(): Promise<{ judgeAt: number | null; watches: boolean }> {
    let judgeAt: number | null = null;
    let watches = false;
    for (const first of await readFirstWaiting(this.leader.hot)) {
      if (first.ready) judgeAt = earlier(judgeAt, await this.tryPromote(first));
      else if (this.watch(first.lastJob!)) watches = true;
    }
    return { judgeAt, watches };
  }

  /** Answers whether the job was not watched before. */
  private watch(jobId: string): boolean {
    if (this.watched.has(jobId)) return false;
    this.watched.add(jobId);
    this.leader.onJobEnd(jobId, () => {
      this.watched.delete(jobId);
      this.onReady();
    });
    return true;
  }

  /** One schedule that cannot go on keeps no other from it. */
  private async tryPromote(first: FirstWaiting): Promise<number | null> {
    try {
      return await this.promote(first);
    } catch (error) {
      if (this.leader.isOver) throw error;
      const { tenant, name } = first;
      this.leader.log.error(
        { tenant, schedule: name, error: messageOf(error) },
        'a waiting occurrence cannot go on',
      );
      return null;
    }
  }

  private async promote({ tenant, name, schedule: id, at }: FirstWaiting): Promise<number | null> {
    const { leader, firing } = this;
    const schedule = await findSchedule(leader.hot, tenant, name);
    // While a schedule is paused nothing of it starts; what waits goes on when it is resumed.
    if (schedule?.id !== id || schedule.paused) return null;
    const parsed = firing.parsing.parse(schedule);
    const now = leader.clock.now();
    const planned = planJob(parsed, at, dueAt(schedule, parsed, at), now);
    const jobs = await firing.makeJobs([{ schedule, job: planned }]);
    const judgeAt = Math.max(now, planned.runAt + parsed.lateAfterMs);
    const started = await leader.write(() =>
      leaderTransaction(leader.hot, leader.term, async (db) => {
        if (!(await startWaiting(db, { schedule: id, at }, planned.id, judgeAt))) return false;
        await insertScheduledJobs(db, jobs, now);
        return true;
      }),
    );
    if (!started) return null;
    // Others may wait behind it; before it is admitted, so that it cannot have ended unseen.
    this.watch(planned.id);
    await leader.admit(jobs.map(({ row }) => toWaiting(row)));
    return judgeAt;
  }
}
