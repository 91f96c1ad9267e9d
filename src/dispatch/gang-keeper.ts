import { EarliestTimer } from '../core/clock.js';
import { formatDuration } from '../core/duration.js';
import { messageOf } from '../core/errors.js';
import type { JobError } from '../core/job.js';
import { Loop, logFailure } from '../core/loop.js';
import type { SerialQueues } from '../core/serial-queue.js';
import {
  type BatchPosition,
  BEFORE_ALL_BATCHES,
  type OpenBatch,
  readEndedMembers,
  readOpenBatches,
  readOverdueBatches,
  readWaitingMembers,
  type WaitingMember,
} from '../store/batch-rows.js';
import { cancelClaims } from '../store/claims.js';
import type { Queryable } from '../store/database.js';
import { endBatch } from '../store/end-batch.js';
import { endWaitingJobs } from '../store/end-waiting-jobs.js';
import { leaderTransaction } from '../store/leader-statement.js';
import type { Finisher } from './finisher.js';
import { Gang, GangRun, NEVER_HANDED } from './gang.js';
import type { GangListener } from './gang-board.js';
import type { GangPlanner } from './gang-planner.js';
import { explainGang } from './gang-reasons.js';
import type { GangStarter } from './gang-starter.js';
import type { LeaderState } from './leader-state.js';
import { lost } from './overdue-attempts.js';
import type { Running } from './running.js';

const EVERY_MS = 1_000;
/** Batches that one statement reads. */
const READ_AT_ONCE = 100;
/** About so many members are read by one statement. */
const MEMBERS_AT_ONCE = 2_000;
/** Batches that wait for artifacts and are looked at by one pass. */
const UNREADY_AT_ONCE = 10;

interface GangKeeperParts {
  readonly changes: SerialQueues;
  readonly planner: GangPlanner;
  readonly starter: GangStarter;
  readonly finisher: Finisher;
  /** Tells the worker of an attempt that its job was cancelled. */
  onCancelRunning(running: Running): Promise<void>;
}

/**
 * Looks after batches from their first reading to their end: takes them into memory, fails those that could not start in
 * time, cancels the rest of one whose member failed, and ends those whose members have all ended. What is to be done can
 * always be told from the tables, so a new leader goes on where the last one was.
 */
export class GangKeeper implements GangListener {
  private readonly loop: Loop;
  private readonly timer: EarliestTimer;
  /** Where the batches begin that are in the table only. */
  private unread: BatchPosition = BEFORE_ALL_BATCHES;
  private isReading = false;
  /** How many of the batches that wait for artifacts were looked at in this round. */
  private looked = 0;

  constructor(
    private readonly state: LeaderState,
    private readonly parts: GangKeeperParts,
  ) {
    this.timer = new EarliestTimer(state.clock, () => this.loop.wake());
    this.loop = new Loop({
      name: 'batches',
      everyMs: EVERY_MS,
      pass: () => this.runOnce(),
      onError: logFailure(state.log, 'batches could not be looked after'),
    });
    state.gangs.listener = this;
  }

  start(): void {
    this.loop.start();
  }

  async stop(): Promise<void> {
    this.timer.stop();
    await this.loop.stop();
  }

  /** Reads the batches that run. Must come after the claims were read. Those that wait are read when the term has begun. */
  async load(): Promise<void> {
    const { state } = this;
    for (let after = BEFORE_ALL_BATCHES; ; ) {
      const batches = await readOpenBatches(state.reads, 'running', after, READ_AT_ONCE);
      for (const batch of batches) await this.resume(batch);
      if (batches.length < READ_AT_ONCE) break;
      after = batches.at(-1)!;
    }
    state.gangs.hasMore = true;
  }

  private async resume(batch: OpenBatch): Promise<void> {
    const { state } = this;
    const run = new GangRun(batch);
    for (const id of batch.members) {
      const running = state.running.get(id);
      if (running) run.left.set(id, running);
    }
    if (run.left.size < batch.members.length) {
      const ended = await readEndedMembers(state.reads, batch);
      run.hasFailed = [...ended.values()].some((end) => end !== 'succeeded');
    }
    run.isHandedOver = true;
    state.gangs.begin(run);
  }

  /** Takes a page of waiting batches into memory, the oldest first, while there is room. */
  private async readWaiting(): Promise<void> {
    const { gangs, reads } = this.state;
    let isLast = false;
    this.isReading = true;
    // A batch that is stored from now on may be missing in the page, so whoever stores it adds it.
    gangs.hasMore = false;
    try {
      const page = await readOpenBatches(reads, 'pending', this.unread, READ_AT_ONCE);
      isLast = (await this.takeIn(page)) && page.length < READ_AT_ONCE;
    } finally {
      this.isReading = false;
      if (!isLast) gangs.hasMore = true;
    }
  }

