import { formatDuration } from '../core/duration.js';
import { messageOf, PunctualError } from '../core/errors.js';
import type { JobError } from '../core/job.js';
import { Loop, logFailure } from '../core/loop.js';
import type { AttemptEnd } from '../core/transition.js';
import { uuidv7 } from '../core/uuid.js';
import type {
  ClaimAnswer,
  Heartbeat,
  HeartbeatAnswer,
  WorkerRegistration,
  WorkerState,
  WorkerView,
  WorkerWelcome,
} from '../core/wire.js';
import { stands } from '../host/test-switches.js';
import { readWork } from '../store/claims.js';
import type { Portion } from '../store/portion.js';
import { addWorker, forgetWorkers, readWorkers, seeWorkers, type WorkerRow } from '../store/workers.js';
import { assignmentsOf } from './assignment.js';
import type { Finisher } from './finisher.js';
import { type LeaderState, noLeader } from './leader-state.js';
import { Reconciler } from './reconciler.js';
import type { Running } from './running.js';
import { type Poll, WorkerSession } from './worker-session.js';

/** How often heartbeats reach the database. */
const SAVE_EVERY_MS = 15_000;
/** The most sessions of a tenant, and the most memory that their registrations may take up. */
const MAX_SESSIONS = 10_000;
const MAX_REGISTRATION_BYTES = 32 * 1024 * 1024;
/** How much one statement reads of the sessions of earlier terms. */
const LOADED_AT_ONCE = { rows: 500, bytes: 1024 * 1024 };
/** How long a cancelled attempt may take to confirm, and a timed-out one to report, before the leader decides. */
const GRACE_MS = 10_000;

/** What a registration counts against the limits of its tenant. */
interface Arriving {
  readonly owner: string;
  readonly bytes: number;
}

/**
 * The worker sessions of a term. A session is dead when it was silent for the worker timeout, or when its worker
 * registered anew; then, and only then, its attempts are lost.
 */
export class Workers {
  private readonly loop: Loop;
  private savedAt: number;
  /** Registrations that are being written; they count already, so that many at once cannot exceed the limits. */
  private readonly arriving = new Set<Arriving>();
  private readonly reconciler: Reconciler;

  constructor(
    private readonly state: LeaderState,
    private readonly finisher: Finisher,
  ) {
    this.savedAt = state.clock.steady();
    this.reconciler = new Reconciler(state);
    this.loop = new Loop({
      name: 'workers',
      everyMs: Math.min(1_000, state.config.workerTimeout / 4),
      pass: () => this.runOnce(),
      onError: logFailure(state.log, 'worker sessions could not be looked after'),
    });
  }

  /** Takes over the sessions of earlier terms; each gets a full timeout to send its next heartbeat. */
  async load(): Promise<void> {
    const { state } = this;
    for (let last: string | null = null; ; ) {
      const { rows, more }: Portion<WorkerRow> = await readWorkers(state.hot, last, LOADED_AT_ONCE);
      for (const row of rows) {
        const session = new WorkerSession(
          row.id,
          row.tenant,
          row.registration,
          row.registeredAt,
          state.clock,
        );
        session.draining = row.state === 'draining';
        if (!stands('full-timeout')) session.heardAt -= state.clock.now() - row.lastSeen;
        state.openSession(session);
        last = row.id;
      }
      if (!more) break;
    }
    for (const running of state.running.values()) {
      if (!running.isHandedOn) state.sessions.get(running.worker)?.running.add(running);
    }
  }

  start(): void {
    this.loop.start();
  }

  stop(): Promise<void> {
    return this.loop.stop();
  }

  async register(tenant: string, registration: WorkerRegistration): Promise<WorkerWelcome> {
    const { state } = this;
    const now = state.clock.now();
    const id = uuidv7(now);
    const text = JSON.stringify(registration);
    const arriving = { owner: tenant, bytes: text.length };
    this.mustHaveRoom(arriving, registration.replaces);
    this.arriving.add(arriving);
    try {
      await state.write(() =>
        addWorker(state.hot, state.term, { id, tenant, name: registration.name, registration: text }, now),
      );
    } finally {
      this.arriving.delete(arriving);
    }
    state.openSession(new WorkerSession(id, tenant, text, now, state.clock));
    const previous = state.sessions.get(registration.replaces ?? '');
    if (previous?.owner === tenant) await this.bury(previous, 'its worker registered anew');
    state.log.info({ worker: id, name: registration.name, tenant }, 'worker registered');
    return {
      workerId: id,
      shard: state.term.shard,
      epoch: state.term.epoch,
      heartbeatInterval: formatDuration(state.config.heartbeatInterval),
      workerTimeout: formatDuration(state.config.workerTimeout),
      now: new Date(state.clock.now()).toISOString(),
    };
  }

