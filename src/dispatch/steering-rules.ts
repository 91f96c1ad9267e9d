import { assertNever, type ErrorCode } from '../core/errors.js';
import type { JobState } from '../core/job.js';
import type { ManyVerb } from '../core/wire.js';

/** What decides whether a job can be changed. */
export interface Steered {
  readonly id: string;
  readonly place: 'live' | 'later' | 'history';
  readonly state: JobState;
  readonly held: boolean;
  readonly atMostOnce: boolean;
  /** The workflow that it is a step of. */
  readonly workflow: string | null;
  /** The batch that it is a member of. */
  readonly batch: string | null;
}

/** Why a job cannot be changed. */
export interface Refusal {
  readonly code: ErrorCode;
  readonly detail: string;
}

/** The states that a job may have for a change; the first of a redrive is meant when none is named. */
export const STATES_FOR = {
  cancel: ['blocked', 'pending', 'running'],
  hold: ['blocked', 'pending'],
  release: ['blocked', 'pending'],
  redrive: ['failed', 'cancelled'],
  delete: ['succeeded', 'failed', 'cancelled', 'skipped'],
} as const satisfies Readonly<Record<ManyVerb, readonly JobState[]>>;

/** Null if the job can be changed in this way, else why not. */
export function refusalOf(verb: ManyVerb, job: Steered): Refusal | null {
  const { id, state } = job;
  const hasEnded = job.place === 'history';
  if (job.batch && (verb === 'hold' || verb === 'release' || verb === 'redrive'))
    return ofBatch(id, job.batch);
  switch (verb) {
    case 'cancel':
      return hasEnded ? ended(job) : null;
    case 'hold':
      if (hasEnded || state === 'running') return hasEnded ? ended(job) : running(job);
      return job.held ? { code: 'JOB_HELD', detail: `Job ${id} is on hold already.` } : null;
    case 'release':
      if (hasEnded || state === 'running') return hasEnded ? ended(job) : running(job);
      return job.held ? null : { code: 'JOB_NOT_HELD', detail: `Job ${id} is not on hold.` };
    case 'redrive':
      if (!hasEnded) return { code: 'JOB_NOT_ENDED', detail: `Job ${id} has not ended.` };
      if (job.workflow !== null) return stepOf(job, 'retry the step or the workflow by themselves');
      if (job.atMostOnce)
        return {
          code: 'AT_MOST_ONCE',
          detail: `Job ${id} is at-most-once and has ended: it is not run again, whether it ever started or not.`,
        };
      if ((STATES_FOR.redrive as readonly JobState[]).includes(state)) return null;
      return { code: 'JOB_ENDED', detail: `Job ${id} ${state}; there is nothing to retry.` };
    case 'delete':
      if (!hasEnded) return { code: 'JOB_NOT_ENDED', detail: `Job ${id} has not ended; cancel it first.` };
      return job.workflow === null ? null : stepOf(job, 'its history goes with that of the workflow');
    default:
      return assertNever(verb);
  }
}

/** The refusal for a step of a workflow, which is kept together. */
function stepOf({ id, workflow }: Steered, what: string): Refusal {
  return { code: 'STEP_OF_WORKFLOW', detail: `Job ${id} is a step of workflow ${workflow}: ${what}.` };
}

/** The refusal for a job that the tenant does not have. */
export function notFound(id: string): Refusal {
  return { code: 'JOB_NOT_FOUND', detail: `There is no job ${id}.` };
}

/** The refusal for a member of a batch. */
export function ofBatch(id: string, batch: string): Refusal {
  return {
    code: 'BATCH_MEMBER',
    detail: `Job ${id} is a member of batch ${batch}, which is steered as a whole.`,
  };
}

/** The refusal for a job that has ended. */
export function ended({ id, state }: Pick<Steered, 'id' | 'state'>): Refusal {
  return { code: 'JOB_ENDED', detail: `Job ${id} has already ended: ${state}.` };
}

/** The refusal for a job that runs. */
export function running({ id }: Pick<Steered, 'id'>): Refusal {
  return { code: 'JOB_STARTED', detail: `Job ${id} is running.` };
}
