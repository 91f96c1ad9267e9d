import { setImmediate as nextIteration } from 'node:timers/promises';
import type { PlacedRow } from '../store/job-places.js';
import { Stride } from '../store/job-search.js';
import { type ListedPortion, type ListFilter, listJobs } from '../store/list-jobs.js';
import type { TenantReads } from '../store/tenant-reads.js';
import { JsonText } from './json-text.js';
import { MAX_PAGE_BYTES, SLICE_BYTES } from './page-text.js';

/**
 * A page of the list of jobs: searched and read in portions, each in one transaction. It ends when it is full, when there
 * are no more jobs, or when so much was examined or so much time has passed that whoever asked should hear of it: then it
 * may be short or empty, and says where to go on.
 */

/** Jobs that one statement reads. */
const PORTION = 50;
/** The same with large parts, which Postgres has to decompress to see how many fit. */
const LARGE_PORTION = 16;

/** What a page examines at most: rows, and the time after which no further statement begins. */
const MAX_SCANNED = 20_000;
const MAX_MS = 100;
/** Rows of each place that the first statement examines; more while few of them fit and it takes no time. */
const FIRST_EXAMINED = 100;

/** One page of the list of jobs. */
export class JobPageText extends JsonText {
  readonly text: string;

  constructor(items: readonly string[], next: string | null, scanned: number, complete: boolean) {
    super();
    this.text = `{"data":[${items.join(',')}],"next":${JSON.stringify(next)},"scanned":${scanned},"complete":${complete}}`;
  }
}

/** Which jobs, and how one is written. */
export interface JobList {
  readonly reads: TenantReads;
  readonly tenant: string;
  readonly filter: ListFilter;
  write(row: PlacedRow): string;
}

/** Writes a page of at most `limit` jobs, and fewer when they are large or rare. */
export async function writeJobPage(
  limit: number,
  { reads, tenant, filter, write }: JobList,
): Promise<JobPageText> {
  const startedAt = performance.now();
  const portion = filter.include ? LARGE_PORTION : PORTION;
  const items: string[] = [];
  let [bytes, sincePause, scanned, scannedInAll] = [0, 0, 0, 0];
  const stride = new Stride(filter, Math.max(FIRST_EXAMINED, 2 * Math.min(portion, limit)));
  let after = filter.after;
  for (;;) {
    const size = { rows: Math.min(portion, limit - items.length), bytes: MAX_PAGE_BYTES - bytes };
    const askedAt = performance.now();
    const { rows: examine, byQueue } = stride;
    const found: ListedPortion = await listJobs(reads, tenant, { ...filter, after }, size, examine, byQueue);
    stride.took(performance.now() - askedAt, found.full);
    const wasByQueue = stride.byQueue;
    stride.met(found.examinedLive);
    scanned += found.examined;
    scannedInAll += found.examinedInAll;
    for (const row of found.rows) {
      // The database estimates sizes; the limit is on the bytes that were written.
      if (bytes >= MAX_PAGE_BYTES) return new JobPageText(items, after!, scanned, true);
      const item = write(row);
      items.push(item);
      after = row.id;
      bytes += item.length;
      sincePause += item.length;
      if (sincePause < SLICE_BYTES) continue;
      sincePause = 0;
      await nextIteration();
    }
    const { next } = found;
    if (next === null) return new JobPageText(items, null, scanned, true);
    if (items.length >= limit || bytes >= MAX_PAGE_BYTES) return new JobPageText(items, next, scanned, true);
    // Queues are looked into even if the time is up: every page begins by id, and would never come to them.
    const goesOn = found.full || (stride.byQueue && !wasByQueue);
    if (!goesOn && (scannedInAll >= MAX_SCANNED || performance.now() - startedAt >= MAX_MS)) {
      return new JobPageText(items, next, scanned, false);
    }
    after = next;
  }
}
