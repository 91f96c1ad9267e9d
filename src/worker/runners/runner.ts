import type { TargetType } from '../../core/job.js';
import type { JobContext } from '../../core/task.js';
import type { TaskDefinition } from '../../core/task-definition.js';
import type { Assignment } from '../../core/wire.js';

/** Runs the attempts of one kind of target. */
export interface Runner {
  readonly target: TargetType;
  /** The names of its handlers; empty for other targets. */
  readonly tasks: readonly string[];
  /** The queues that jobs of its tasks wait in, unless their submission names another. */
  readonly queues: readonly string[];
  /** What it can publish about its tasks; missing for other targets. */
  readonly definitions?: readonly (TaskDefinition & { readonly name: string })[];
  /**
   * Does the work and returns its result, directly or as a promise. A thrown value fails the attempt; one with
   * `retryable: false` fails the job.
   */
  run(assignment: Assignment, context: JobContext): unknown;
}