  /** Answers false if there was no room for all. */
  private async takeIn(page: readonly OpenBatch[]): Promise<boolean> {
    const { gangs, reads } = this.state;
    for (const portion of portionsOf(page)) {
      if (gangs.isFull) return false;
      const unknown = portion.filter(({ id }) => !gangs.find(id));
      const rows = await readWaitingMembers(
        reads,
        unknown.flatMap(({ members }) => members),
      );
      // All at once: the longer it takes to take them in, the more may have changed.
      await this.state.directory.learn(rows);
      const found = new Map(rows.map((row) => [row.id, row]));
      for (const batch of portion) {
        if (gangs.isFull) return false;
        if (unknown.includes(batch)) await this.takeInOne(batch, found);
        // One that found no room meanwhile is read next.
        if (gangs.hasMore) return false;
        this.unread = batch;
      }
    }
    return true;
  }

  /** Takes a waiting batch into memory, if it can be. */
  async fetch(batch: OpenBatch): Promise<Gang | null> {
    const rows = await readWaitingMembers(this.state.reads, batch.members);
    return this.takeInOne(batch, new Map(rows.map((row) => [row.id, row])));
  }

  /** One that has lost a member can never start, and ends. */
  private async takeInOne(batch: OpenBatch, found: ReadonlyMap<string, WaitingMember>): Promise<Gang | null> {
    const { state } = this;
    const members = batch.members.flatMap((id) => found.get(id) ?? []);
    await state.directory.learn(members);
    if (members.length === 0) await this.endEmpty(batch);
    if (members.length === 0 || !members.every((member) => state.hasKnownNames(member))) return null;
    // While it was read, it may have come in by another way.
    if (state.gangs.find(batch.id)) return null;
    const awaits = new Set(members.flatMap(({ id, awaits }) => (awaits ? [id] : [])));
    const gang = new Gang(batch, members, awaits);
    state.gangs.add(gang);
    this.timer.arm(gang.startBy);
    if (members.length < batch.members.length) this.ended(new Set([gang]));
    return gang;
  }

  /** Adds a batch that waits; if memory is full, it is read when there is room. */
  add(gang: Gang): void {
    const { gangs } = this.state;
    if (gangs.find(gang.id) || (gangs.hasMore && isBehind(gang, this.unread))) return;
    if (gangs.isFull) {
      this.readLater(gang);
      return;
    }
    gangs.add(gang);
    this.timer.arm(gang.startBy);
  }

  private readLater({ dueAt }: Gang): void {
    const { gangs } = this.state;
    const before = { ...BEFORE_ALL_BATCHES, dueAt };
    const isAllRead = !gangs.hasMore && !this.isReading;
    if (isAllRead || isBehind(this.unread, before)) this.unread = before;
    gangs.hasMore = true;
  }

  wake(): void {
    this.parts.planner.wake();
  }

  ended(gangs: ReadonlySet<Gang | GangRun>): void {
    for (const gang of gangs) {
      const work = gang instanceof GangRun ? this.settle(gang) : this.breakUp(gang);
      work.catch((error: unknown) => this.complain(gang, error));
    }
  }

  /** Attempts that never began, and never will: their whole gang waits again if nothing of it has begun, else they are lost. */
  async givenUp(members: readonly Running[]): Promise<void> {
    const { state } = this;
    const runs = new Set<GangRun>();
    for (const { id } of members) {
      const run = state.gangs.runOf(id);
      if (!run) continue;
      run.refused.add(id);
      runs.add(run);
    }
    for (const run of runs) {
      if (run.isUntouched && (await this.parts.starter.takeBack(run))) continue;
      await this.lose(
        members.filter(({ id }) => run.left.has(id)),
        'its worker never began it',
      );
    }
  }

  /** A pass that fails batches whose time is up, gives up what no worker fetches, and repeats what has failed before. */
  async runOnce(): Promise<number> {
    const { state } = this;
    const { gangs } = state;
    const canRead = () => gangs.hasMore && !gangs.isFull && !state.isOver;
    if (canRead()) await this.readWaiting();
    const now = state.clock.now();
    if (gangs.hasMore && gangs.isFull) await this.expireUnread(now);
    gangs.takeDue();
    this.timer.arm(gangs.nextDueAt);
    for (const gang of [...gangs.waiting, ...gangs.unready]) {
      if (gang.startBy !== null && gang.startBy <= now) await this.expire(gang);
      else this.timer.arm(gang.startBy);
    }
    for (const run of [...gangs.running.values()]) {
      if (run.left.size === 0 || (run.isToStop && !run.isStopped)) await this.settle(run);
      const stuck = run.undelivered().filter((running) => this.isStuck(running));
      if (stuck.length > 0) await this.givenUp(stuck);
    }
    await this.lookAtUnready();
    return canRead() ? 0 : EVERY_MS;
  }

