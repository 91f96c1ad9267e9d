import { nearestName } from '../core/nearest-name.js';
import type { Page, TaskView, WorkerView } from '../core/wire.js';
import type { Transport } from '../transport/transport.js';

/** As much as is read and waited for: it is only about a hint. */
const MOST_WORKERS = 200;
const MOST_TASKS = 1_000;
const LIMIT_MS = 1_000;

/**
 * The task that was probably meant by a name that no live worker has and nobody has defined; null if that is not so, is
 * not known for certain, or no name is like it.
 */
export async function likelyTask(
  api: Transport,
  given: string,
  interrupted: AbortSignal,
): Promise<string | null> {
  const request = { signal: AbortSignal.any([interrupted, AbortSignal.timeout(LIMIT_MS)]) };
  try {
    const workers = await api.request<Page<WorkerView>>('GET', `/v1/workers?limit=${MOST_WORKERS}`, request);
    const served = workers.data.flatMap(({ state, tasks }) => (state === 'alive' ? tasks : []));
    if (workers.next !== null || served.includes(given)) return null;
    const tasks = await api.request<Page<TaskView>>('GET', `/v1/tasks?limit=${MOST_TASKS}`, request);
    const defined = tasks.data.map(({ name }) => name);
    if (tasks.next !== null || defined.includes(given)) return null;
    return nearestName(given, [...served, ...defined]) ?? null;
  } catch {
    // The key may be for submitting only, and the job is stored whatever its name.
    return null;
  }
}
