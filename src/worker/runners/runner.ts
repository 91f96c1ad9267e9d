import type { TargetType } from '../../core/job.js';
import type { JobContext } from '../../core/task.js';
import type { Assignment } from '../../core/wire.js';

/** Runs the attempts of one kind of target. */
export interface Runner {
  readonly target: TargetType;
  /** Names of the handlers it has; empty for targets without names. */
  readonly tasks: readonly string[];
  /**
   * Does the work and gives its result, directly or as a promise. Throwing fails the attempt; a thrown value
   * with `retryable: false` fails the job.
   */
  run(assignment: Assignment, context: JobContext): unknown;
}
