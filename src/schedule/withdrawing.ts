import type { ParsedSchedule } from '../core/schedule-definition.js';
import { forgetAhead, readAhead, skipOccurrences } from '../store/change-schedule.js';
import type { Queryable } from '../store/database.js';
import { endWaitingJobs } from '../store/end-waiting-jobs.js';
import { leaderTransaction } from '../store/leader-statement.js';
import type { ScheduleRow } from '../store/schedules.js';
import type { Leader } from './leader.js';
import { dueAt } from './plan-firing.js';

const WITHDRAWN = JSON.stringify({
  code: 'WITHDRAWN',
  message: 'The schedule was changed, paused or deleted before the job was due.',
});

export interface Withdrawal {
  readonly schedule: ScheduleRow;
  readonly parsed: ParsedSchedule;
  readonly now: number;
  /** A changed schedule keeps occurrences whose moment has passed and whose jitter has not. */
  readonly reason: 'changed' | 'paused' | 'deleted';
}

/**
 * Takes back jobs that were made ahead and have not started, and does `work` in the same transaction. Their turns
 * are taken first, so that none can start meanwhile. `work` is told the last occurrence after now that could not
 * be taken back, because somebody had its job start sooner.
 */
export async function withdrawAhead(
  leader: Leader,
  { schedule, parsed, now, reason }: Withdrawal,
  work: (db: Queryable, lastKept: number) => Promise<void>,
): Promise<void> {
  const since = reason === 'changed' ? now : now - parsed.jitterMs;
  const ahead = (await readAhead(leader.hot, schedule.id, since)).filter(
    ({ at }) => reason === 'changed' || dueAt(schedule, parsed, at) > now,
  );
  for (const { job } of ahead) await leader.turn(job);
  let ended = new Set<string>();
  try {
    await leader.write(() =>
      leaderTransaction(leader.hot, leader.term, async (db) => {
        const ends = ahead.map(({ job }) => ({ id: job, state: 'cancelled' as const, error: WITHDRAWN }));
        const gone = [
          ...(await endWaitingJobs(db, leader.term, 'live', ends, now)),
          ...(await endWaitingJobs(db, leader.term, 'later', ends, now)),
        ];
        ended = new Set(gone);
        const withdrawn = ahead.filter(({ job }) => ended.has(job)).map(({ at }) => at);
        const isAhead = (at: number) => at > now;
        await forgetAhead(db, schedule.id, withdrawn.filter(isAhead));
        await skipOccurrences(
          db,
          schedule.id,
          withdrawn.filter((at) => !isAhead(at)),
          reason,
        );
        const kept = ahead.filter(({ job }) => !ended.has(job)).map(({ at }) => at);
        await work(db, Math.max(Number.NEGATIVE_INFINITY, ...kept));
      }),
    );
  } finally {
    for (const { job } of ahead) leader.turns.give(job);
  }
  for (const id of ended) leader.jobEnded(id);
  await leader.follow(ahead.map(({ job }) => job).filter((job) => !ended.has(job)));
}
