import { earlier } from '../core/clock.js';
import { messageOf } from '../core/errors.js';
import { refuseWaiting, startWaiting } from '../store/fire-occurrences.js';
import { leaderTransaction } from '../store/leader-statement.js';
import { type FirstWaiting, readFirstWaiting } from '../store/read-overlap.js';
import { findSchedule, type ScheduleRow } from '../store/schedules.js';
import type { OccurrenceFirer } from './occurrence-firer.js';
import { dueAt, idsOf, judgeAtOf, planRun } from './plan-firing.js';
import type { ScheduleLeader } from './schedule-leader.js';

/**
 * Occurrences that wait for the previous run of their schedule (`overlap: queue`). They start one by one, in order,
 * each when the run before it has ended: a job, or a whole workflow or batch. The ledger says which occurrences wait, so a
 * new leader knows them too; the end of a run only makes the leader look sooner.
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
      else if (this.watch(first.lastRun!)) watches = true;
    }
    return { checkAt, watches };
  }

  /** False when the run was watched already. */
  private watch(id: string): boolean {
    if (this.watched.has(id)) return false;
    this.watched.add(id);
    this.leader.onJobEnd(id, () => {
      this.watched.delete(id);
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
    const run = await firer.runs.load(tenant, parsed.work);
    const now = leader.clock.now();
    if (run.kind === 'refused') {
      await this.refuse(schedule, at, run.reason, now);
      return null;
    }
    const planned = planRun(run, at, dueAt(schedule, parsed, at), now);
    const ids = idsOf(planned);
    const checkAt = judgeAtOf(parsed, planned, now);
    const stored = await firer.write([{ schedule, planned }], async (db, made) => {
      if (!(await startWaiting(db, { schedule: id, at }, ids, checkAt))) return null;
      return firer.insert(db, made, new Set([planned.id]), now);
    });
    if (!stored) return null;
    // Other occurrences may wait for it. The watch begins before it can start, so that its end is not missed.
    this.watch(planned.runId ?? planned.id);
    await firer.stored(stored);
    return checkAt;
  }

  /** Records why an occurrence gets no run, and goes on with the next one. */
  private async refuse(
    { id, tenant, name }: ScheduleRow,
    at: number,
    reason: string,
    now: number,
  ): Promise<void> {
    const { leader } = this;
    await leader.write(() =>
      leaderTransaction(leader.hot, leader.term, (db) =>
        refuseWaiting(db, { schedule: id, at }, reason, now),
      ),
    );
    if (leader.events.isHeard) leader.events.missed(tenant, name, 1);
    const fields = { tenant, schedule: name, at: new Date(at).toISOString(), reason };
    leader.log.warn(fields, 'a waiting occurrence cannot run');
    this.onReady();
  }
}
