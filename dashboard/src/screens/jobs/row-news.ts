import { signal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import type { EventType, PunctualEvent } from '../../../../src/core/events.js';
import type { JobState, ListedJob } from '../../../../src/core/job.js';
import { get } from '../../api/client.js';
import type { ListPage, PageList } from '../../api/page-list.js';
import { isVisible } from '../../api/visibility.js';
import { type Batch, onBatch } from '../../live/live.js';
import type { JobFilter } from './job-filter.js';
import { addressWith } from './job-filter.js';

/**
 * What happens to the jobs of a list while somebody looks at it. Events change the rows that are kept. Where there are too
 * many events for that, the rows that can be seen are read again now and then. New jobs are counted and announced.
 */

/** How long the rows that can be seen are left as they are when more happens than is told. */
const REREAD_MS = 4_000;
/** New jobs beyond so many are no longer counted one by one. */
const MOST_NEW = 1_000;

/** Filters that an event can be held against. */
const TOLD: readonly (keyof PunctualEvent)[] = [
  'task',
  'queue',
  'schedule',
  'workflow',
  'batch',
  'worker',
  'errorCode',
];

const STATE_OF: Partial<Record<EventType, JobState>> = {
  'job.submitted': 'pending',
  'job.started': 'running',
  'job.retrying': 'pending',
  'job.succeeded': 'succeeded',
  'job.failed': 'failed',
  'job.cancelled': 'cancelled',
  'job.skipped': 'skipped',
};

/** What is new. */
export interface News {
  /** How many jobs would be in the list that are not. */
  readonly count: number;
  /** Whether there may be more of them, or fewer. */
  readonly isVague: boolean;
}

const NOTHING: News = { count: 0, isVague: false };

class RowNews {
  readonly news = signal(NOTHING);
  private readonly unseen = new Set<string>();
  private seen: readonly ListedJob[] = [];
  private timer: number | undefined;
  private rereadAt = Number.NEGATIVE_INFINITY;
  private readonly over = new AbortController();

  constructor(
    private readonly list: PageList<ListedJob>,
    private readonly filter: JobFilter,
  ) {}

  start(): () => void {
    const stop = onBatch((batch) => this.take(batch));
    return () => {
      stop();
      clearTimeout(this.timer);
      this.over.abort();
    };
  }

  /** Notes which rows somebody can see. */
  see = (rows: readonly ListedJob[]): void => {
    this.seen = rows;
  };

  /** Has the list begin anew, with what is new. */
  show = async (): Promise<void> => {
    this.unseen.clear();
    this.news.value = NOTHING;
    await this.list.restart();
  };

  private take({ events, counts, isPartial, isReset, isBeginning }: Batch): void {
    if (isBeginning) void this.list.renew(({ id }) => id);
    const ofJobs = new Map<string, PunctualEvent[]>();
    for (const event of events) {
      if (event.job === undefined || !event.type.startsWith('job.')) continue;
      const before = ofJobs.get(event.job);
      if (before) before.push(event);
      else ofJobs.set(event.job, [event]);
    }
    if (ofJobs.size > 0) this.change(ofJobs);
    this.announce(ofJobs, isPartial || isReset ? counts : null, isReset);
    // An event tells a job's state and little else; errors and times come with a read.
    if (isPartial || isReset || this.seen.some(({ id }) => ofJobs.has(id))) this.plan();
  }

  private change(events: ReadonlyMap<string, readonly PunctualEvent[]>): void {
    if (!this.list.rows.peek().some(({ id }) => events.has(id))) return;
    this.list.update((row) => (events.get(row.id) ?? []).reduce(changed, row));
  }

  private announce(
    events: ReadonlyMap<string, readonly PunctualEvent[]>,
    counts: ReadonlyMap<string, number> | null,
    isReset: boolean,
  ): void {
    const known = new Set(this.list.rows.peek().map(({ id }) => id));
    for (const [id, all] of events) {
      if (known.has(id) || this.unseen.size >= MOST_NEW) continue;
      if (all.some((event) => mayBeListed(event, this.filter))) this.unseen.add(id);
    }
    let { isVague } = this.news.value;
    const isUntold = Object.keys(this.filter).some(
      (name) => name !== 'state' && !(TOLD as string[]).includes(name),
    );
    isVague ||= isReset || (isUntold && this.unseen.size > 0) || this.unseen.size >= MOST_NEW;
    if (counts)
      isVague ||= [...counts.keys()].some((type) => this.isWantedState(STATE_OF[type as EventType]));
    if (this.unseen.size === this.news.value.count && isVague === this.news.value.isVague) return;
    this.news.value = { count: this.unseen.size, isVague };
  }

  private isWantedState(state: JobState | undefined): boolean {
    if (state === undefined) return false;
    return this.filter.state === undefined
      ? state === 'pending'
      : this.filter.state.split(',').includes(state);
  }

  private plan(): void {
    if (this.timer !== undefined || this.over.signal.aborted) return;
    const wait = Math.max(500, this.rereadAt + REREAD_MS - performance.now());
    this.timer = window.setTimeout(() => {
      this.timer = undefined;
      if (isVisible.value) void this.reread();
    }, wait);
  }

  /** Reads the rows that can be seen as they are now. */
  private async reread(): Promise<void> {
    const [first, count] = [this.seen[0], this.seen.length];
    if (!first) return;
    this.rereadAt = performance.now();
    const query = { limit: Math.min(1_000, count), after: idAbove(first.id) };
    try {
      const path = addressWith('/v1/jobs', this.filter);
      const page = await get<ListPage<ListedJob>>(path, { query, signal: this.over.signal });
      const fresh = new Map(page.data.map((row) => [row.id, row]));
      this.list.update((row) => fresh.get(row.id) ?? row);
    } catch {
      // The list itself shows what is wrong when it is asked the next time.
    }
  }
}

/** A row after an event. */
function changed(row: ListedJob, event: PunctualEvent): ListedJob {
  if (event.type === 'job.progress')
    return { ...row, progress: { ...row.progress, progress: event.progress ?? 0, at: event.at } };
  const state = event.change === 'redrive' ? 'pending' : (event.state ?? STATE_OF[event.type]);
  const isHeld = event.change === 'hold' ? true : event.change === 'release' ? false : row.hold;
  return {
    ...row,
    hold: isHeld,
    ...(state !== undefined && { state }),
    ...(event.attempt !== undefined && { attempt: Math.max(row.attempt, event.attempt) }),
    ...(event.worker !== undefined && { worker: event.worker }),
    ...(event.type === 'job.started' && { startedAt: event.at, finishedAt: null }),
    ...(event.change === 'redrive' && { finishedAt: null, error: null, failures: 0 }),
    ...(event.change === 'cancel' && { cancelRequestedAt: event.at }),
    ...(event.type === 'job.retrying' && { failures: row.failures + 1 }),
    ...(isEnd(event.type) && { finishedAt: event.at }),
  };
}

function isEnd(type: EventType): boolean {
  return (
    type === 'job.succeeded' || type === 'job.failed' || type === 'job.cancelled' || type === 'job.skipped'
  );
}

/** Whether the job of an event may belong into a list that it is not in. */
function mayBeListed(event: PunctualEvent, filter: JobFilter): boolean {
  const state = event.state ?? STATE_OF[event.type];
  if (
    filter.state === undefined
      ? event.type !== 'job.submitted'
      : !filter.state.split(',').includes(state ?? '')
  )
    return false;
  return TOLD.every(
    (name) => filter[name] === undefined || event[name] === undefined || filter[name] === event[name],
  );
}

/** The id next above another one: lists go on below what they are given. */
function idAbove(id: string): string {
  const digits = (BigInt(`0x${id.replaceAll('-', '')}`) + 1n).toString(16).padStart(32, '0');
  return digits.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}

/** The news about the jobs of a list. */
export function useRowNews(list: PageList<ListedJob>, filter: JobFilter): RowNews {
  const key = JSON.stringify(filter);
  const news = useMemo(() => new RowNews(list, filter), [list, key]);
  useEffect(() => news.start(), [news]);
  return news;
}
