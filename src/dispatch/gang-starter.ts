import { messageOf } from '../core/errors.js';
import { bucketOf, emptyHistogram } from '../core/histogram.js';
import type { SerialQueues } from '../core/serial-queue.js';
import type { ClaimCounts } from '../store/claim-jobs.js';
import type { StoredAttempt } from '../store/job-places.js';
import { leaderTransaction } from '../store/leader-statement.js';
import { type BucketMark, saveBuckets } from '../store/queues.js';
import { type StartedMember, startBatch, voidBatch } from '../store/start-batch.js';
import { Gang, GangRun, NEVER_HANDED, NO_RATES } from './gang.js';
import type { GangPlanner, GangStart } from './gang-planner.js';
import type { LeaderState } from './leader-state.js';
import { factsOf, Running } from './running.js';
import type { WorkerSession } from './worker-session.js';

/** How long a gang waits whose start was taken back, so that a worker that always refuses does not keep the leader busy. */
const AFTER_VOID_MS = 1_000;
/** The longest pause between two starts that fail. */
const MAX_PAUSE_MS = 60_000;
/** How long a gang waits while statements about its members are in flight. */
const SOON_MS = 50;

/**
 * Starts gangs, and takes a start back none of whose members can have begun. A gang is claimed as a whole; its members go
 * out with the polls of their sessions, those that are open and the next ones.
 */
export class GangStarter {
  constructor(
    private readonly state: LeaderState,
    private readonly planner: GangPlanner,
    private readonly parts: {
      /** By batch: at most one change of it is in flight. */
      readonly changes: SerialQueues;
      /** Hands claims that were never handed over to the open polls of these sessions. */
      offer(sessions: Iterable<WorkerSession>): void;
      /** The table does not have the gang as memory does. */
      onMissing(gang: Gang): void;
    },
  ) {}

  /** Starts a gang, if one can start now; answers whether one could. */
  async startNext(): Promise<boolean> {
    if (!this.planner.hasReady) return false;
    const start = this.planner.take();
    if (!start) return false;
    const { gang } = start;
    gang.isStarting = true;
    try {
      await this.parts.changes.run(gang.id, () => this.start(start));
    } catch (error) {
      if (this.state.isOver) throw error;
      this.postpone(gang, error);
    } finally {
      gang.isStarting = false;
      this.planner.applyHolds();
      this.planner.wake();
    }
    return true;
  }

  /** A gang that cannot be started must neither hold up other jobs nor hold slots. */
  private postpone(gang: Gang, error: unknown): void {
    const { log, clock } = this.state;
    gang.failedStarts += 1;
    gang.target = null;
    gang.keptRates = NO_RATES;
    gang.notBefore = clock.steady() + Math.min(MAX_PAUSE_MS, AFTER_VOID_MS * 2 ** gang.failedStarts);
    log.error({ batch: gang.id, error: messageOf(error) }, 'a batch cannot be started');
  }

  private async start({ gang, places }: GangStart): Promise<void> {
    const { state } = this;
    // It may have been cancelled while this waited.
    if (state.gangs.find(gang.id) !== gang) return;
    const steady = state.clock.steady();
    const taken = gang.members.filter(({ id }) => state.turns.tryTake(id));
    const isMine = taken.length === gang.members.length;
    if (isMine) {
      state.shares.spendTogether(gang.members, steady);
      for (const { session } of places) session.bucket?.draw(steady);
    }
    let started: readonly StartedMember[] | null = null;
    let run: GangRun | null = null;
    try {
      if (isMine) started = await this.write(gang, places);
      if (started && started.length > 0) {
        run = this.begin(gang, places, started);
        // In their turns, in which nothing is handed over: none is unless every session still stands.
        if (!this.stands(places) && (await this.writeVoid(run))) run = null;
      }
    } finally {
      if (!started || started.length === 0) this.undo(gang, isMine ? places : []);
      for (const { id } of taken) state.turns.release(id);
    }
    if (run) this.handOut(run, places);
    if (started?.length === 0) this.parts.onMissing(gang);
  }

  private write({ id, tenant, members }: Gang, places: GangStart['places']): Promise<StartedMember[]> {
    const { state } = this;
    const { hot, term, clock } = state;
    const now = clock.now();
    const intents = places.map(({ member, session }) => ({
      id: member.id,
      fence: member.fence,
      worker: session.id,
    }));
    const batch = { id, tenant, counts: countsOf(members, now) };
    const queues = new Map<number, BucketMark>();
    const tenants = new Map<string, BucketMark>();
    for (const queue of new Set(members.map((member) => member.queue))) {
      const share = state.shares.queue(queue);
      if (share.bucket) queues.set(queue, share.bucket.mark(clock));
      if (share.tenant.bucket) tenants.set(tenant, share.tenant.bucket.mark(clock));
    }
    return state.write(() => {
      if (queues.size + tenants.size === 0) return startBatch(hot, term, batch, intents, now);
      return leaderTransaction(hot, term, async (db) => {
        await saveBuckets(db, term, { queues, tenants });
        return startBatch(db, term, batch, intents, now);
      });
    });
  }

