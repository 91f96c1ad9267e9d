import type { Clock } from '../../core/clock.js';
import type { WorkerGateway } from '../../core/gateway.js';
import type { TargetType } from '../../core/job.js';
import type { JobContext } from '../../core/task.js';
import type { TaskDefinition } from '../../core/task-definition.js';
import type { Assignment, SessionKey } from '../../core/wire.js';
import type { ResolvedWorkerOptions } from '../worker-options.js';

/** The worker that a runner is part of. */
export interface RunnerHost {
  readonly gateway: WorkerGateway;
  readonly session: () => SessionKey;
  readonly options: Pick<ResolvedWorkerOptions, 'allowAddresses' | 'publicUrl' | 'maxResultBytes'>;
  /** The addresses of the nodes that the worker itself uses; empty for a worker inside of one. */
  readonly urls: readonly string[];
  /** The server's clock; that of this machine may be wrong. */
  readonly clock: Pick<Clock, 'now'>;
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
  /** Called when nothing runs any more. */
  close?(): Promise<void>;
  /**
   * Does the work and returns its result, directly or as a promise. A thrown value fails the attempt; one with
   * `retryable: false` fails the job. `HANDED_ON` leaves the end of the attempt to whoever has its token.
   */
  run(assignment: Assignment, context: JobContext): unknown;
}
