import { asPunctualError, type PunctualError } from '../core/errors.js';
import type { WorkerGateway } from '../core/gateway.js';
import type { Heartbeat, HeartbeatAnswer, SessionKey } from '../core/wire.js';
import { pause } from '../transport/pause.js';
import { monotonic } from './worker-clock.js';

/** Sends heartbeats at their interval, from this thread or from another. */
export interface Heartbeats {
  start(): void;
  /** Sends a heartbeat now. */
  wake(): void;
  /** Resolves when no more heartbeats are sent. */
  stop(): Promise<void>;
}

/** The timing of heartbeats. */
export interface HeartbeatPace {
  readonly intervalMs: number;
  /** How long one heartbeat may take before it is aborted and sent again. */
  readonly limitMs: number;
}

/** One heartbeat to send. */
export interface HeartbeatRound {
  /** Grows with every round, so that an answer can be matched with its heartbeat. */
  readonly number: number;
  readonly session: SessionKey;
  readonly heartbeat: Heartbeat;
  readonly pace: HeartbeatPace;
}

/** An answer to a heartbeat, with its times on the process's monotonic clock. */
export interface AnsweredHeartbeat {
  readonly round: number;
  readonly workerId: string;
  readonly answer: HeartbeatAnswer;
  readonly askedAt: number;
  readonly answeredAt: number;
}

/** What heartbeats need of the worker. */
export interface HeartbeatSource {
  pace(): HeartbeatPace;
  /** Makes a round that lists the attempts the worker holds now. */
  nextRound(): HeartbeatRound;
  answered(answered: AnsweredHeartbeat): void;
  /** Called when a heartbeat was not answered, or was answered with an error. */
  failed(workerId: string, error: PunctualError): Promise<void>;
}

/** A heartbeat that was not answered is followed by the next after this time instead of the interval. */
const RETRY_MS = 500;

interface HeartbeatLoopParts {
  /** Sends one heartbeat and handles its answer; rejects when there was none. */
  readonly beat: (signal: AbortSignal) => Promise<void>;
  readonly pace: () => HeartbeatPace;
}

/** Sends heartbeats from this thread: at their interval, or at once when woken. */
export class HeartbeatLoop implements Heartbeats {
  readonly #parts: HeartbeatLoopParts;
  readonly #stopped = new AbortController();
  #sleep = new AbortController();
  #ended: Promise<void> | null = null;

  constructor(parts: HeartbeatLoopParts) {
    this.#parts = parts;
  }

  start(): void {
    this.#ended ??= this.#run();
  }

  /** Whether it was told to stop; a heartbeat that fails then means nothing. */
  get isStopped(): boolean {
    return this.#stopped.signal.aborted;
  }

  wake(): void {
    this.#sleep.abort();
  }

  async stop(): Promise<void> {
    this.#stopped.abort();
    this.wake();
    await this.#ended;
  }

  async #run(): Promise<void> {
    while (!this.#stopped.signal.aborted) {
      this.#sleep = new AbortController();
      const answered = await this.#beatOnce();
      const interval = this.#parts.pace().intervalMs;
      const restMs = answered ? interval : Math.min(RETRY_MS * (0.5 + Math.random()), interval);
      if (!this.#stopped.signal.aborted) await pause(restMs, this.#sleep.signal);
    }
  }

  async #beatOnce(): Promise<boolean> {
    const limit = new AbortController();
    // The transport switches to another node when the reason is a timeout.
    const late = () =>
      limit.abort(new DOMException('The heartbeat was not answered in time.', 'TimeoutError'));
    const timer = setTimeout(late, this.#parts.pace().limitMs);
    const onStop = () => limit.abort();
    this.#stopped.signal.addEventListener('abort', onStop, { once: true });
    try {
      await this.#parts.beat(limit.signal);
      return true;
    } catch {
      return false;
    } finally {
      clearTimeout(timer);
      this.#stopped.signal.removeEventListener('abort', onStop);
    }
  }
}

/** Sends one round and returns the answer with its times. */
export async function sendRound(
  gateway: Pick<WorkerGateway, 'heartbeat'>,
  round: HeartbeatRound,
  signal: AbortSignal,
): Promise<AnsweredHeartbeat> {
  const { number, session, heartbeat } = round;
  const askedAt = monotonic.now();
  const answer = await gateway.heartbeat(session, heartbeat, signal);
  return { round: number, workerId: session.workerId, answer, askedAt, answeredAt: monotonic.now() };
}

/** Heartbeats from this thread, which get their rounds from the worker and pass the answers to it. */
export function heartbeatsFromThisThread(
  gateway: Pick<WorkerGateway, 'heartbeat'>,
  source: HeartbeatSource,
): HeartbeatLoop {
  const loop: HeartbeatLoop = new HeartbeatLoop({
    pace: () => source.pace(),
    beat: async (signal) => {
      const round = source.nextRound();
      try {
        source.answered(await sendRound(gateway, round, signal));
      } catch (error) {
        if (!loop.isStopped) await source.failed(round.session.workerId, asPunctualError(error));
        throw error;
      }
    },
  });
  return loop;
}
