import { setImmediate as nextIteration } from 'node:timers/promises';
import type { Portion, PortionSize } from '../store/portion.js';
import { JsonText } from './json-text.js';

/** About how many bytes the items of one page have at most; a single larger item is a page of its own. */
export const MAX_PAGE_BYTES = 1024 * 1024;

/** Bytes that are written in one iteration of the event loop: about a millisecond. */
export const SLICE_BYTES = 64 * 1024;

/** Rows that a page examines at most, if not all of them are shown; then it ends, and its cursor says where to go on. */
const MAX_EXAMINED = 5_000;

/** One page of a list. */
export class PageText extends JsonText {
  readonly text: string;

  constructor(items: readonly string[], next: string | null) {
    super();
    this.text = `{"data":[${items.join(',')}],"next":${JSON.stringify(next)}}`;
  }
}

/** How a list is read and written. */
export interface List<Row> {
  /** The most rows that one statement reads. */
  readonly portion: number;
  /** Reads the rows after the given one; null reads from the beginning of the page. */
  read(after: Row | null, size: PortionSize): Promise<Portion<Row>>;
  /** Whether a row is for this caller; default all are. */
  isShown?(row: Row): boolean;
  write(row: Row): string;
  /** The value of `?after=` for the page after the row. */
  cursor(row: Row): string;
}

/**
 * Writes a page of a list: at most `limit` items, and fewer when they are large. It reads and writes in portions, so
 * that it does not block the event loop and never holds much more than the page itself in memory.
 */
export async function writePage<Row>(limit: number, list: List<Row>): Promise<PageText> {
  const items: string[] = [];
  let bytes = 0;
  let sincePause = 0;
  let last: Row | null = null;
  let examined = 0;
  for (;;) {
    const size = { rows: Math.min(list.portion, limit - items.length), bytes: MAX_PAGE_BYTES - bytes };
    const { rows, more } = await list.read(last, size);
    for (const row of rows) {
      // The database estimates sizes; the limit is on the bytes that were written.
      if (bytes >= MAX_PAGE_BYTES) return new PageText(items, list.cursor(last!));
      last = row;
      examined += 1;
      if (list.isShown && !list.isShown(row)) continue;
      const item = list.write(row);
      items.push(item);
      bytes += item.length;
      sincePause += item.length;
      if (sincePause < SLICE_BYTES) continue;
      sincePause = 0;
      await nextIteration();
    }
    if (!more || last === null) return new PageText(items, null);
    if (items.length >= limit || bytes >= MAX_PAGE_BYTES || examined >= MAX_EXAMINED)
      return new PageText(items, list.cursor(last));
  }
}
