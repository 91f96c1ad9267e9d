import { invalid, PunctualError } from '../core/errors.js';
import { isUuid } from '../core/uuid.js';
import { callInTransaction, requireTransaction, type TransactionClient } from './transaction-client.js';

const CANCEL_JOB = 'SELECT punctual.cancel_job($1, $2)';
const CANCEL_JOB_OF_KEY = 'SELECT punctual.cancel_job_of_key($1, $2) AS id';

/** Cancels a job, by its id or its key, in the caller's own transaction: once that commits, as soon as the leader sees it. */
export async function cancelInTransaction(
  tx: TransactionClient,
  tenant: string,
  job: string | { readonly key: string },
): Promise<void> {
  requireTransaction(tx);
  // What the database would refuse is refused here: there it would spoil the caller's transaction.
  if (typeof job === 'string') {
    if (!isUuid(job)) throw invalid([{ pointer: '/id', detail: 'must be the id of a job' }]);
    await callInTransaction(tx, CANCEL_JOB, [tenant, job]);
    return;
  }
  if (job.key.includes('\0')) throw noJobOfKey(job.key);
  const { id } = await callInTransaction(tx, CANCEL_JOB_OF_KEY, [tenant, job.key]);
  if (typeof id !== 'string') throw noJobOfKey(job.key);
}

/** The error about a key that no job has. */
export function noJobOfKey(key: string): PunctualError {
  return new PunctualError('JOB_NOT_FOUND', `There is no job with the key ${key}.`);
}
