import type { PunctualError } from '../core/errors.js';
import type { Heartbeat, HeartbeatAnswer, SessionKey } from '../core/wire.js';

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
  readonly session: SessionKey;
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
