import { SETTINGS } from '../core/config.js';
import { PunctualError } from '../core/errors.js';
import type { JobSubmission } from '../core/job.js';
import { asPunctualError } from '../worker/failure.js';
import type { Transport } from '../worker/transport.js';
import { submissionText } from './submission.js';

/** A bulk of several requests broke off: the jobs in `submitted` are stored, none after them is known to be. */
export class BulkError extends PunctualError {
  /** Ids of the jobs that were stored before, in the order of their inputs. */
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

/** Room for what surrounds the jobs in a request. */
const ENVELOPE_BYTES = 64;

/**
 * Submits any number of jobs, as many as fit in each request. Each request is stored whole or not at all; it
 * is repeated after a lost answer only if every job in it has a key.
 */
export async function submitBulk(
  transport: Transport,
  submissions: readonly JobSubmission[],
): Promise<readonly string[]> {
  const submitted: string[] = [];
  // Inside a process nothing is written as JSON, so there is no size that would have to be kept to.
  const texts = transport.inProcess ? null : submissions.map(submissionText);
  const sizes = texts ? texts.map((text) => Buffer.byteLength(text) + 1) : submissions.map(() => 0);
  for (const [from, to] of inChunks(sizes)) {
    const jobs = submissions.slice(from, to);
    try {
      const { ids } = await transport.request<{ ids: string[] }>('POST', '/v1/jobs/bulk', {
        ...(texts ? { bodyText: `{"jobs":[${texts.slice(from, to).join(',')}]}` } : { body: { jobs } }),
        retry: jobs.every((job) => job.key !== undefined),
        timeoutMs: 60_000,
      });
      for (const id of ids) submitted.push(id);
    } catch (error) {
      if (submitted.length === 0) throw error;
      throw new BulkError(asPunctualError(error), submitted, submissions.length);
    }
  }
  return submitted;
}

/** Where to cut a list of submissions of these sizes, so that each piece keeps to the limits of one request. */
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
