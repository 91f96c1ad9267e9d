import { asPunctualError, type PunctualError } from '../core/errors.js';
import type { WorkerGateway } from '../core/gateway.js';
import type { Heartbeat, HeartbeatAnswer } from '../core/wire.js';
import { pause } from '../transport/pause.js';
import { monotonic } from './worker-clock.js';

/** Sends heartbeats at their interval, from wherever it does so. */
export interface Heartbeats {
  start(): void;
  /** Sends a heartbeat now instead of when its time comes. */
  wake(): void;
  /** Resolves when nothing is sent any more. */
  stop(): Promise<void>;
}

/** How heartbeats follow each other. */
export interface HeartbeatPace {
  readonly intervalMs: number;
  /** How long one heartbeat may take before it is given up and sent again. */
  readonly limitMs: number;
}

/** What one heartbeat says. */
export interface HeartbeatRound {
  /** Grows with every round, so that an answer can be matched with what it answers. */
  readonly number: number;
  readonly workerId: string;
  readonly heartbeat: Heartbeat;
  readonly pace: HeartbeatPace;
}

/** An answer with its times on the process's monotonic clock. */
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
  /** Makes a new round of what the worker holds now. */
  nextRound(): HeartbeatRound;
  answered(answered: AnsweredHeartbeat): void;
  /** Called when a heartbeat got no answer, or one that is an error. */
  failed(workerId: string, error: PunctualError): Promise<void>;
}

/** After a heartbeat that got no answer the next one follows sooner, within the worker's timeout. */
const RETRY_MS = 500;

interface HeartbeatLoopParts {
  /** Sends one heartbeat and deals with its answer; rejects when there was none. */
  readonly beat: (signal: AbortSignal) => Promise<void>;
  readonly pace: () => HeartbeatPace;
}

/** Sends heartbeats at their interval, or at once when woken, from the thread it was made in. */
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

  /** Whether it was told to stop; what fails then means nothing. */
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
    // A reason that says so lets the transport turn to another node.
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

/** Sends one round and gives the answer with its times. */
export async function sendRound(
  gateway: Pick<WorkerGateway, 'heartbeat'>,
  round: HeartbeatRound,
  signal: AbortSignal,
): Promise<AnsweredHeartbeat> {
  const { number, workerId, heartbeat } = round;
  const askedAt = monotonic.now();
  const answer = await gateway.heartbeat(workerId, heartbeat, signal);
  return { round: number, workerId, answer, askedAt, answeredAt: monotonic.now() };
}

/** A loop that asks the worker for every round and tells it every answer directly. */
export function heartbeatsFromHere(
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
        if (!loop.isStopped) await source.failed(round.workerId, asPunctualError(error));
        throw error;
      }
    },
  });
  return loop;
}