  /** An artifact may have arrived while its batch was being taken in; so all are looked at in turn, some in each pass. */
  private async lookAtUnready(): Promise<void> {
    const { gangs, reads } = this.state;
    const some = gangs.unready.slice(this.looked, this.looked + UNREADY_AT_ONCE);
    this.looked = some.length < UNREADY_AT_ONCE ? 0 : this.looked + UNREADY_AT_ONCE;
    const ids = some.flatMap(({ awaits }) => [...awaits]);
    if (ids.length === 0) return;
    const waiting = new Set(
      (await readWaitingMembers(reads, ids)).flatMap(({ id, awaits }) => (awaits ? [id] : [])),
    );
    for (const gang of some)
      for (const id of [...gang.awaits]) if (!waiting.has(id)) gangs.arrived(gang.id, id);
  }

  /** Whether the worker of an attempt that was never handed over will not fetch it. */
  private isStuck({ worker, since, isEnding }: Running): boolean {
    const { state } = this;
    const session = state.sessions.get(worker);
    if (isEnding) return false;
    return !session || session.draining || state.clock.steady() - since > state.config.workerTimeout;
  }

  /** Ends a run whose members have all ended, or stops the rest of one that is to stop. */
  settle(run: GangRun): Promise<void> {
    return this.parts.changes.run(run.id, async () => {
      if (this.state.isOver || this.state.gangs.running.get(run.id) !== run) return;
      if (run.left.size === 0) await this.end(run);
      else if (run.isToStop && !run.isStopped) await this.stopRest(run);
    });
  }

  private async end(run: GangRun): Promise<void> {
    const { state } = this;
    const end = !run.hasFailed ? 'succeeded' : run.isCancelled ? 'cancelled' : 'failed';
    const now = state.clock.now();
    await state.write(() => endBatch(state.hot, state.term, run.id, end, null, now));
    state.gangs.forget(run);
    state.tellEnd(run.id);
    if (state.events.isHeard) state.events.batch(`batch.${end}`, run, end);
  }

  /** Cancels what is left of a run. In its change. */
  async stopRest(run: GangRun): Promise<void> {
    const { state } = this;
    if (state.events.isHeard && !run.isStopped)
      state.events.batch('batch.stopping', run, 'running', run.isCancelled ? 'cancel' : 'failure');
    for (let left = [...run.left.keys()]; left.length > 0; ) {
      const mine = left.filter((id) => run.left.get(id) && state.turns.tryTake(id));
      if (mine.length === 0) await state.turns.untilFree(left[0]!);
      else await this.cancelInTurn(mine.map((id) => run.left.get(id)!));
      if (state.isOver) return;
      const done = new Set(mine);
      left = left.filter((id) => run.left.get(id) && !done.has(id));
    }
    run.isStopped = true;
  }

  private async cancelInTurn(members: readonly Running[]): Promise<void> {
    const { state } = this;
    const now = state.clock.now();
    try {
      await state.write(() => cancelClaims(state.hot, state.term, members, now));
    } finally {
      for (const { id } of members) state.turns.release(id);
    }
    for (const running of members) {
      running.cancelledAt ??= state.clock.steady();
      // Nobody has to confirm what was never handed over.
      const work =
        running.handedAt === NEVER_HANDED
          ? this.parts.finisher.end(running.id, running.fence, CANCELLED, null)
          : this.parts.onCancelRunning(running);
      work.catch((error: unknown) => this.complain({ id: running.id }, error));
    }
  }

  /** A member ended while its batch waited: the batch can never start as a whole. */
  private async breakUp(gang: Gang): Promise<void> {
    const error = {
      code: 'BATCH_BROKEN',
      message: 'Another job of the batch ended before the batch could start.',
    };
    await this.endWaiting(gang, 'cancelled', error);
  }

  /** Ends a batch that the table says waits though none of its members does: the last leader could not end it. */
  private endEmpty({ id, tenant }: OpenBatch): Promise<void> {
    return this.parts.changes.run(id, async () => {
      const { state } = this;
      // It may have started since it was read.
      if (state.isOver || state.gangs.find(id)) return;
      const now = state.clock.now();
      if (!(await state.write(() => endBatch(state.hot, state.term, id, 'cancelled', null, now)))) return;
      state.tellEnd(id);
      if (state.events.isHeard) state.events.batch('batch.cancelled', { id, tenant }, 'cancelled');
    });
  }