  /** Nothing was started. */
  private undo(gang: Gang, places: GangStart['places']): void {
    const { state } = this;
    for (const { member, session } of places) {
      state.shares.release(member, true);
      session.bucket?.refund();
    }
    gang.notBefore = state.clock.steady() + SOON_MS;
  }

  /** Takes note that all members are claimed. */
  private begin(gang: Gang, places: GangStart['places'], started: readonly StartedMember[]): GangRun {
    const { state } = this;
    const { epoch } = state.term;
    const rows = new Map(started.map((row) => [row.id, row]));
    const claimedAt = state.clock.now();
    const since = state.clock.steady();
    const run = new GangRun(toBatch(gang));
    for (const { member, session } of places) {
      const claim = { worker: session.id, epoch, claimedAt, since };
      const running = new Running(member, factsOf(rows.get(member.id)!), claim);
      running.handedAt = NEVER_HANDED;
      run.left.set(member.id, running);
      state.running.set(running.id, running);
      state.meters.claimed(running);
      session.running.add(running);
    }
    state.gangs.remove(gang);
    state.gangs.begin(run);
    state.addedJobs.note(gang.tenant, places.length, 0);
    return run;
  }

  private stands(places: GangStart['places']): boolean {
    return places.every(({ session }) => this.state.sessions.has(session.id) && !session.draining);
  }

  private handOut(run: GangRun, places: GangStart['places']): void {
    const { events } = this.state;
    if (events.isHeard) {
      events.batch('batch.started', run, 'running');
      events.started([...run.left.values()].map((running) => ({ running: running! })));
    }
    this.parts.offer(new Set(places.map(({ session }) => session)));
  }

  /** Takes the start of a gang back, unless a member may have begun; answers whether it did. */
  takeBack(run: GangRun): Promise<boolean> {
    return this.parts.changes.run(run.id, async () => {
      const { state } = this;
      const taken: string[] = [];
      try {
        for (const id of [...run.left.keys()].sort()) {
          await state.turn(id);
          taken.push(id);
        }
        // While this waited, one may have been handed over, or have ended.
        if (state.isOver || !run.isUntouched || state.gangs.running.get(run.id) !== run) return false;
        return await this.writeVoid(run);
      } finally {
        for (const id of taken) state.turns.release(id);
      }
    });
  }

  /** In the turns of all members. */
  private async writeVoid(run: GangRun): Promise<boolean> {
    const { state } = this;
    const members = [...run.left.values()] as Running[];
    const now = state.clock.now();
    const claims = members.map((running) => ({
      id: running.id,
      fence: running.fence,
      attempt: running.handedAt === NEVER_HANDED ? null : JSON.stringify(neverBegun(running, now)),
    }));
    if (!(await state.write(() => voidBatch(state.hot, state.term, run.id, claims)))) {
      state.doubt(`batch ${run.id} was not claimed as this leader thought`);
      return false;
    }
    const waiting = new Map(members.map((running) => [running.id, running.waitingAgain(running.runAt)]));
    try {
      // Memory may have forgotten names that only running jobs have.
      await state.directory.learn(members);
    } catch (error) {
      // The table says that it waits, and memory that it runs: only a new term, which reads it, can tell.
      state.doubt(
        `batch ${run.id} could not be taken in after its start was taken back: ${messageOf(error)}`,
      );
      return false;
    }
    state.gangs.forget(run);
    for (const running of members) state.endRunning(running);
    state.addedJobs.note(run.tenant, 0, members.length);
    const gang = new Gang(
      run.batch,
      run.batch.members.map((id) => waiting.get(id)!),
    );
    gang.notBefore = state.clock.steady() + AFTER_VOID_MS;
    state.gangs.add(gang);
    if (state.events.isHeard) state.events.batch('batch.waiting', gang, 'pending');
    state.log.info(
      { batch: run.id },
      'the start of a batch was taken back, because a worker is gone or refused',
    );
    return true;
  }
}

function toBatch(gang: Gang): GangRun['batch'] {
  const { id, tenant, onFailure, dueAt, startTimeoutMs } = gang;
  const members = gang.members.map((member) => member.id);
  return { id, tenant, onFailure, dueAt, startTimeoutMs, members, cancelledAt: null };
}

function countsOf(members: Gang['members'], now: number): ClaimCounts {
  const counts = { jobs: members.length, lateness: emptyHistogram(), latenessMs: 0 };
  for (const { fence, runAt } of members) {
    if (fence > 1) continue;
    const lateBy = Math.max(0, now - runAt);
    counts.lateness[bucketOf(lateBy)]! += 1;
    counts.latenessMs += lateBy;
  }
  return counts;
}

/** The record of an attempt that was handed over and refused. */
function neverBegun({ fence, epoch, worker, claimedAt }: Running, now: number): StoredAttempt {
  const error = { code: 'NEVER_STARTED', message: 'The attempt was handed over and never began.' };
  return { fence, epoch, worker, claimedAt, startedAt: null, finishedAt: now, outcome: 'lost', error };
}
