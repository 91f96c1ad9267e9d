import { type AuditAuthor, type AuditEntry, auditEntry } from '../core/audit.js';
import { formatDuration } from '../core/duration.js';
import { PunctualError } from '../core/errors.js';
import { Loop, logFailure } from '../core/loop.js';
import { uuidv7 } from '../core/uuid.js';
import type {
  ClaimAnswer,
  FencedJob,
  Heartbeat,
  HeartbeatAnswer,
  WorkerRegistration,
  WorkerState,
  WorkerView,
  WorkerWelcome,
} from '../core/wire.js';
import { stands } from '../host/test-switches.js';
import type { Portion } from '../store/portion.js';
import { addWorker, forgetWorkers, readWorkers, seeWorkers, type WorkerRow } from '../store/workers.js';
import type { Finisher } from './finisher.js';
import { type LeaderState, noLeader } from './leader-state.js';
import { lost, OverdueAttempts } from './overdue-attempts.js';
import { Reconciler } from './reconciler.js';
import type { Running } from './running.js';
import { WorkerPolls } from './worker-polls.js';
import { type Poll, type SessionUser, type StoredRegistration, WorkerSession } from './worker-session.js';

/** How often heartbeats reach the database. */
const SAVE_EVERY_MS = 15_000;
/** The most sessions of a tenant, and the most memory that their registrations may take up. */
const MAX_SESSIONS = 10_000;
const MAX_REGISTRATION_BYTES = 32 * 1024 * 1024;
/** Dead sessions that one statement writes. */
const BURIED_AT_ONCE = 1_000;
/** How much one statement reads of the sessions of earlier terms. */
const LOADED_AT_ONCE = { rows: 500, bytes: 1024 * 1024 };

/** What a registration counts against the limits of its tenant, or of the operator. */
interface Arriving {
  readonly tenant: string | null;
  readonly operator: boolean;
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
  private readonly polls: WorkerPolls;
  private readonly overdue: OverdueAttempts;
  private readonly onError: (error: unknown) => void;

