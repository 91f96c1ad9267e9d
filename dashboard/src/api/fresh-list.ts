import { useEffect } from 'preact/hooks';
import { onEvents } from '../live/live.js';
import { type PageList, usePageList } from './page-list.js';
import { useResource } from './resource.js';

interface FreshListOptions<T> {
  readonly keyOf: (row: T) => string;
  /** Events after which rows may have come or gone. */
  readonly events: readonly string[];
  /** How often the figures of the first rows are read again, because they change without events. */
  readonly everyMs: number;
  /** Whether an operator is shown all tenants. */
  readonly allTenants?: boolean;
}

const LIMIT = 100;

/** A list whose figures stay fresh while somebody looks: those of the first page, and the others when they are read. */
export function useFreshList<T>(path: string, options: FreshListOptions<T>): PageList<T> {
  const { keyOf, events, everyMs, allTenants = false } = options;
  const list = usePageList<T>(path, LIMIT, allTenants);
  useEffect(() => onEvents(events, () => void list.restart()), [list, events.join()]);
  const first = useResource<{ readonly data: readonly T[] }>(`${path}?limit=${LIMIT}`, {
    everyMs,
    allTenants,
  });
  const rows = first.data.value?.data;
  useEffect(() => {
    const fresh = new Map(rows?.map((row) => [keyOf(row), row]));
    if (fresh.size > 0) list.update((row) => fresh.get(keyOf(row)) ?? row);
  }, [rows, list]);
  return list;
}