  /** Refuses a registration beyond the limits of its tenant, because memory holds all of them. */
  private mustHaveRoom({ owner, bytes }: Arriving, replaces: string | undefined): void {
    let count = 1;
    let total = bytes;
    const sessions = [...this.state.sessions.values()].filter(({ id }) => id !== replaces);
    for (const other of [...sessions, ...this.arriving]) {
      if (other.owner !== owner) continue;
      count += 1;
      total += other.bytes;
    }
    const tooMany =
      count > MAX_SESSIONS
        ? `${MAX_SESSIONS} workers`
        : total > MAX_REGISTRATION_BYTES && count > 1
          ? `workers whose registrations take up ${MAX_REGISTRATION_BYTES} bytes`
          : null;
    if (tooMany === null) return;
    const detail = `The tenant has ${tooMany} already; one that is silent for the worker timeout counts no more.`;
    throw new PunctualError('TOO_MANY_WORKERS', detail, { retryAfter: 10 });
  }

  async heartbeat(tenant: string, workerId: string, heartbeat: Heartbeat): Promise<HeartbeatAnswer> {
    const { state } = this;
    const isLater = heartbeat.epoch > state.term.epoch && stands('heartbeat-epoch');
    // A leader that was replaced must not tell a worker of the later term that it is unknown. But an unknown worker
    // proves nothing, so the database is asked, and only its answer ends the term.
    if (isLater && state.sessions.get(workerId)?.owner !== tenant) await state.confirmTerm();
    const session = this.session(tenant, workerId);
    if (isLater) state.outdatedBy(heartbeat.epoch);
    session.seen(state.clock);
    // The list of a worker that has not seen this term may be outdated by what an older leader handed over or stopped.
    const echoes = heartbeat.epoch === state.term.epoch || !stands('heartbeat-epoch');
    if (echoes && heartbeat.refused) await this.reconciler.refused(session, heartbeat.refused);
    const stop = echoes ? await this.reconciler.stops(session, heartbeat.running) : [];
    // A comparison that ended after the term must not stop anything.
    if (echoes && state.isOver) throw noLeader();
    return {
      epoch: state.term.epoch,
      stop,
      drain: session.draining,
      now: new Date(state.clock.now()).toISOString(),
    };
  }

  /** Waits for work; jobs whose hand-over was not acknowledged come first. */
  claim(
    tenant: string,
    workerId: string,
    max: number,
    waitMs: number,
    signal?: AbortSignal,
  ): Promise<ClaimAnswer> {
    const { state } = this;
    // After the end of the term nothing would end the wait.
    if (state.isOver) throw noLeader();
    const session = this.session(tenant, workerId);
    session.seen(state.clock);
    const again = this.reconciler.takeUnacknowledged(session, max);
    if (again.length > 0) return this.handOverAgain(session, again);
    // An error instead of an empty answer: a worker that is still there should ask elsewhere.
    signal?.throwIfAborted();
    return new Promise((resolve, reject) => {
      const end = () => {
        if (poll.settled) return false;
        poll.settled = true;
        clearTimeout(timer);
        signal?.removeEventListener('abort', onAbort);
        return session.polls.delete(poll);
      };
      const timer = setTimeout(() => poll.settle({ epoch: state.term.epoch, jobs: [] }), waitMs);
      const onAbort = () => poll.fail(signal?.reason);
      const poll: Poll = {
        session,
        max,
        given: [],
        settled: false,
        reserved: false,
        settle: (answer) => {
          if (end()) resolve(answer);
        },
        fail: (error) => {
          if (end()) reject(error);
        },
      };
      signal?.addEventListener('abort', onAbort, { once: true });
      session.polls.add(poll);
      state.wakeClaiming();
    });
  }

