import type { Batch } from '../../../src/core/batch.js';
import type { ApiUser } from '../../node-for-tests.js';

/** Submits a batch of members of the task `work`. */
export function submitBatch(
  node: ApiUser,
  jobs: readonly Record<string, unknown>[] | number,
  more: Record<string, unknown> = {},
): Promise<Batch> {
  const members = typeof jobs === 'number' ? Array.from({ length: jobs }, () => ({})) : jobs;
  const body = { jobs: members.map((job) => ({ task: 'work', ...job })), ...more };
  return node.get('POST', '/v1/batches', { body });
}

export function readBatch(node: ApiUser, id: string): Promise<Batch> {
  return node.get('GET', `/v1/batches/${id}`);
}

/** The batch when it has ended. */
export async function endedBatch(node: ApiUser, id: string): Promise<Batch> {
  for (;;) {
    const batch = await node.get<Batch>('GET', `/v1/batches/${id}?wait=20s`);
    if (batch.endedAt !== null) return batch;
  }
}
