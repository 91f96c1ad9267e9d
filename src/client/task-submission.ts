import {
  type AnyTaskOrName,
  checkAgainstSchema,
  commonPart,
  isTarget,
  mustBeTask,
  SUBMIT_OPTIONS,
  type SubmitOptions,
  submissionText,
  withInput,
} from '../core/build-submission.js';
import { SETTINGS } from '../core/config.js';
import { asPunctualError, invalid, PunctualError } from '../core/errors.js';
import type { JobSubmission } from '../core/job.js';
import { NOT_REPEATED, type Repetition } from '../core/keys.js';
import { checkOptions } from '../core/known-options.js';
import { checkRetry } from '../core/nested-options.js';
import type { BulkAnswer } from '../core/wire.js';
import type { Transport } from '../transport/transport.js';
import { type Headers, type RepeatableRequest, repeatableWith } from './idempotency-key.js';

const SUBMIT_MANY = 'submitMany()';

/** The submissions of many jobs; the part that all of them share is built once. */
export async function buildSubmissions(
  taskOrName: AnyTaskOrName,
  inputs: Iterable<unknown>,
  options: SubmitOptions | ((input: never, index: number) => SubmitOptions),
): Promise<JobSubmission[]> {
  mustBeTask(taskOrName);
  const all = Array.from(inputs);
  if (typeof options !== 'function') {
    mustBeForMany(options, all.length);
    checkOptions(SUBMIT_MANY, options, SUBMIT_OPTIONS);
    checkRetry(SUBMIT_MANY, options.retry);
  }
  if (typeof taskOrName !== 'string' && !isTarget(taskOrName) && taskOrName.schema)
    await Promise.all(
      all.map((input, i) => checkAgainstSchema(taskOrName, input).catch((error) => throwAbout(i, error))),
    );
  const common = typeof options === 'function' ? null : commonPart(taskOrName, options);
  return all.map((input, i) => {
    // The caller's own function may throw what it likes.
    const own = typeof options === 'function' ? options(input as never, i) : null;
    try {
      checkOptions(SUBMIT_MANY, own, SUBMIT_OPTIONS);
      checkRetry(SUBMIT_MANY, own?.retry);
      return withInput(common ?? commonPart(taskOrName, own!), input);
    } catch (error) {
      return throwAbout(i, error);
    }
  });
}

/** Throws the error with pointers that name the job of the bulk, as the API does. */
function throwAbout(index: number, error: unknown): never {
  if (!(error instanceof PunctualError) || error.errors.length === 0) throw error;
  throw invalid(error.errors.map((each) => ({ ...each, pointer: `/jobs/${index}${each.pointer}` })));
}

/** Refuses options that cannot be meant for each of many jobs. */
function mustBeForMany(options: SubmitOptions, count: number): void {
  if ('tx' in options && options.tx !== undefined) {
    const detail = 'a bulk cannot be part of your transaction; call submit() for each job';
    throw invalid([{ pointer: '/tx', detail }]);
  }
  if (options.key !== undefined && count > 1) {
    const detail =
      'one key cannot be that of several jobs; give the options as a function: (input) => ({ key: … })';
    throw invalid([{ pointer: '/key', detail }]);
  }
}

/**
 * Whether a submission whose answer was lost may be sent again: if it has a key that its job keeps. With the other modes
 * the second try would make a second job if that of the first one had started or ended meanwhile, or its window was over.
 */
export function isRepeatable({ key, keyMode = 'keep' }: JobSubmission): boolean {
  return key !== undefined && (keyMode === 'keep' || keyMode === 'replace');
}

function submissionTextOfBulk(submission: JobSubmission, index: number): string {
  try {
    return submissionText(submission);
  } catch (error) {
    return throwAbout(index, error);
  }
}

/** A bulk of several requests failed midway: the jobs in `submitted` are stored; whether later ones are is unknown. */
export class BulkError extends PunctualError {
  /** The ids of the jobs that are stored, in the order of their inputs. */
  readonly submitted: readonly string[];

  constructor(cause: PunctualError, submitted: readonly string[], total: number) {
    super(cause.code, `${submitted.length} of ${total} jobs were submitted, then: ${cause.message}`, {
      cause,
      errors: cause.errors,
      ...(cause.retryAfter !== undefined && { retryAfter: cause.retryAfter }),
    });
    this.name = 'BulkError';
    this.submitted = submitted;
  }
}

/** A job of a bulk that was submitted. */
interface Submitted {
  readonly id: string;
  readonly repetition: Repetition;
}

/** The size of a request without its jobs. */
const ENVELOPE_BYTES = 64;

/**
 * Submits any number of jobs in as few requests as the limits allow. Each request is stored as a whole or not at all;
 * it is repeated after a lost answer only if every job in it may be, or the submission has an idempotency key.
 */
export async function submitBulk(
  transport: Transport,
  submissions: readonly JobSubmission[],
  { idempotencyKey }: RepeatableRequest = {},
  headers?: Headers,
): Promise<readonly Submitted[]> {
  const submitted: Submitted[] = [];
  // Within a process nothing is written as JSON, so the limit on bytes does not apply.
  const texts = transport.inProcess ? null : submissions.map(submissionTextOfBulk);
  const sizes = texts ? texts.map((text) => Buffer.byteLength(text) + 1) : submissions.map(() => 0);
  let part = 0;
  for (const [from, to] of inChunks(sizes)) {
    const jobs = submissions.slice(from, to);
    try {
      // A node of an older version says nothing about repetitions.
      const { ids, repetitions = [] } = await transport.request<BulkAnswer>('POST', '/v1/jobs/bulk', {
        ...(texts ? { bodyText: `{"jobs":[${texts.slice(from, to).join(',')}]}` } : { body: { jobs } }),
        retry: jobs.every(isRepeatable),
        timeoutMs: 60_000,
        ...repeatableWith(idempotencyKey, headers, part),
      });
      part += 1;
      for (const id of ids) submitted.push({ id, repetition: NOT_REPEATED });
      for (const { index, replaced, differs } of repetitions) {
        submitted[from + index] = { id: ids[index]!, repetition: { repeated: true, replaced, differs } };
      }
    } catch (error) {
      if (submitted.length === 0) throw error;
      const ids = submitted.map(({ id }) => id);
      throw new BulkError(asPunctualError(error), ids, submissions.length);
    }
  }
  return submitted;
}

/** Divides a list of submissions of these sizes into ranges that fit the limits of one request. */
export function* inChunks(
  sizes: readonly number[],
  maxJobs: number = SETTINGS.maxBulkJobs.default,
  maxBytes: number = SETTINGS.maxBulkBytes.default,
): Generator<readonly [from: number, to: number]> {
  let start = 0;
  let bytes = ENVELOPE_BYTES;
  for (let i = 0; i < sizes.length; i++) {
    const size = sizes[i]!;
    if (i > start && (i - start >= maxJobs || bytes + size > maxBytes)) {
      yield [start, i];
      start = i;
      bytes = ENVELOPE_BYTES;
    }
    bytes += size;
  }
  if (start < sizes.length) yield [start, sizes.length];
}