  /** Reads payload and target of these attempts, which memory does not keep; answers with those that still run. */
  private async handOverAgain(session: WorkerSession, again: readonly Running[]): Promise<ClaimAnswer> {
    const { state } = this;
    const found = await readWork(
      state.hot,
      again.map((running) => running.id),
    );
    if (state.isOver) throw noLeader();
    const isOpen = state.sessions.has(session.id);
    const handed = again.flatMap((running) => {
      const work = found.get(running.id);
      const runs = isOpen && running.list === session.running && !state.turns.has(running.id);
      return work && runs ? [{ running, work }] : [];
    });
    return { epoch: state.term.epoch, jobs: assignmentsOf(handed, session, state) };
  }

  /** Offers unacknowledged attempts to the polls of the session that are open already. */
  private offerAgain(session: WorkerSession): void {
    for (const poll of session.polls) {
      if (poll.reserved) continue;
      const again = this.reconciler.takeUnacknowledged(session, poll.max);
      if (again.length > 0) void this.answerAgain(poll, again);
    }
  }

  private async answerAgain(poll: Poll, again: readonly Running[]): Promise<void> {
    const { state } = this;
    // If the poll got a job from elsewhere meanwhile it would be settled, and these attempts would reach nobody.
    poll.reserved = true;
    try {
      const answer = await this.handOverAgain(poll.session, again);
      if (answer.jobs.length > 0) poll.settle(answer);
    } catch (error) {
      // They are offered again after the same pause.
      const { session } = poll;
      state.log.warn({ worker: session.id, error: messageOf(error) }, 'jobs could not be offered again');
    } finally {
      poll.reserved = false;
      state.wakeClaiming();
    }
  }

  /**
   * Ends the session, at the request of its worker or of an operator while the worker may still run. Attempts that
   * were handed over may be running, even if no heartbeat has listed them yet, so they are lost. Only if the worker
   * says that all it received is settled, those it never acknowledged cannot have started, and wait again.
   */
  async leave(tenant: string, workerId: string, settled: boolean): Promise<void> {
    const { state } = this;
    const session = this.session(tenant, workerId);
    this.close(session, 'the worker left');
    const held = session.running.all();
    const isUntouched = (running: Running) => settled && !running.acknowledged;
    await this.reconciler.takeBack(held.filter(isUntouched));
    await this.lose(
      held.filter((running) => !isUntouched(running)),
      'the worker left',
    );
    await state.write(() => forgetWorkers(state.hot, state.term, [workerId]));
  }

  /** Requeues claims whose sessions ended before the hand-over. */
  async giveBack(orphans: readonly Running[]): Promise<void> {
    await this.reconciler.giveBack(orphans);
  }

  /** Gives the worker no further jobs. */
  async drain(tenant: string, workerId: string): Promise<void> {
    const { state } = this;
    const session = this.session(tenant, workerId);
    const lastSeen = session.lastSeen;
    await state.write(() =>
      seeWorkers(state.hot, state.term, [{ id: workerId, lastSeen, state: 'draining' }]),
    );
    session.draining = true;
    for (const poll of session.polls) poll.settle({ epoch: state.term.epoch, jobs: [] });
  }

  /** Counts a report as a sign of life of its session, if that still exists. */
  seen(tenant: string, workerId: string): void {
    const session = this.state.sessions.get(workerId);
    if (session?.owner === tenant) session.seen(this.state.clock);
  }

  /**
   * Tells the worker that the job of its attempt was cancelled: through an open poll, if there is one, else with its
   * next heartbeat. An attempt that was handed on ends at once, because no worker has to confirm.
   */
  async cancelled(running: Running): Promise<void> {
    if (running.isHandedOn) {
      await this.finisher.end(running.id, running.fence, { outcome: 'cancelled', error: null }, null);
      return;
    }
    const stop = [{ jobId: running.id, fence: running.fence }];
    const polls = this.state.sessions.get(running.worker)?.polls ?? [];
    for (const poll of polls) poll.settle({ epoch: this.state.term.epoch, jobs: [], stop });
  }

  /** A session as the API shows it. */
  view(row: WorkerRow): WorkerView {
    const session = this.state.sessions.get(row.id);
    const { replaces: _, tokens: __, ...registration } = JSON.parse(row.registration) as WorkerRegistration;
    const state: WorkerState = session ? (session.draining ? 'draining' : 'alive') : 'dead';
    return {
      id: row.id,
      tenant: row.tenant,
      state,
      ...registration,
      rate: registration.rate ?? null,
      shared: registration.shared ?? false,
      running: session?.running.size ?? 0,
      registeredAt: new Date(row.registeredAt).toISOString(),
      lastSeen: new Date(session?.lastSeen ?? row.lastSeen).toISOString(),
    };
  }

