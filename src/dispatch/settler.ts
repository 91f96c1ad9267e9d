import { mayReplace } from '../core/keys.js';
import { endWaitingJobs } from '../store/end-waiting-jobs.js';
import type { KeyedJob } from '../store/key-holders.js';
import { findKeyHolders, type Registered, type Replacement, registerKeys } from '../store/keys.js';
import { leaderTransaction } from '../store/leader-statement.js';
import { parseLater } from '../store/place-jobs.js';
import type { MovedJob } from '../store/replace-jobs.js';
import type { LeaderState } from './leader-state.js';
import { replaceInTurn, TurnMissingError, tellReplaced } from './replaced-jobs.js';
import { CANCELLED, type Raw } from './submission-parser.js';

/** What became of a batch of submissions. */
export interface Settled {
  /** Those to be moved to the live table. */
  readonly ready: readonly string[];
  /** The jobs that took what others said; they are where their new values want them, in the live table if they are due. */
  readonly replaced: readonly string[];
  /** The jobs that were to be replaced while others had their turns. */
  readonly busy: readonly string[];
  /** The submissions that were left as they are because of that. */
  readonly left: readonly string[];
}

/** Nothing to do, or nothing done. */
export const UNSETTLED: Settled = { ready: [], replaced: [], busy: [], left: [] };

/** Decides what becomes of the submissions of callers' transactions once they are committed and parsed. */
export class Settler {
  constructor(
    private readonly state: LeaderState,
    private readonly onStartBefore: (at: number | null) => void,
  ) {}

  /**
   * Registers keys, replaces jobs that have them, ends jobs that cannot run or are surplus, keeps those that are not due.
   * The turns of the jobs to be replaced are needed. The caller has those of its own batch, `mine`; others are taken if
   * they are free. Nobody is waited for, because whoever has such a turn may wait for a job of this batch.
   */
  async settle(raws: readonly Raw[], mine: ReadonlySet<string>): Promise<Settled> {
    const { state } = this;
    const replacing = raws.filter((raw) => raw.refusal === null && replaces(raw));
    if (replacing.length === 0) return this.settleInTurn(raws, mine);
    const holders = await findKeyHolders(state.hot, replacing);
    const wanted = new Set(holders.values());
    const taken = [...wanted].filter((id) => !mine.has(id) && state.tryTurn(id));
    const held = new Set([...mine, ...taken]);
    const busy = new Set([...wanted].filter((id) => !held.has(id)));
    const busyKeys = new Set(replacing.filter((raw) => busy.has(holders.get(raw.id)!)).map(keyOf));
    // All submissions with such a key are left, so that they keep their order; each try leaves more than the last one.
    const isLeft = (raw: Raw) => raw.refusal === null && busyKeys.has(keyOf(raw));
    try {
      for (;;) {
        try {
          const rest = raws.filter((raw) => !isLeft(raw));
          const left = raws.filter(isLeft).map(({ id }) => id);
          return { ...(await this.settleInTurn(rest, held)), busy: [...busy], left };
        } catch (error) {
          if (!(error instanceof TurnMissingError)) throw error;
          for (const { id, by } of error.missing) {
            busy.add(id);
            busyKeys.add(keyOf(by));
          }
        }
      }
    } finally {
      for (const id of taken) state.turns.release(id);
      await state.follow(taken);
    }
  }

  private async settleInTurn(raws: readonly Raw[], held: ReadonlySet<string>): Promise<Settled> {
    if (raws.length === 0) return UNSETTLED;
    const { state } = this;
    const now = state.clock.now();
    let replacements: readonly Replacement<Raw>[] = [];
    let moved: readonly MovedJob[] = [];
    const ended = await state.writeEnds(() =>
      leaderTransaction(state.hot, state.term, async (db) => {
        const valid = raws.filter((raw) => raw.refusal === null).sort(inOrderOfSubmission);
        const registration = await registerKeys(db, valid, now);
        const { registered } = registration;
        replacements = registration.replacements;
        const registeredAs = new Map(valid.map((raw, i) => [raw.id, registered[i]!]));
        await parseLater(
          db,
          state.term,
          raws.map((raw) => ({ row: raw.row, held: raw.held, admitAt: raw.admitAt ?? now })),
        );
        moved = await replaceInTurn(db, state.term, replacements, (id) => held.has(id), now);
        const ends = raws.flatMap((raw) => endOf(raw, registeredAs.get(raw.id)) ?? []);
        return ends.length === 0 ? [] : endWaitingJobs(db, state.term, 'later', ends, now);
      }),
    );
    tellReplaced(state, replacements, moved);
    for (const { id, row, refusal } of raws) {
      const { tenant, task, start_before: startBefore } = row.definition;
      this.onStartBefore(startBefore);
      if (refusal !== null && refusal !== CANCELLED) state.failures.failed({ id, tenant, task }, refusal);
    }
    const replaced = replacements.map(({ id }) => id);
    for (const { row, held, admitAt, refusal } of raws)
      if (refusal === null && (held || admitAt !== null)) state.addedJobs.note(row.definition.tenant, 0, 1);
    const elsewhere = new Set([...replaced, ...ended.map(({ id }) => id)]);
    const isReady = (raw: Raw) => raw.refusal === null && !raw.held && raw.admitAt === null;
    const ready = raws.filter((raw) => isReady(raw) && !elsewhere.has(raw.id)).map(({ id }) => id);
    return { ...UNSETTLED, ready, replaced };
  }
}

function replaces({ row, keyRule }: Raw): boolean {
  return row.definition.key !== null && mayReplace(keyRule);
}

function keyOf({ row: { definition } }: KeyedJob): string {
  return JSON.stringify([definition.tenant, definition.key]);
}

/** The order in which `submit_job` was called. */
function inOrderOfSubmission(a: Raw, b: Raw): number {
  return (a.saidAt ?? 0) - (b.saidAt ?? 0);
}

/** How a submission ends that does not become a job; null if it does. */
function endOf({ id, refusal }: Raw, registered: Registered | undefined) {
  if (refusal === CANCELLED) return { id, state: 'cancelled' as const, error: null };
  if (refusal !== null) return { id, state: 'failed' as const, error: JSON.stringify(refusal) };
  const { repetition, id: job } = registered!;
  if (repetition === null) return null;
  const error = {
    code: 'DUPLICATE_KEY',
    message: `The key belongs to job ${job}.${became(repetition)}`,
    job,
  };
  return { id, state: 'skipped' as const, error: JSON.stringify(error) };
}

function became({ replaced, differs }: NonNullable<Registered['repetition']>): string {
  if (replaced) return ' That job took what this submission says.';
  return differs.length === 0 ? '' : ` What differs was not taken: ${differs.join(', ')}.`;
}
