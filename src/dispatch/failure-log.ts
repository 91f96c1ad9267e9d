import type { Clock } from '../core/clock.js';
import type { JobError } from '../core/job.js';
import { LineSampler } from '../core/line-sampler.js';
import type { Log } from '../core/log.js';

/** A job that has failed for good, as far as whoever ended it knows it. */
export interface FailedJob {
  readonly id: string;
  readonly tenant: string;
  /** Null for an inline target, or if it is not known. */
  readonly task: string | null;
  readonly queue?: string | undefined;
  /** The attempt that was the last; missing if the job never started. */
  readonly attempt?: number;
}

/** The longest part of an error's message that a log line shows. */
export const MAX_ERROR_LENGTH = 500;

/**
 * The lines about jobs that have failed for good, in the log of the leader. Jobs may fail by the ten thousand a second;
 * of each task a few lines a second are written, and how many were not.
 */
export class FailureLog {
  private readonly lines: LineSampler;

  constructor(
    private readonly log: Log,
    clock: Pick<Clock, 'after'>,
  ) {
    this.lines = new LineSampler(clock, (subject, count) => {
      const of = subject === '' ? 'several tasks' : subject;
      log.warn({ count, of }, 'more jobs have failed for good, which are not listed');
    });
  }

  failed({ id, tenant, task, queue, attempt }: FailedJob, { code, message }: JobError): void {
    const subject = `${tenant}/${task ?? '(no task)'}`;
    if (!this.lines.allows(subject)) return;
    this.log.warn(
      { job: id, tenant, task, queue, attempt, code, error: message.slice(0, MAX_ERROR_LENGTH) },
      task === null ? 'a job has failed for good' : `a job of ${task} has failed for good`,
    );
  }

  /** Tells how many lines were left out; called when the term is over. */
  close(): void {
    this.lines.close();
  }
}
