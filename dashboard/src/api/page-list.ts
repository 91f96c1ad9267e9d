import { type ReadonlySignal, signal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import type { Page } from '../../../src/core/wire.js';
import { get, tenant } from './client.js';
import { asProblem, type Problem } from './problem.js';

/**
 * A list that is read page by page, from the newest to the oldest. Only the pages around what is seen are kept: the rest is read
 * again when the reader comes back, by the `after` with which it was read first.
 */

/** What the API answers, with what some lists tell besides. */
export type ListPage<T> = Page<T> & { readonly complete?: boolean; readonly scanned?: number };

/** A list as a screen sees it. */
export interface PageList<T> {
  /** The rows from the first kept one on. */
  readonly rows: ReadonlySignal<readonly T[]>;
  /** How many rows before these were read and let go again. */
  readonly before: ReadonlySignal<number>;
  /** Whether there may be more behind the last row. */
  readonly hasMore: ReadonlySignal<boolean>;
  readonly isLoading: ReadonlySignal<boolean>;
  readonly problem: ReadonlySignal<Problem | null>;
  /** How many rows the API has looked at, where it tells. */
  readonly scanned: ReadonlySignal<number>;
  /** Whether it stopped to look for what is rare; `goOn` looks further. */
  readonly isPaused: ReadonlySignal<boolean>;
  /** Whether at least one page has been read. */
  readonly isRead: ReadonlySignal<boolean>;
  /** Reads the page behind the last row. */
  readonly readMore: () => Promise<void>;
  /** Reads on where it has paused. */
  readonly goOn: () => Promise<void>;
  /** Reads the page before the first kept row again. */
  readonly readBack: () => Promise<void>;
  /** Begins anew with the first page; what is shown stays until it is there. */
  readonly restart: () => Promise<void>;
  /** Reads the first page again, for news about its rows; what somebody has scrolled to stays where it is. */
  readonly renew: (keyOf: (row: T) => string) => Promise<void>;
  /** Changes the rows that are kept, for news about them. */
  readonly update: (change: (row: T) => T) => void;
}

/** At most so many pages are kept. */
const MOST_PAGES = 20;
/** After so many pages in a row that ended before they were full, somebody is asked whether to look further. */
const MOST_POOR_PAGES = 20;

interface KeptPage<T> {
  readonly after: string | null;
  readonly rows: readonly T[];
  readonly next: string | null;
  /** Whether it ended before it was full, because what was looked for is rare. */
  readonly isEarly: boolean;
}

/** A list by its cursors, apart from the component that shows it. */
export class KeysetList<T> implements PageList<T> {
  readonly rows = signal<readonly T[]>([]);
  readonly before = signal(0);
  readonly hasMore = signal(true);
  readonly isLoading = signal(false);
  readonly problem = signal<Problem | null>(null);
  readonly scanned = signal(0);
  readonly isPaused = signal(false);
  readonly isRead = signal(false);
  private poorPages = 0;
  private pages: KeptPage<T>[] = [];
  /** Where the pages before the kept ones begin, and how many rows they had. */
  private passed: { readonly after: string | null; readonly count: number }[] = [];
  private broken = new AbortController();

  constructor(
    private readonly path: string,
    private readonly limit: number,
    private readonly allTenants: boolean,
  ) {}

  close(): void {
    this.broken.abort();
  }

  restart = (): Promise<void> => {
    this.broken.abort();
    this.broken = new AbortController();
    this.isLoading.value = false;
    return this.reading(async () => {
      this.scanned.value = 0;
      this.poorPages = 0;
      this.isPaused.value = false;
      const page = await this.read(null);
      this.pages = [page];
      this.passed = [];
      this.show();
    });
  };

  readMore = async (): Promise<void> => {
    const last = this.pages.at(-1);
    if (this.isLoading.value || this.isPaused.value || (last && last.next === null)) return;
    await this.reading(async () => {
      const page = await this.read(last?.next ?? null);
      // Pages that ended early are put together, or empty ones would push out those with rows.
      if (last && last.rows.length + page.rows.length <= this.limit)
        this.pages.splice(-1, 1, { ...last, rows: [...last.rows, ...page.rows], next: page.next });
      else this.pages.push(page);
      if (this.pages.length > MOST_PAGES) {
        const { after, rows } = this.pages.shift()!;
        this.passed.push({ after, count: rows.length });
      }
      this.show();
    });
  };

  goOn = (): Promise<void> => {
    this.poorPages = 0;
    this.isPaused.value = false;
    return this.readMore();
  };

  readBack = async (): Promise<void> => {
    const previous = this.passed.at(-1);
    if (this.isLoading.value || !previous) return;
    await this.reading(async () => {
      let page = await this.read(previous.after);
      // What was put together from pages that ended early is put together again, or rows between two pages would be missing.
      while (page.isEarly && page.next !== null && page.rows.length < previous.count) {
        const more = await this.read(page.next);
        page = { ...more, after: page.after, rows: [...page.rows, ...more.rows] };
      }
      this.passed.pop();
      this.pages.unshift(page);
      if (this.pages.length > MOST_PAGES) this.pages.pop();
      this.show();
    });
  };

  renew = async (keyOf: (row: T) => string): Promise<void> => {
    const { signal: broken } = this.broken;
    const { allTenants, limit } = this;
    const request = { query: { limit }, allTenants, signal: broken };
    // The list itself shows what is wrong when it is asked the next time.
    const first = await get<ListPage<T>>(this.path, request).catch(() => null);
    if (first === null || broken.aborted || !this.isRead.value) return;
    const { data, next, complete } = first;
    // A page that others go on from cannot be replaced: rows would be missing between the two.
    const isAlone = this.pages.length === 1 && this.passed.length === 0 && !this.isLoading.value;
    if (isAlone) this.pages = [{ after: null, rows: data, next, isEarly: complete === false }];
    const fresh = new Map(data.map((row) => [keyOf(row), row]));
    this.update((row) => fresh.get(keyOf(row)) ?? row);
  };

  update = (change: (row: T) => T): void => {
    this.pages = this.pages.map((page) => ({ ...page, rows: page.rows.map(change) }));
    this.show();
  };

  private async read(after: string | null): Promise<KeptPage<T>> {
    const query = { limit: this.limit, after };
    const { allTenants, broken } = this;
    const page = await get<ListPage<T>>(this.path, { query, allTenants, signal: broken.signal });
    this.scanned.value += page.scanned ?? 0;
    this.poorPages = page.complete === false ? this.poorPages + 1 : 0;
    this.isPaused.value = this.poorPages >= MOST_POOR_PAGES;
    return { after, rows: page.data, next: page.next, isEarly: page.complete === false };
  }

  private show(): void {
    this.rows.value = this.pages.flatMap((page) => page.rows);
    this.before.value = this.passed.reduce((sum, { count }) => sum + count, 0);
    this.hasMore.value = this.pages.at(-1)?.next !== null;
    this.isRead.value = true;
  }

  private async reading(run: () => Promise<void>): Promise<void> {
    this.isLoading.value = true;
    const { signal: broken } = this.broken;
    try {
      await run();
      this.problem.value = null;
    } catch (error) {
      const problem = asProblem(error);
      if (problem) this.problem.value = problem;
    } finally {
      if (!broken.aborted) this.isLoading.value = false;
    }
  }
}

/** A list of the API, by its path with all its filters; of the chosen tenant, or for an operator of all. */
export function usePageList<T>(path: string, limit = 50, allTenants = false): PageList<T> {
  const chosen = allTenants ? null : tenant.value;
  const list = useMemo(() => new KeysetList<T>(path, limit, allTenants), [path, limit, allTenants, chosen]);
  useEffect(() => {
    void list.restart();
    return () => list.close();
  }, [list]);
  return list;
}
