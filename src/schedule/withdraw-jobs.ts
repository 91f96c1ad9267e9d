import { greatest } from '../core/long-lists.js';
import type { ParsedSchedule } from '../core/schedule-definition.js';
import { forgetAhead, readAhead, readWaitingAhead, skipOccurrences } from '../store/change-schedule.js';
import type { Queryable } from '../store/database.js';
import { endWaitingJobs } from '../store/end-waiting-jobs.js';
import type { EndedJob } from '../store/ended-jobs.js';
import { leaderTransaction } from '../store/leader-statement.js';
import type { ScheduleRow } from '../store/schedules.js';
import { dueAt } from './plan-firing.js';
import type { ScheduleLeader } from './schedule-leader.js';

const WITHDRAWN = JSON.stringify({
  code: 'WITHDRAWN',
  message: 'The schedule was changed, paused or deleted before the job was due.',
});

/** Whose jobs are withdrawn, and why. */
interface Withdrawal {
  readonly schedule: ScheduleRow;
  readonly parsed: Pick<ParsedSchedule, 'jitterMs'>;
  readonly now: number;
  /** A changed schedule keeps occurrences whose moment has passed, even if their jitter has not. */
  readonly reason: 'changed' | 'paused' | 'deleted';
}

/**
 * Withdraws jobs that were made ahead and have not started, and does `work` in the same transaction. It takes their
 * turns first, so that none can start meanwhile. `work` is given the last occurrence whose job has started or ended and
 * so cannot be withdrawn: everything up to it stays decided. After a change, the withdrawable jobs before it run as
 * they were made; after a pause or a deletion they are recorded as skipped.
 */
export async function withdrawJobs(
  leader: ScheduleLeader,
  { schedule, parsed, now, reason }: Withdrawal,
  work: (db: Queryable, lastKept: number) => Promise<void>,
): Promise<void> {
  const since = reason === 'changed' ? now : now - parsed.jitterMs;
  const ahead = (await readAhead(leader.hot, schedule.id, since)).filter(
    ({ at }) => reason === 'changed' || dueAt(schedule, parsed, at) > now,
  );
  const taken: string[] = [];
  let ended: readonly EndedJob[] = [];
  try {
    for (const { job, isJob } of ahead) {
      // Workflows and batches are made when they are due: only a clock that was set back makes one lie ahead, and it runs.
      if (!isJob) continue;
      await leader.turn(job);
      taken.push(job);
    }
    ended = await leader.writeEnds(() =>
      leaderTransaction(leader.hot, leader.term, async (db) => {
        const waiting = await readWaitingAhead(db, taken);
        const kept = ahead.filter(({ job }) => !waiting.has(job)).map(({ at }) => at);
        const lastKept = greatest(kept);
        const withdrawn = ahead.filter(
          ({ at, job }) => waiting.has(job) && (reason !== 'changed' || at > lastKept),
        );
        const ends = withdrawn.map(({ job }) => ({ id: job, state: 'cancelled' as const, error: WITHDRAWN }));
        const gone = [
          ...(await endWaitingJobs(db, leader.term, 'live', ends, now)),
          ...(await endWaitingJobs(db, leader.term, 'later', ends, now)),
        ];
        const undecided = (at: number) => at > Math.max(now, lastKept);
        const ats = withdrawn.map(({ at }) => at);
        await forgetAhead(db, schedule.id, ats.filter(undecided));
        await skipOccurrences(
          db,
          schedule.id,
          ats.filter((at) => !undecided(at)),
          reason,
        );
        await work(db, lastKept);
        return gone;
      }),
    );
  } finally {
    for (const job of taken) leader.turns.release(job);
    const gone = new Set(ended.map(({ id }) => id));
    await leader.follow(taken.filter((job) => !gone.has(job)));
  }
}
