import { SETTINGS } from '../core/config.js';
import { MAX_DURATION_MS } from '../core/duration.js';
import { PunctualError } from '../core/errors.js';
import type { JobSubmission } from '../core/job.js';
import { callInTransaction, requireTransaction, type TransactionClient } from './transaction-client.js';

const SUBMIT_JOB = 'SELECT punctual.submit_job($1, $2) AS id';

/**
 * Submits a job in the caller's own transaction: the job exists once that commits. The submission is checked here first,
 * so that a mistake does not end the transaction; the operator's limits are checked by the SQL function, which knows
 * them, and by the leader.
 */
export async function submitInTransaction(
  tx: TransactionClient,
  tenant: string,
  submission: JobSubmission,
): Promise<string> {
  requireTransaction(tx);
  // Loading the schemas takes longer than loading the rest of a client, and few programs submit in transactions.
  const { parseSubmission } = await import('../core/submission.js');
  parseSubmission(submission, {
    now: Date.now(),
    maxPayload: Number.MAX_SAFE_INTEGER,
    jobTimeout: SETTINGS.jobTimeout.default,
    maxJobTimeout: MAX_DURATION_MS,
    allowCommands: true,
    maxDepth: SETTINGS.maxDepth.max ?? Number.MAX_SAFE_INTEGER,
  });
  const { id } = await callInTransaction(tx, SUBMIT_JOB, [tenant, JSON.stringify(submission)]);
  if (typeof id === 'string') return id;
  throw new PunctualError('INTERNAL', 'The database took the job but gave no id; run "punctual doctor".');
}