  constructor(
    private readonly state: LeaderState,
    private readonly finisher: Finisher,
  ) {
    this.savedAt = state.clock.steady();
    this.reconciler = new Reconciler(state);
    this.polls = new WorkerPolls(state, this.reconciler);
    this.overdue = new OverdueAttempts(state, finisher);
    const onError = logFailure(state.log, 'worker sessions could not be looked after');
    this.onError = (error) => {
      if (!state.isOver) onError('workers', error);
    };
    this.loop = new Loop({
      name: 'workers',
      everyMs: Math.min(1_000, state.config.workerTimeout / 4),
      pass: () => this.runOnce(),
      onError,
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
          row.operator,
        );
        session.draining = row.state === 'draining';
        session.isHeard = false;
        if (!stands('full-timeout')) session.heardAt -= state.clock.now() - row.lastSeen;
        state.openSession(session);
        last = row.id;
      }
      if (!more || state.term.over) break;
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

  async register(user: SessionUser, registration: WorkerRegistration): Promise<WorkerWelcome> {
    const { state } = this;
    const now = state.clock.now();
    const id = uuidv7(now);
    const { tenant, operator, key } = user;
    const stored: StoredRegistration = key?.limits ? { ...registration, limits: key.limits } : registration;
    const text = JSON.stringify(stored);
    const arriving = { tenant: registration.shared ? null : tenant, operator, bytes: text.length };
    this.mustHaveRoom(arriving, registration.replaces);
    this.arriving.add(arriving);
    try {
      await state.write(() =>
        addWorker(
          state.hot,
          state.term,
          { id, tenant, operator, name: registration.name, registration: text },
          now,
        ),
      );
    } finally {
      this.arriving.delete(arriving);
    }
    const session = new WorkerSession(id, tenant, text, now, state.clock, operator);
    state.openSession(session);
    if (state.events.isHeard) state.events.worker('worker.registered', session);
    const previous = state.sessions.get(registration.replaces ?? '');
    if (previous?.isOf(user)) await this.bury([previous], 'its worker registered anew');
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
  private mustHaveRoom({ tenant, operator, bytes }: Arriving, replaces: string | undefined): void {
    let count = 1;
    let total = bytes;
    const sessions = [...this.state.sessions.values()].filter(({ id }) => id !== replaces);
    for (const other of [...sessions, ...this.arriving]) {
      if (other.tenant !== tenant || other.operator !== operator) continue;
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

  async heartbeat(user: SessionUser, workerId: string, heartbeat: Heartbeat): Promise<HeartbeatAnswer> {
    const { state } = this;
    const isLater = heartbeat.epoch > state.term.epoch && stands('heartbeat-epoch');
    // A leader that was replaced must not tell a worker of the later term that it is unknown. But an epoch that anybody
    // can name proves nothing: only that of an operator's own session is believed. For all others the database is asked,
    // and only its answer ends the term.
    const known = state.sessions.get(workerId);
    const isBelieved = known?.operator === true && known.isOf(user);
    if (isLater && !isBelieved) await state.confirmTerm();
    const session = this.session(user, workerId);
    if (isLater && isBelieved) state.outdatedBy(heartbeat.epoch);
    this.hear(session);
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
    user: SessionUser,
    workerId: string,
    max: number,
    waitMs: number,
    signal?: AbortSignal,
    isWelcome: Poll['isWelcome'] = () => true,
  ): Promise<ClaimAnswer> {
    const { state } = this;
    // After the end of the term nothing would end the wait.
    if (state.isOver) throw noLeader();
    const session = this.session(user, workerId);
    this.hear(session);
    return this.polls.open(session, user, max, waitMs, signal, isWelcome);
  }

  /**
   * Ends the session, at the request of its worker or of an operator while the worker may still run. Attempts that
   * were handed over may be running, even if no heartbeat has listed them yet, so they are lost. Only if the worker
   * says that all it received is settled, those it never acknowledged cannot have started, and wait again.
   */
  async leave(user: SessionUser, workerId: string, settled: boolean): Promise<void> {
    const { state } = this;
    const session = this.session(user, workerId);
    this.close(session, 'the worker left');
    const held = session.running.all();
    const isUntouched = (running: Running) => settled && !running.acknowledged;
    await this.reconciler.takeBack(held.filter(isUntouched));
    await this.lose(
      held.filter((running) => !isUntouched(running)),
      'the worker left',
    );
    await state.write(() => forgetWorkers(state.hot, state.term, [workerId]));
    if (state.events.isHeard) state.events.worker('worker.left', session);
  }

  /** Offers claims that were never handed over to the polls of these sessions that are open; others get them with their next. */
  offer(sessions: Iterable<WorkerSession>): void {
    for (const session of sessions) this.polls.offerAgain(session);
  }

  /** Requeues claims whose sessions ended before the hand-over. */
  async giveBack(orphans: readonly Running[]): Promise<void> {
    await this.reconciler.giveBack(orphans);
  }

  /** Gives the worker no further jobs. */
  async drain(user: SessionUser, workerId: string, author?: AuditAuthor): Promise<void> {
    const { state } = this;
    const session = this.session(user, workerId);
    const lastSeen = session.lastSeen;
    const entry = author && drainEntry(author, state.clock.now(), session);
    await state.writeRequested(entry, undefined, (db, term) =>
      seeWorkers(db, term, [{ id: workerId, lastSeen, state: 'draining' }]),
    );
    state.drainSession(session);
    if (state.events.isHeard) state.events.worker('worker.draining', session);
    for (const poll of session.polls) poll.settle({ epoch: state.term.epoch, jobs: [] });
  }

  /** The attempt that a worker holds at this moment; throws if it is not, or not any more, its own. */
  heldAttempt(user: SessionUser, workerId: string, { jobId, fence }: FencedJob): Running {
    const { state } = this;
    // Memory may be behind a newer leader's, under which another attempt has begun.
    if (!state.term.trusted) throw noLeader();
    const session = this.session(user, workerId);
    const running = state.running.get(jobId);
    const isHeld = running?.fence === fence && running.worker === session.id && !running.isHandedOn;
    if (!isHeld || running.isEnding)
      throw new PunctualError(
        'STALE_FENCE',
        `Worker ${workerId} does not hold fence ${fence} of job ${jobId}.`,
      );
    session.seen(state.clock);
    return running;
  }

  /** Counts a report as a sign of life of its session, if that still exists. */
  seen(user: SessionUser, workerId: string): void {
    const session = this.state.sessions.get(workerId);
    if (session?.isOf(user)) this.hear(session);
  }

  /** Notes a sign of life; the slots of a session of an earlier term count for gangs from the first one on. */
  private hear(session: WorkerSession): void {
    const { clock, gangs } = this.state;
    const isFirst = !session.isHeard;
    session.seen(clock);
    if (isFirst) gangs.changed();
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
    const stored = JSON.parse(row.registration) as StoredRegistration;
    const { replaces: _, tokens: __, limits: ___, ...registration } = stored;
    const state: WorkerState = session ? (session.draining ? 'draining' : 'alive') : 'dead';
    return {
      id: row.id,
      tenant: row.tenant,
      state,
      ...registration,
      rate: registration.rate ?? null,
      shared: registration.shared ?? false,
      version: registration.version ?? null,
      running: session?.running.size ?? 0,
      registeredAt: new Date(row.registeredAt).toISOString(),
      lastSeen: new Date(session?.lastSeen ?? row.lastSeen).toISOString(),
    };
  }

  /** Ends silent sessions, offers unacknowledged attempts again, ends overdue attempts, saves signs of life. */
  async runOnce(): Promise<void> {
    const { state } = this;
    const now = state.clock.steady();
    const silent: WorkerSession[] = [];
    for (const session of state.sessions.values()) {
      if (now - session.heardAt > state.config.workerTimeout) silent.push(session);
      else this.polls.offerAgain(session);
    }
    // Nobody waits for it: one of their jobs may be locked by another session.
    if (silent.length > 0) void this.bury(silent, 'the worker was silent for too long').catch(this.onError);
    this.overdue.runOnce();
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

  /** Ends dead sessions; their attempts are lost. Many may die at once, with their machine or their network. */
  private async bury(sessions: readonly WorkerSession[], why: string): Promise<void> {
    const { state } = this;
    for (const session of sessions) this.close(session, why);
    for (let from = 0; from < sessions.length; from += BURIED_AT_ONCE) {
      const dead = sessions
        .slice(from, from + BURIED_AT_ONCE)
        .map(({ id, lastSeen }) => ({ id, lastSeen, state: 'dead' }));
      await state.write(() => seeWorkers(state.hot, state.term, dead));
    }
    if (state.events.isHeard) for (const session of sessions) state.events.worker('worker.dead', session);
    await this.lose(
      sessions.flatMap((session) => session.running.all()),
      why,
    );
  }

  private async lose(attempts: readonly Running[], why: string): Promise<void> {
    const end = lost(why);
    const { gangs } = this.state;
    const untouched = attempts.filter((running) => gangs.isUntouched(running));
    const begun = attempts.filter((running) => !gangs.isUntouched(running));
    await Promise.all([
      ...begun.map(({ id, fence }) => this.finisher.end(id, fence, end, null)),
      untouched.length > 0 && gangs.listener?.givenUp(untouched),
    ]);
  }

  /**
   * The session of a worker. A session that is unknown here may be known to another leader, so only a leader whose term
   * is trusted says that it is unknown: the worker would register anew and thereby lose what it runs.
   */
  private session(user: SessionUser, workerId: string): WorkerSession {
    const session = this.state.sessions.get(workerId);
    if (!session?.isOf(user)) {
      if (!this.state.term.trusted && stands('trust')) throw noLeader();
      throw new PunctualError(
        'WORKER_NOT_FOUND',
        `No worker ${workerId} is registered with this leader; register again.`,
      );
    }
    return session;
  }
}

function drainEntry(
  author: AuditAuthor,
  now: number,
  { id, name, draining, tenant }: WorkerSession,
): AuditEntry {
  const views = { before: { name, draining }, after: { name, draining: true } };
  return auditEntry(author, now, 'worker.drain', { kind: 'worker', name: id, tenant }, views);
}
