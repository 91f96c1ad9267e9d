import { type BatchSubmission, NOT_OF_MEMBERS, type OnMemberFailure } from './batch.js';
import { parseDuration } from './duration.js';
import { type FieldError, invalid } from './errors.js';
import {
  type JobDefinition,
  type ParsedSubmission,
  parseSubmissions,
  type SubmissionContext,
} from './submission.js';

/** From what a user wrote about a batch to one that can be stored. */

/** A batch that can be stored. */
export interface ParsedBatch {
  readonly onFailure: OnMemberFailure;
  readonly startTimeoutMs: number | null;
  readonly members: readonly ParsedSubmission[];
  /** The different queues and tasks of its members. */
  readonly places: readonly BatchPlace[];
}

/** What a member is in, as far as restrictions go. */
export interface BatchPlace {
  readonly queue: string;
  readonly task: string | null;
}

/** A batch whose members are not checked yet. */
export interface BatchForm extends Omit<BatchSubmission, 'jobs'> {
  readonly jobs: readonly unknown[];
}

/** Fields that members of the batch of a schedule do not have either. */
const NOT_OF_SCHEDULED = { runAt: 'the schedule says when they are due; give a "delay"' } as const;

/** Checks the members; throws INVALID_REQUEST with a pointer to everything that is wrong. */
export async function parseBatch(
  { jobs, onFailure = 'cancel-rest', startTimeout }: BatchForm,
  context: SubmissionContext,
  /** Where a schedule has it; missing for a submission. */
  ofSchedule?: { readonly pointer: string },
): Promise<ParsedBatch> {
  const pointer = `${ofSchedule?.pointer ?? ''}/jobs`;
  refuseFields(jobs, pointer, ofSchedule ? { ...NOT_OF_MEMBERS, ...NOT_OF_SCHEDULED } : NOT_OF_MEMBERS);
  const parsed = await parseSubmissions(jobs, context, { pointerOf: (i) => `${pointer}/${i}` });
  const members = asMembers(parsed);
  const startTimeoutMs = startTimeout === undefined ? null : parseDuration(startTimeout);
  return { onFailure, startTimeoutMs, members, places: placesOf(members) };
}

/** Fields whose meaning belongs to the batch are refused, never ignored. */
function refuseFields(
  jobs: readonly unknown[],
  pointer: string,
  refused: Readonly<Record<string, string>>,
): void {
  const errors: FieldError[] = [];
  for (const [i, job] of jobs.entries()) {
    if (typeof job !== 'object' || job === null) continue;
    for (const [field, detail] of Object.entries(refused)) {
      if ((job as Record<string, unknown>)[field] !== undefined)
        errors.push({ pointer: `${pointer}/${i}/${field}`, detail: `is not for members: ${detail}` });
    }
  }
  if (errors.length > 0) throw invalid(errors.slice(0, MOST_ERRORS));
}

const MOST_ERRORS = 100;

/** Retries belong to the batch: a member has one attempt. What its task says about retries is for jobs on their own. */
function asMembers(submissions: readonly ParsedSubmission[]): ParsedSubmission[] {
  // Consecutive jobs of one kind share their definition, which is then converted once.
  const members = new Map<JobDefinition, JobDefinition>();
  return submissions.map(({ definition, payload }) => {
    const retry = { ...definition.retry, maxAttempts: 1, onWorkerLost: { maxAttempts: 1 } };
    const member = members.get(definition) ?? { ...definition, retry };
    members.set(definition, member);
    return { definition: member, payload };
  });
}

function placesOf(submissions: readonly ParsedSubmission[]): BatchPlace[] {
  const places = new Map<string, BatchPlace>();
  for (const { definition } of submissions) {
    const { queue, task } = definition;
    places.set(`${queue} ${task ?? ''}`, { queue, task });
  }
  return [...places.values()];
}
