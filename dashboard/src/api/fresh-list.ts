import { useEffect } from 'preact/hooks';
import { onEvents } from '../live/live.js';
import { type PageList, usePageList } from './page-list.js';
import { useResource } from './resource.js';

/** The shortest time between two reads because of events, however many there are. */
const AT_MOST_EVERY_MS = 2_000;

interface ListNewsOptions<T> {
  readonly keyOf: (row: T) => string;
  /** Events after which rows may have come, gone or changed. */
  readonly events: readonly string[];
}

/** Keeps a list up to date with events, at the pace of people and without moving what they look at. */
export function useListNews<T>(list: PageList<T>, { keyOf, events }: ListNewsOptions<T>): void {
  useEffect(() => {
    let timer: number | undefined;
    let readAt = Number.NEGATIVE_INFINITY;
    const read = () => {
      timer = undefined;
      readAt = performance.now();
      void list.renew(keyOf);
    };
    const stop = onEvents(events, () => {
      timer ??= window.setTimeout(read, Math.max(0, readAt + AT_MOST_EVERY_MS - performance.now()));
    });
    return () => {
      stop();
      clearTimeout(timer);
    };
  }, [list, events.join()]);
}

interface FreshListOptions<T> extends ListNewsOptions<T> {
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
  useListNews(list, { keyOf, events });
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
