import { SETTINGS } from '../core/config.js';
import { PunctualError } from '../core/errors.js';
import type { JobSubmission } from '../core/job.js';
import { asPunctualError } from '../worker/failure.js';
import type { Transport } from '../worker/transport.js';

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
  for (const jobs of inChunks(submissions)) {
    const retry = jobs.every((job) => job.key !== undefined);
    try {
      const { ids } = await transport.request<{ ids: string[] }>('POST', '/v1/jobs/bulk', {
        body: { jobs },
        retry,
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

/** Cuts submissions into pieces within the limits of one bulk request. */
export function* inChunks(
  submissions: readonly JobSubmission[],
  maxJobs: number = SETTINGS.maxBulkJobs.default,
  maxBytes: number = SETTINGS.maxBulkBytes.default,
): Generator<readonly JobSubmission[]> {
  let start = 0;
  let bytes = ENVELOPE_BYTES;
  for (let i = 0; i < submissions.length; i++) {
    const size = Buffer.byteLength(JSON.stringify(submissions[i])) + 1;
    if (i > start && (i - start >= maxJobs || bytes + size > maxBytes)) {
      yield submissions.slice(start, i);
      start = i;
      bytes = ENVELOPE_BYTES;
    }
    bytes += size;
  }
  if (start < submissions.length) yield submissions.slice(start);
}
