import type { Clock } from '../../core/clock.js';
import type { PunctualError } from '../../core/errors.js';
import type { Execution } from '../../core/execution.js';
import type { WorkerGateway } from '../../core/gateway.js';
import type { TargetType } from '../../core/job.js';
import type { JobContext } from '../../core/task.js';
import type { TaskDefinition } from '../../core/task-definition.js';
import type { Assignment, SessionKey } from '../../core/wire.js';
import type { ResolvedWorkerOptions } from '../worker-options.js';

/** Tells that an attempt is to stop: what a runner listens to that makes no use of the signal, which costs much more. */
export interface Stop {
  /** Whether it was told to. */
  readonly isTold: boolean;
  /** Why; undefined if it was not told. */
  readonly reason: unknown;
  /** How the attempt ran a program; reported with its result, whatever that is. */
  execution?: Execution | undefined;
  /** Resolves when nothing is left of what the attempt has started, and is undefined then: its slot stays taken until then. */
  gone?: Promise<void> | undefined;
  /** Calls back with the reason, not if it was told already. There is one listener; null takes it away. */
  listen(listener: ((reason: unknown) => void) | null): void;
}

/** The worker that a runner is part of. */
export interface RunnerHost {
  readonly gateway: WorkerGateway;
  readonly session: () => SessionKey;
  readonly options: Pick<
    ResolvedWorkerOptions,
    'allowAddresses' | 'publicUrl' | 'maxResultBytes' | 'maxLogBytes' | 'stopGraceMs' | 'exec'
  >;
  /** The silence after which its leader declares it dead. */
  readonly workerTimeoutMs: () => number;
  /** The addresses of the nodes that the worker itself uses; empty for a worker inside of one. */
  readonly urls: readonly string[];
  /** The server's clock; that of this machine may be wrong. */
  readonly clock: Pick<Clock, 'now'>;
  readonly onWarning: (warning: PunctualError) => void;
}

/** Runs the attempts of one kind of target. */
export interface Runner {
  readonly target: TargetType;
  /** Whether it runs code of users in this process, from which the process is guarded. */
  readonly runsUserCode: boolean;
  /** The names of its handlers; empty for other targets. */
  readonly tasks: readonly string[];
  /** The queues that jobs of its tasks wait in, unless their submission names another. */
  readonly queues: readonly string[];
  /** What it can publish about its tasks; missing for other targets. */
  readonly definitions?: readonly (TaskDefinition & { readonly name: string })[];
  /** Called once, before anything runs. */
  open?(host: RunnerHost): void;
  /** Called once, before the worker registers; the worker does not start if it throws. */
  prepare?(): Promise<void>;
  /** Called when nothing runs any more. */
  close?(): Promise<void>;
  /**
   * Does the work and returns its result, directly or as a promise. A thrown value fails the attempt; one with
   * `retryable: false` fails the job. `HANDED_ON` leaves the end of the attempt to whoever has its token.
   */
  run(assignment: Assignment, context: JobContext, stop?: Stop): unknown;
}

/** The same of a signal, for who has nothing else. */
export function stopOf(signal: AbortSignal): Stop {
  let current: (() => void) | null = null;
  return {
    get isTold() {
      return signal.aborted;
    },
    get reason() {
      return signal.reason;
    },
    listen: (listener) => {
      if (current) signal.removeEventListener('abort', current);
      current = listener && (() => listener(signal.reason));
      if (current) signal.addEventListener('abort', current);
    },
  };
}
