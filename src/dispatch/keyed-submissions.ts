import { PunctualError } from '../core/errors.js';
import { mayReplace } from '../core/keys.js';
import type { Keep } from '../store/idempotency.js';
import { findKeyHolders, type Registration, registerKeys } from '../store/keys.js';
import { leaderTransaction } from '../store/leader-statement.js';
import { requireNames } from '../store/names.js';
import {
  type Made,
  type NewJob,
  type Registrations,
  type Submitted,
  storeNew,
} from '../store/submit-jobs.js';
import { takeRoomSoon } from '../store/tenant-usage.js';
import type { LeaderState } from './leader-state.js';
import { replaceInTurn, TurnMissingError, tellReplaced } from './replaced-jobs.js';

/** How often a submission is tried whose key passes to another job while it waits for the turn of the last one. */
const TRIES = 20;

/**
 * Submissions that may change a waiting job, which has the same key. Only the leader changes waiting jobs, and only with
 * their turns taken; new jobs of the same request are stored in the same transaction, so that it is all or nothing.
 */
export class KeyedSubmissions {
  constructor(
    private readonly state: LeaderState,
    private readonly onStartBefore: (at: number | null) => void,
  ) {}

  /** Stores new jobs and replaces waiting ones. */
  async submit(
    jobs: readonly NewJob[],
    made: Made,
    now: number,
    keep?: Keep<Registrations>,
  ): Promise<Submitted> {
    const { state } = this;
    const replacing = jobs.filter((job) => job.row.definition.key !== null && mayReplace(job.keyRule));
    for (let tries = 1; ; tries += 1) {
      const holders = await findKeyHolders(state.hot, replacing);
      try {
        return await this.inTurns(new Set(holders.values()), (hasTurn) =>
          this.write(jobs, made, now, hasTurn, keep),
        );
      } catch (error) {
        if (!(error instanceof TurnMissingError)) throw error;
        if (tries === TRIES) {
          const detail = 'The key passes from job to job too quickly; nothing was stored. Try again.';
          throw new PunctualError('TOO_BUSY', detail, { retryAfter: 1 });
        }
      }
    }
  }

  /**
   * Works with the turns of these jobs taken. They are taken in the order of the ids, so that two submissions that want
   * the same turns do not wait for each other. Nobody else waits for a turn while holding that of a job with a key.
   */
  private async inTurns<T>(
    ids: ReadonlySet<string>,
    work: (hasTurn: (id: string) => boolean) => Promise<T>,
  ): Promise<T> {
    const { state } = this;
    const taken = new Set<string>();
    try {
      for (const id of [...ids].sort()) {
        await state.turn(id);
        taken.add(id);
      }
      return await work((id) => taken.has(id));
    } finally {
      for (const id of taken) state.turns.release(id);
      await state.follow([...taken]);
    }
  }

  private async write(
    jobs: readonly NewJob[],
    made: Made,
    now: number,
    hasTurn: (id: string) => boolean,
    keep: Keep<Registrations> | undefined,
  ): Promise<Submitted> {
    const { state } = this;
    const { registered, replacements, fresh, moved } = await state.write(() =>
      leaderTransaction(state.hot, state.term, async (db) => {
        const registration = await registerKeys(db, jobs, now, made.guard);
        const waiting = registration.replacements.filter(({ isNew }) => !isNew);
        if (waiting.length > 0) await requireNames(db, made.names);
        const moved = await replaceInTurn(db, state.term, waiting, hasTurn, now);
        await keep?.(db, registration.registered);
        const fresh = newJobs(jobs, registration);
        await storeNew(db, fresh, made, now, takeRoomSoon);
        return { ...registration, fresh, moved };
      }),
    );
    for (const { by } of replacements) this.onStartBefore(by.row.definition.start_before);
    tellReplaced(state, replacements, moved);
    return { registered, fresh };
  }
}

/** The jobs to be stored; one whose key comes again in the same request is stored with what was said last. */
function newJobs(jobs: readonly NewJob[], { registered, replacements }: Registration<NewJob>): NewJob[] {
  const replaced = new Map(replacements.map((replacement) => [replacement.id, replacement]));
  return jobs.flatMap((job, i) => {
    const { row } = job;
    if (registered[i]!.id !== row.id) return [];
    const replacement = replaced.get(row.id);
    if (!replacement) return [job];
    const { by, held } = replacement;
    const { created_at, created_by } = row.definition;
    const definition = { ...by.row.definition, created_at, created_by };
    const admitAt = held ? (by.admitAt ?? definition.run_at) : by.admitAt;
    return [{ ...by, row: { ...by.row, id: row.id, definition }, held, admitAt }];
  });
}
