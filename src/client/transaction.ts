import { SETTINGS } from '../core/config.js';
import { MAX_DURATION_MS } from '../core/duration.js';
import { PunctualError } from '../core/errors.js';
import type { JobSubmission } from '../core/job.js';

/** A Postgres client that is inside a transaction; a client of `pg` is one. */
export interface TransactionClient {
  query(text: string, values: unknown[]): Promise<{ readonly rows: readonly unknown[] }>;
}

const SUBMIT_JOB = 'SELECT punctual.submit_job($1, $2) AS id';

/**
 * Submits a job in the caller's own transaction: the job exists if and when that commits. It is checked here,
 * because the database takes what it is given; only the operator's limit of timeouts is not known here.
 */
export async function submitInTransaction(
  tx: TransactionClient,
  tenant: string,
  submission: JobSubmission,
): Promise<string> {
  // The schemas take longer to load than all the rest of a client, and few programs submit in transactions.
  const { parseSubmission } = await import('../core/submission.js');
  parseSubmission(submission, {
    now: Date.now(),
    maxPayload: SETTINGS.maxPayload.default,
    jobTimeout: SETTINGS.jobTimeout.default,
    maxJobTimeout: MAX_DURATION_MS,
    maxDepth: SETTINGS.maxDepth.default,
  });
  const { rows } = await tx.query(SUBMIT_JOB, [tenant, JSON.stringify(submission)]);
  const id = (rows[0] as { id?: unknown } | undefined)?.id;
  if (typeof id !== 'string') {
    throw new PunctualError('INTERNAL', 'The database took the job but gave no id; run "punctual doctor".');
  }
  return id;
}
