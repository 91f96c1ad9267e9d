import type { ListedJob } from '../../../../src/core/job.js';
import type {
  ErrorGroupsView,
  ListedSchedule,
  Page,
  QueueView,
  TaskView,
  WorkerView,
} from '../../../../src/core/wire.js';
import { useResource } from '../../api/resource.js';
import { JOB_STATES } from './job-filter.js';

/** What the query bar offers as the values of a filter: what there is, read when somebody is about to type it. */

/** A value, and what it is. */
export interface KnownValue {
  readonly value: string;
  readonly words?: string | undefined;
}

const FRESH = { everyMs: 60_000 };

/** The known values of a filter; none while they are read, and for filters that have none. */
export function useKnownValues(name: string | null, rows: readonly ListedJob[]): readonly KnownValue[] {
  const pathIf = (path: string, ...names: readonly string[]) => (name && names.includes(name) ? path : null);
  const tasks = useResource<Page<TaskView>>(pathIf('/v1/tasks?limit=500', 'task'), FRESH);
  const queues = useResource<Page<QueueView>>(pathIf('/v1/queues?limit=500', 'queue'), FRESH);
  const schedules = useResource<Page<ListedSchedule>>(pathIf('/v1/schedules?limit=200', 'schedule'), FRESH);
  const workers = useResource<Page<WorkerView>>(pathIf('/v1/workers?limit=200', 'worker', 'task'), FRESH);
  const errors = useResource<ErrorGroupsView>(
    pathIf('/v1/errors?since=24h', 'errorCode', 'fingerprint'),
    FRESH,
  );
  const groups = errors.data.value?.data ?? [];
  switch (name) {
    case 'state':
      return JOB_STATES.map((value) => ({ value }));
    case 'task':
      return known([
        ...(tasks.data.value?.data ?? []).map((task) => ({ value: task.name, words: task.description })),
        ...(workers.data.value?.data ?? []).flatMap((worker) => worker.tasks.map((value) => ({ value }))),
        ...rows.flatMap(({ task }) => (task === null ? [] : [{ value: task }])),
      ]);
    case 'queue':
      return known([
        ...(queues.data.value?.data ?? []).map((queue) => ({ value: queue.name })),
        ...rows.map(({ queue }) => ({ value: queue })),
      ]);
    case 'schedule':
      return known((schedules.data.value?.data ?? []).map((schedule) => ({ value: schedule.name })));
    case 'worker':
      return (workers.data.value?.data ?? []).map(({ id, name, state }) => ({
        value: id,
        words: `${name}, ${state}`,
      }));
    case 'workflow':
    case 'batch':
      return known(rows.flatMap(({ [name]: id }) => (id === null ? [] : [{ value: id }])));
    case 'errorCode':
      return known([
        ...groups.flatMap(({ code }) => (code === null ? [] : [{ value: code }])),
        ...rows.flatMap(({ error }) => (error?.code === undefined ? [] : [{ value: error.code }])),
      ]);
    case 'fingerprint':
      return groups.map(({ fingerprint, task, message }) => ({
        value: fingerprint,
        words: `${task ?? 'a call'}: ${message}`,
      }));
    case 'since':
    case 'until':
      return ['10m', '1h', '6h', '24h', '7d'].map((value) => ({ value, words: `${value} ago` }));
    default:
      return [];
  }
}

/** Each value once, in the order of the alphabet. */
function known(values: readonly KnownValue[]): readonly KnownValue[] {
  const byValue = new Map<string, KnownValue>();
  for (const each of values) if (!byValue.get(each.value)?.words) byValue.set(each.value, each);
  return [...byValue.values()].sort((a, b) => (a.value < b.value ? -1 : 1));
}
