import { type AuditAction, type AuditAuthor, auditEntry } from '../core/audit.js';
import { type BatchState, hasEnded } from '../core/batch.js';
import { messageOf, PunctualError } from '../core/errors.js';
import type { SerialQueues } from '../core/serial-queue.js';
import { addEntry } from '../store/audit.js';
import { findBatch, type OpenBatch, readEndedMembers } from '../store/batch-rows.js';
import type { Queryable } from '../store/database.js';
import { cancelBatch, retryBatch } from '../store/end-batch.js';
import { type Keep, keepLast } from '../store/idempotency.js';
import { awaitsArtifact, type JobRow } from '../store/job-row.js';
import { leaderTransaction } from '../store/leader-statement.js';
import { toWaiting } from '../store/read-backlog.js';
import type { Requested } from '../store/requested.js';
import { type NewBatch, storeBatch } from '../store/submit-batch.js';
import type { Made, NewJob, Registrations, Submitted } from '../store/submit-jobs.js';
import { takeRoomSoon } from '../store/tenant-usage.js';
import { Gang, GangRun } from './gang.js';
import type { GangKeeper } from './gang-keeper.js';
import { explainGang, type GangReason } from './gang-reasons.js';
import { type LeaderState, noLeader } from './leader-state.js';

/** How often a batch is cancelled that starts or ends at the same moment. */
const TRIES = 10;

/** What people do to batches: submit, cancel, retry. */
export class BatchControl {
  constructor(
    private readonly state: LeaderState,
    private readonly keeper: GangKeeper,
    private readonly changes: SerialQueues,
  ) {}

  /** Stores a batch and its members, all or none. */
  async submit(
    batch: NewBatch,
    jobs: readonly NewJob[],
    made: Made,
    now: number,
    keep?: Keep<Registrations>,
  ): Promise<Submitted> {
    const { state } = this;
    const rows = jobs.map(({ row }) => row);
    await state.write(() =>
      leaderTransaction(state.hot, state.term, async (db) => {
        await keep?.(db, null);
        if (made.counted !== undefined)
          await takeRoomSoon(db, made.counted, { live: 0, later: jobs.length }, jobs);
        await storeBatch(db, state.term, batch, rows, made.names, now);
      }),
    );
    await this.takeInNew(batch, rows);
    return { registered: null, fresh: jobs };
  }

  /** Adds a batch that the leader has made by itself, for a schedule. */
  async stored(batch: NewBatch, rows: readonly JobRow[]): Promise<void> {
    this.state.addedJobs.note(batch.tenant, 0, rows.length);
    await this.takeInNew(batch, rows);
  }

  private takeInNew(batch: NewBatch, rows: readonly JobRow[]): Promise<void> {
    const members = rows.map((row) => ({ ...toWaiting(row), row: null }));
    const awaits = new Set(rows.filter(awaitsArtifact).map(({ id }) => id));
    return this.takeIn(new Gang(batch, members, awaits), 'batch.submitted');
  }

  /** Cancels a batch: one that waits ends at once, one that runs when its workers have confirmed. */
  async cancel(tenant: string, id: string, { author, keep }: Requested<void> = {}): Promise<void> {
    const { state } = this;
    for (let tries = 1; tries <= TRIES && !state.isOver; tries += 1) {
      const batch = await this.mustFind(tenant, id);
      if (hasEnded(batch.state)) throw refused(id, batch.state);
      const within = async (db: Queryable) => {
        await this.note(db, author, 'batch.cancel', tenant, id, batch.state, 'cancelled');
        await keepLast(db, keep, undefined);
      };
      const gang = state.gangs.find(id) ?? (await this.keeper.fetch(batch));
      if (gang instanceof GangRun) {
        if (await this.cancelRun(gang, within)) return;
      } else if (gang && (await this.keeper.endWaiting(gang, 'cancelled', null, within))) {
        state.noteEntry();
        return;
      }
      // It started or ended while this waited for its turn.
    }
    if (state.isOver) throw noLeader();
    throw new PunctualError('TOO_BUSY', `Batch ${id} is being changed; try again.`, { retryAfter: 1 });
  }

