import type { Queryable } from '../store/database.js';
import type { KeyedJob } from '../store/key-holders.js';
import { type Replacement, renewKeys } from '../store/keys.js';
import type { TermKey } from '../store/leader-statement.js';
import { RolledBackError } from '../store/leader-statement.js';
import { type MovedJob, replaceJobs } from '../store/replace-jobs.js';
import type { LeaderState } from './leader-state.js';

/** A submission that may stand for the job that has its key. */
export interface ReplacingJob extends KeyedJob {
  /** When the job is admitted; null for at once. */
  readonly admitAt: number | null;
}

/** A job is to be replaced whose turn was not taken, because it got its key only just now. Nothing was done. */
export class TurnMissingError extends RolledBackError {
  constructor(readonly missing: readonly Replacement[]) {
    super('a key has passed to another job meanwhile');
    this.name = 'TurnMissingError';
  }
}

/**
 * Gives waiting jobs what newer submissions with their keys say, inside a transaction of the leader that holds their
 * turns; answers with those that are elsewhere than before. Afterwards memory must follow the table.
 */
export async function replaceInTurn(
  db: Queryable,
  term: TermKey,
  replacements: readonly Replacement<ReplacingJob>[],
  hasTurn: (id: string) => boolean,
  now: number,
): Promise<readonly MovedJob[]> {
  if (replacements.length === 0) return [];
  const missing = replacements.filter(({ id }) => !hasTurn(id));
  if (missing.length > 0) throw new TurnMissingError(missing);
  await renewKeys(db, replacements);
  const jobs = replacements.map(({ id, by, held }) => {
    const admitAt = held ? (by.admitAt ?? by.row.definition.run_at) : by.admitAt;
    return { row: { ...by.row, id }, admitAt, held };
  });
  return replaceJobs(db, term, jobs, now);
}

/**
 * Counts replaced jobs that have moved for the quotas of their tenants, and tells those who listen which jobs were replaced. One that
 * was replaced before it was stored is a new job.
 */
export function tellReplaced(
  { events, addedJobs }: LeaderState,
  replacements: readonly Replacement[],
  moved: readonly MovedJob[],
): void {
  for (const { tenant, isLive } of moved) addedJobs.note(tenant, isLive ? 1 : 0, isLive ? 0 : 1);
  if (!events.isHeard) return;
  for (const { id, by, isNew } of replacements)
    if (!isNew) events.changed(by.row.definition.tenant, [id], 'replace');
}