  /** Ends silent sessions, offers unacknowledged attempts again, ends overdue attempts, saves signs of life. */
  async runOnce(): Promise<void> {
    const { state } = this;
    const now = state.clock.steady();
    for (const session of [...state.sessions.values()]) {
      if (now - session.heardAt > state.config.workerTimeout)
        await this.bury(session, 'the worker was silent for too long');
      else this.offerAgain(session);
    }
    const overdue: Promise<boolean>[] = [];
    for (const running of state.running.values()) {
      const end = this.overdueEnd(running, now);
      if (end) overdue.push(this.finisher.end(running.id, running.fence, end, null));
    }
    await Promise.all(overdue);
    if (now - this.savedAt >= SAVE_EVERY_MS) await this.save(now);
  }

  private async save(now: number): Promise<void> {
    const { state } = this;
    this.savedAt = now;
    const sessions = [...state.sessions.values()].map((session) => ({
      id: session.id,
      lastSeen: session.lastSeen,
      state: session.draining ? 'draining' : 'alive',
    }));
    if (sessions.length > 0) await state.write(() => seeWorkers(state.hot, state.term, sessions));
  }

  /** Closes a session; it gets no jobs from here on. */
  private close(session: WorkerSession, why: string): void {
    const { state } = this;
    state.closeSession(session);
    for (const poll of session.polls) poll.settle({ epoch: state.term.epoch, jobs: [] });
    const { name } = session;
    state.log.info({ worker: session.id, name, running: session.running.size, why }, 'worker session ended');
  }

  /** Ends a dead session; its attempts are lost. */
  private async bury(session: WorkerSession, why: string): Promise<void> {
    const { state } = this;
    this.close(session, why);
    const lastSeen = session.lastSeen;
    await state.write(() => seeWorkers(state.hot, state.term, [{ id: session.id, lastSeen, state: 'dead' }]));
    await this.lose(session.running.all(), why);
  }

  private async lose(attempts: readonly Running[], why: string): Promise<void> {
    const end: AttemptEnd = { outcome: 'lost', error: lost(why) };
    await Promise.all(attempts.map(({ id, fence }) => this.finisher.end(id, fence, end, null)));
  }

  /** How the leader ends an attempt that its worker should have ended by now; null while it may run on. */
  private overdueEnd(running: Running, now: number): AttemptEnd | null {
    const { state } = this;
    if (running.isHandedOn) {
      if (running.cancelledAt !== null) return { outcome: 'cancelled', error: null };
      return now > running.deadline ? timedOut(running) : null;
    }
    if (!state.sessions.has(running.worker)) {
      // Its session ended before the claim was committed, or never sent a heartbeat to this leader.
      const overdue = now - running.handedAt > state.config.workerTimeout;
      return overdue ? { outcome: 'lost', error: lost('its worker is not there') } : null;
    }
    if (running.cancelledAt !== null && now - running.cancelledAt > GRACE_MS) {
      const error = { code: 'CANCELLED', message: 'Cancelled; the worker did not confirm in time.' };
      return { outcome: 'cancelled', error };
    }
    if (now - running.since > running.timeoutMs + GRACE_MS + state.config.workerTimeout) {
      return timedOut(running);
    }
    return null;
  }

  /**
   * The session of a worker. A session that is unknown here may be known to another leader, so only a leader whose term
   * is trusted says that it is unknown: the worker would register anew and thereby lose what it runs.
   */
  private session(tenant: string, workerId: string): WorkerSession {
    const session = this.state.sessions.get(workerId);
    if (!session || session.owner !== tenant) {
      if (!this.state.term.trusted && stands('trust')) throw noLeader();
      throw new PunctualError(
        'WORKER_NOT_FOUND',
        `No worker ${workerId} is registered with this leader; register again.`,
      );
    }
    return session;
  }
}

function timedOut({ timeoutMs }: Running): AttemptEnd {
  const message = `The attempt did not end within ${formatDuration(timeoutMs)}.`;
  return { outcome: 'timed-out', error: { code: 'TIMEOUT', message } };
}

function lost(why: string): JobError {
  return { code: 'LOST', message: `The attempt was lost: ${why}.` };
}