  /** Fails batches in time that memory has no room for. */
  private async expireUnread(now: number): Promise<void> {
    const { gangs, reads } = this.state;
    for (const batch of await readOverdueBatches(reads, this.unread, now, READ_AT_ONCE)) {
      const gang = gangs.find(batch.id) ? null : await this.fetch(batch);
      if (gang) await this.expire(gang);
    }
  }

  private async expire(gang: Gang): Promise<void> {
    const within = formatDuration(gang.startTimeoutMs ?? 0);
    const { detail } = await explainGang(this.state, gang);
    const message = `The batch could not start within ${within}. ${detail}`;
    await this.endWaiting(gang, 'failed', { code: 'BATCH_NOT_STARTED', message });
  }

  /** Ends a waiting batch with all its members, unless it waits no more; `within` is done in the same transaction. */
  endWaiting(
    gang: Gang,
    end: 'failed' | 'cancelled',
    error: JobError | null,
    within?: (db: Queryable) => Promise<void>,
  ): Promise<boolean> {
    return this.parts.changes.run(gang.id, async () => {
      const { state } = this;
      if (state.gangs.find(gang.id) !== gang) return false;
      const taken: string[] = [];
      try {
        for (const { id } of [...gang.members].sort((a, b) => (a.id < b.id ? -1 : 1))) {
          await state.turn(id);
          taken.push(id);
        }
        await this.writeEnd(gang, end, error, within);
        return true;
      } finally {
        for (const id of taken) state.turns.release(id);
      }
    });
  }

  private async writeEnd(
    gang: Gang,
    end: 'failed' | 'cancelled',
    error: JobError | null,
    within: ((db: Queryable) => Promise<void>) | undefined,
  ): Promise<void> {
    const { state } = this;
    const now = state.clock.now();
    const text = error === null ? null : JSON.stringify(error);
    const ends = gang.members.map(({ id }) => ({ id, state: end, error: text }));
    const ended = await state.write(() =>
      leaderTransaction(state.hot, state.term, async (db) => {
        const ended = await endWaitingJobs(db, state.term, 'later', ends, now);
        await endBatch(db, state.term, gang.id, end, text, now);
        await within?.(db);
        return ended;
      }),
    );
    state.gangs.remove(gang);
    this.parts.planner.applyHolds();
    await state.writeEnds(() => Promise.resolve(ended));
    if (end === 'failed' && error) for (const job of ended) state.failures.failed(job, error);
    state.tellEnd(gang.id);
    if (state.events.isHeard) state.events.batch(`batch.${end}`, gang, end);
  }

  /** The table does not have a batch as memory does: it is read again. */
  missing(gang: Gang): void {
    this.readAgain(gang).catch((error: unknown) =>
      this.state.doubt(`it is not known what became of batch ${gang.id}: ${messageOf(error)}`),
    );
  }

  private async readAgain(gang: Gang): Promise<void> {
    const { state } = this;
    if (!state.gangs.remove(gang)) return;
    const { id, tenant, onFailure, dueAt, startTimeoutMs } = gang;
    const members = gang.members.map((member) => member.id);
    await this.fetch({ id, tenant, onFailure, dueAt, startTimeoutMs, members, cancelledAt: null });
  }

  private async lose(members: readonly Running[], why: string): Promise<void> {
    const end = lost(why);
    await Promise.all(members.map(({ id, fence }) => this.parts.finisher.end(id, fence, end, null)));
  }

  private complain({ id }: { readonly id: string }, error: unknown): void {
    // The next pass tries again.
    if (!this.state.isOver)
      this.state.log.warn({ batch: id, error: messageOf(error) }, 'a batch could not be looked after');
  }
}

const CANCELLED = { outcome: 'cancelled', error: null } as const;

/** Parts of a page, each with about as many members as one statement reads. */
function* portionsOf(page: readonly OpenBatch[]): Generator<OpenBatch[]> {
  let portion: OpenBatch[] = [];
  let members = 0;
  for (const batch of page) {
    portion.push(batch);
    members += batch.members.length;
    if (members < MEMBERS_AT_ONCE) continue;
    yield portion;
    portion = [];
    members = 0;
  }
  if (portion.length > 0) yield portion;
}

function isBehind({ dueAt, id }: BatchPosition, position: BatchPosition): boolean {
  return dueAt > position.dueAt || (dueAt === position.dueAt && id > position.id);
}
