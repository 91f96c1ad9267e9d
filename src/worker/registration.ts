import { parseDuration } from '../core/duration.js';
import { asPunctualError, PunctualError } from '../core/errors.js';
import type { WorkerGateway } from '../core/gateway.js';
import type { SessionKey, WorkerRegistration, WorkerWelcome } from '../core/wire.js';
import { stands } from '../host/test-switches.js';
import { GrowingPause, pause } from '../transport/pause.js';
import type { ServerClock } from './worker-clock.js';
import type { WorkerEvents } from './worker-options.js';

const REGISTER_TIMEOUT_MS = 10_000;
const UNREGISTERED: SessionKey = { workerId: '', shard: 0 };

interface RegistrationParts {
  readonly gateway: WorkerGateway;
  readonly registration: WorkerRegistration;
  readonly clock: ServerClock;
  /** The session of an earlier process that has ended; empty when there is none. */
  readonly previousSession: () => string;
  /** Called after each successful registration. */
  readonly onRegistered: (session: SessionKey) => void;
  /** Called when a leader of a higher epoch has answered. */
  readonly onNewEpoch: () => void;
  readonly onWarning: WorkerEvents['onWarning'];
}

/**
 * The worker's registration with the leader of a shard: its session's id, and the highest epoch it has seen of each
 * shard. An answer of a lower epoch comes from a leader that was replaced and has not noticed; it is dropped, because
 * obeying it could stop jobs that the new leader relies on.
 */
export class Registration {
  readonly #parts: RegistrationParts;
  readonly #highestEpochs = new Map<number, number>();
  #welcome: WorkerWelcome | null = null;
  #pace = paceOf(null);
  #registeredAt = Number.NEGATIVE_INFINITY;
  #registering: Promise<void> | null = null;

  constructor(parts: RegistrationParts) {
    this.#parts = parts;
  }

  /** The names of the worker's handlers. */
  get tasks(): readonly string[] {
    return this.#parts.registration.tasks;
  }

  /** Empty before the first registration. */
  get workerId(): string {
    return this.key.workerId;
  }

  /** By which leaders know the session; without an id before the first registration. */
  get key(): SessionKey {
    const { workerId, shard } = this.#welcome ?? UNREGISTERED;
    return { workerId, shard };
  }

  /** When the registration was sent, on the process's monotonic clock; the leader received it then or later. */
  get registeredAt(): number {
    return this.#registeredAt;
  }

  /** The highest epoch that was seen of the shard. */
  get epoch(): number {
    return this.#highestEpochs.get(this.key.shard) ?? 0;
  }

  get heartbeatIntervalMs(): number {
    return this.#pace.heartbeatIntervalMs;
  }

  /** Read for every attempt that starts. */
  get workerTimeoutMs(): number {
    return this.#pace.workerTimeoutMs;
  }

  /** Records the epoch of an answer; false when the answer must be dropped. */
  accepts(epoch: number, shard = this.key.shard): boolean {
    const highest = this.#highestEpochs.get(shard) ?? 0;
    if (epoch < highest) return !stands('answer-epoch');
    if (epoch > highest) {
      this.#highestEpochs.set(shard, epoch);
      this.#parts.onNewEpoch();
    }
    return true;
  }

  /**
   * Registers; tries until a leader answers or the signal aborts. An error that a retry cannot change (a wrong key, a
   * bad name) is thrown on the first registration; a worker that was registered before goes on trying.
   */
  async register(signal: AbortSignal): Promise<void> {
    const growing = new GrowingPause(100, 2_000, this.#parts.gateway.triesAtOnce);
    const wasRegistered = this.#welcome !== null;
    while (!signal.aborted) {
      let error: PunctualError | undefined;
      try {
        if (await this.#registerOnce(signal)) return;
      } catch (thrown) {
        if (signal.aborted) return;
        error = asPunctualError(thrown);
        if (!wasRegistered && error.status < 500) throw error;
        this.#parts.onWarning?.(error);
      }
      await pause(growing.nextMs(error), signal);
    }
  }

  /**
   * Registers anew after a leader did not know `workerId`; concurrent calls share one registration. False when the
   * worker has another id by now.
   */
  async renew(workerId: string, signal: AbortSignal): Promise<boolean> {
    if (workerId !== this.workerId) return false;
    this.#registering ??= this.register(signal).finally(() => {
      this.#registering = null;
    });
    await this.#registering;
    return true;
  }

  async #registerOnce(signal: AbortSignal): Promise<boolean> {
    const { gateway, registration, clock, onRegistered, onWarning } = this.#parts;
    const askedAt = clock.mark();
    const limit = AbortSignal.any([signal, AbortSignal.timeout(REGISTER_TIMEOUT_MS)]);
    // A worker has one session: naming the previous one lets the leader end it now instead of at its timeout.
    const replaces = this.workerId || this.#parts.previousSession();
    const welcome = await gateway.register({ ...registration, ...(replaces !== '' && { replaces }) }, limit);
    const highest = this.#highestEpochs.get(welcome.shard) ?? 0;
    if (welcome.epoch < highest) {
      onWarning?.(
        new PunctualError(
          'NO_LEADER',
          `A replaced leader (epoch ${welcome.epoch}, not ${highest}) answered.`,
        ),
      );
      // A promoted replica may lack terms that this worker has seen. Its leader takes a higher term when a worker it knows
      // shows it their epoch, and it knows this worker from now on.
      const heartbeat = { epoch: highest, running: [] };
      await gateway.heartbeat(welcome, heartbeat, limit).catch(() => undefined);
      return false;
    }
    clock.compare(welcome.now, askedAt);
    this.#highestEpochs.set(welcome.shard, welcome.epoch);
    this.#welcome = welcome;
    this.#pace = paceOf(welcome);
    this.#registeredAt = askedAt;
    onRegistered(this.key);
    return true;
  }
}

/** The durations of a welcome in milliseconds; the server's defaults before the first one. */
function paceOf(welcome: WorkerWelcome | null): { heartbeatIntervalMs: number; workerTimeoutMs: number } {
  return {
    heartbeatIntervalMs: parseDuration(welcome?.heartbeatInterval ?? '') ?? 3_000,
    workerTimeoutMs: parseDuration(welcome?.workerTimeout ?? '') ?? 10_000,
  };
}
