import { parseDuration } from '../core/duration.js';
import { asPunctualError, PunctualError } from '../core/errors.js';
import type { WorkerGateway } from '../core/gateway.js';
import { stands } from '../core/test-switches.js';
import type { WorkerRegistration, WorkerWelcome } from '../core/wire.js';
import { GrowingPause, pause } from '../transport/pause.js';
import type { ServerClock } from './worker-clock.js';
import type { WorkerEvents } from './worker-options.js';

const REGISTER_TIMEOUT_MS = 10_000;

interface RegistrationParts {
  readonly gateway: WorkerGateway;
  readonly registration: WorkerRegistration;
  readonly clock: ServerClock;
  /** The session of an earlier process that is known to be over; empty when there is none to speak of. */
  readonly previousSession: () => string;
  /** Called when there is a session, the first or a new one. */
  readonly onRegistered: (workerId: string) => void;
  /** Called when another leader than the one known so far has answered. */
  readonly onNewEpoch: () => void;
  readonly onWarning: WorkerEvents['onWarning'];
}

/**
 * The worker's standing with a shard's leader: its id, and the highest epoch it has seen of each shard.
 * Answers of a lower epoch come from a leader that has been replaced without knowing it; following them could
 * stop jobs the new leader counts on, so they are dropped.
 */
export class Session {
  readonly #parts: RegistrationParts;
  readonly #highestEpochs = new Map<number, number>();
  #welcome: WorkerWelcome | null = null;
  #registeredAt = Number.NEGATIVE_INFINITY;
  #registering: Promise<void> | null = null;

  constructor(parts: RegistrationParts) {
    this.#parts = parts;
  }

  /** Empty before the first registration. */
  get workerId(): string {
    return this.#welcome?.workerId ?? '';
  }

  /** When the registration was sent, on the process's monotonic clock: the leader heard of the worker then or later. */
  get registeredAt(): number {
    return this.#registeredAt;
  }

  /** The highest epoch seen of the session's shard. */
  get epoch(): number {
    return this.#highestEpochs.get(this.#welcome?.shard ?? -1) ?? 0;
  }

  get heartbeatIntervalMs(): number {
    return parseDuration(this.#welcome?.heartbeatInterval ?? '') ?? 3_000;
  }

  get workerTimeoutMs(): number {
    return parseDuration(this.#welcome?.workerTimeout ?? '') ?? 10_000;
  }

  /** Takes in the epoch of an answer; false when the answer must be dropped. */
  accepts(epoch: number): boolean {
    const highest = this.epoch;
    if (epoch < highest) return !stands('answer-epoch');
    if (epoch > highest) {
      this.#highestEpochs.set(this.#welcome?.shard ?? -1, epoch);
      this.#parts.onNewEpoch();
    }
    return true;
  }

  /**
   * Registers, trying until a leader answers or the signal aborts. What a leader refuses for good (a wrong
   * key, a bad name) is thrown, unless the worker has been in and only has to come back.
   */
  async register(signal: AbortSignal): Promise<void> {
    const growing = new GrowingPause(100, 2_000, this.#parts.gateway.triesAtOnce);
    const comesBack = this.#welcome !== null;
    while (!signal.aborted) {
      let error: PunctualError | undefined;
      try {
        if (await this.#registerOnce(signal)) return;
      } catch (thrown) {
        if (signal.aborted) return;
        error = asPunctualError(thrown);
        if (!comesBack && error.status < 500) throw error;
        this.#parts.onWarning?.(error);
      }
      await pause(growing.nextMs(error), signal);
    }
  }

  /**
   * Registers anew after a leader did not know `workerId`; several who notice share one registration. False
   * when that had been done before.
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
    // A worker has one session: what the one before still holds need not wait for its timeout.
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
      // A promoted replica can lack terms that this worker has seen. Its leader takes one above them when it is shown them
      // by a worker that it knows, which it does only now.
      const heartbeat = { epoch: highest, running: [] };
      await gateway.heartbeat(welcome.workerId, heartbeat, limit).catch(() => undefined);
      return false;
    }
    clock.compare(welcome.now, askedAt);
    this.#highestEpochs.set(welcome.shard, welcome.epoch);
    this.#welcome = welcome;
    this.#registeredAt = askedAt;
    onRegistered(welcome.workerId);
    return true;
  }
}