  private cancelRun(run: GangRun, within: (db: Queryable) => Promise<void>): Promise<boolean> {
    const { state } = this;
    return this.changes.run(run.id, async () => {
      if (state.gangs.running.get(run.id) !== run || run.left.size === 0) return false;
      const now = state.clock.now();
      await state.write(() =>
        leaderTransaction(state.hot, state.term, async (db) => {
          await cancelBatch(db, state.term, run.id, now);
          await within(db);
        }),
      );
      state.noteEntry();
      run.isCancelled = true;
      await this.keeper.stopRest(run);
      return true;
    });
  }

  /** Lets all members of a batch that failed or was cancelled start together again. */
  retry(tenant: string, id: string, { author, keep }: Requested<void> = {}): Promise<void> {
    const { state } = this;
    return this.changes.run(id, async () => {
      const batch = await this.mustFind(tenant, id);
      if (!hasEnded(batch.state))
        throw new PunctualError('BATCH_NOT_ENDED', `Batch ${id} has not ended; cancel it first.`);
      if (batch.state === 'succeeded') throw refused(id, batch.state);
      const taken: string[] = [];
      try {
        for (const member of [...batch.members].sort()) {
          await state.turn(member);
          taken.push(member);
        }
        const now = state.clock.now();
        const members = await state.write(() =>
          leaderTransaction(state.hot, state.term, async (db) => {
            const members = await retryBatch(db, state.term, batch, now);
            if (members.length === 0) throw await notRetryable(db, batch);
            await this.note(db, author, 'batch.retry', tenant, id, batch.state, 'pending');
            await keepLast(db, keep, undefined);
            return members;
          }),
        );
        state.noteEntry();
        state.addedJobs.note(tenant, 0, members.length);
        const byId = new Map(members.map((member) => [member.id, member]));
        const inOrder = batch.members.map((member) => byId.get(member)!);
        await this.takeIn(new Gang({ ...batch, dueAt: now }, inOrder), 'batch.retried');
      } finally {
        for (const member of taken) state.turns.release(member);
      }
    });
  }

  /** Adds a batch that was just written; if that fails, gives the term up, as nothing would read it. */
  private async takeIn(gang: Gang, event: 'batch.submitted' | 'batch.retried'): Promise<void> {
    const { state } = this;
    if (state.events.isHeard) state.events.batch(event, gang, 'pending');
    try {
      await state.directory.learn(gang.members);
      if (gang.members.every((member) => state.hasKnownNames(member))) this.keeper.add(gang);
    } catch (error) {
      state.doubt(`batch ${gang.id} could not be taken in after it was written: ${messageOf(error)}`);
    }
  }

  /** What a batch waits for; null if it does not wait. */
  async why(tenant: string, id: string): Promise<GangReason | null> {
    const { state } = this;
    const gang = state.gangs.find(id);
    if (!(gang instanceof Gang) || gang.tenant !== tenant) return null;
    await state.directory.learn(gang.kinds);
    return explainGang(state, gang);
  }

  private async mustFind(tenant: string, id: string) {
    const batch = await findBatch(this.state.hot, tenant, id);
    if (!batch) throw new PunctualError('BATCH_NOT_FOUND', `There is no batch ${id}.`);
    return batch;
  }

  private async note(
    db: Queryable,
    author: AuditAuthor | undefined,
    action: AuditAction,
    tenant: string,
    id: string,
    before: BatchState,
    after: BatchState,
  ): Promise<void> {
    if (!author) return;
    const views = { before: { state: before }, after: { state: after } };
    const { clock, term } = this.state;
    const entry = auditEntry(author, clock.now(), action, { kind: 'batch', name: id, tenant }, views);
    await addEntry(db, entry, term.epoch);
  }
}

function refused(id: string, state: BatchState): PunctualError {
  return new PunctualError('BATCH_ENDED', `Batch ${id} has already ended: ${state}.`);
}

/** Why a batch cannot be retried; read on the connection of the transaction, or many retries would wait for each other's. */
async function notRetryable(db: Queryable, batch: OpenBatch): Promise<PunctualError> {
  const ended = await readEndedMembers(db, batch);
  const gone = batch.members.filter((id) => !ended.has(id));
  const detail =
    gone.length > 0
      ? `${gone.length} of the ${batch.members.length} jobs of batch ${batch.id} are not in history any more.`
      : `Batch ${batch.id} has jobs that are at-most-once and have had their attempt.`;
  return new PunctualError('BATCH_NOT_RETRYABLE', detail);
}
