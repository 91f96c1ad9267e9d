import { setImmediate as nextIteration } from 'node:timers/promises';
import type { Portion, PortionSize } from '../store/portion.js';
import { JsonText } from './json-text.js';

/** What the items of one page weigh at most, roughly; a single larger one is a page of its own. */
export const MAX_PAGE_BYTES = 1024 * 1024;

/** So much is written in one turn of the event loop: about a millisecond. */
const TURN_BYTES = 64 * 1024;

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
  /** Rows that are read at once at most. */
  readonly portion: number;
  /** Reads what comes after the row; null is the beginning of the page. */
  read(after: Row | null, size: PortionSize): Promise<Portion<Row>>;
  write(row: Row): string;
  /** What goes into `?after=` for the page that follows the row. */
  cursor(row: Row): string;
}

/**
 * Writes a page of a list: at most `limit` items, and fewer when they are large. It is read and written in portions, so
 * that nobody else in the process has to wait, and never holds much more than the page itself.
 */
export async function writePage<Row>(limit: number, list: List<Row>): Promise<PageText> {
  const items: string[] = [];
  let bytes = 0;
  let thisTurn = 0;
  let last: Row | null = null;
  for (;;) {
    const size = { rows: Math.min(list.portion, limit - items.length), bytes: MAX_PAGE_BYTES - bytes };
    const { rows, more } = await list.read(last, size);
    for (const row of rows) {
      // The database counts roughly; what was written counts.
      if (bytes >= MAX_PAGE_BYTES) return new PageText(items, list.cursor(last!));
      const item = list.write(row);
      items.push(item);
      last = row;
      bytes += item.length;
      thisTurn += item.length;
      if (thisTurn < TURN_BYTES) continue;
      thisTurn = 0;
      await nextIteration();
    }
    if (!more || last === null) return new PageText(items, null);
    if (items.length >= limit || bytes >= MAX_PAGE_BYTES) return new PageText(items, list.cursor(last));
  }
}
