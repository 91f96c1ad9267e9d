import { greatest } from '../core/long-lists.js';
import { type Paint, printable, type Style } from '../core/paint.js';
import { isUuid } from '../core/uuid.js';
import { shortenMiddle, textWidth, truncate } from './text-width.js';

/**
 * Tables that fit the terminal. When one is too wide, ids are cut to a beginning that is still unique, then long cells
 * are shortened, then columns are left out in their declared order. Without a width (a file, a pipe, `--wide`)
 * everything is shown in full.
 */

/** A column of a table. */
export interface Column {
  readonly header: string;
  readonly align?: 'left' | 'right';
  /**
   * How cells may be shortened: `true` cuts the end of a text; `name` leaves out the middle and never makes two names
   * look alike; `id` cuts ids to a beginning that is unique in the table and can be pasted into a command.
   */
  readonly shrink?: boolean | 'name' | 'id';
  /** The order in which columns are left out of a narrow table: 1 goes first. Without it the column is always shown. */
  readonly drop?: number;
}

/** A cell is text, or text in a style. */
export type Cell = string | { readonly text: string; readonly style: Style };

/** How a table is drawn. */
export interface TableOptions {
  readonly paint: Paint;
  /** The width of the terminal; undefined when everything is to be shown in full. */
  readonly width?: number | undefined;
}

export const GAP = '  ';
/** The width that a column is shortened to before others are left out, and the least that it is shortened to. */
const COMFORTABLE = 14;
const NARROWEST = 6;
/** The time and the counter of an id: ids that differ in them alone are what one process makes in a millisecond. */
const SHORT_ID = 18;

/** The text of a cell, safe to print. */
export const textOf = (cell: Cell): string => printable(typeof cell === 'string' ? cell : cell.text);

/** A column with its cells as text, and how wide it is, can be, and should be at least. */
interface Fitted {
  readonly column: Column;
  readonly index: number;
  readonly texts: readonly string[];
  width: number;
  readonly comfortable: number;
  readonly narrowest: number;
}

/** A table with aligned columns; every row ends with a newline. */
export function renderTable(
  columns: readonly Column[],
  rows: readonly (readonly Cell[])[],
  { paint, width }: TableOptions,
): string {
  const all = columns.map((column, index) => ({
    column,
    index,
    texts: rows.map((row) => textOf(row[index] ?? '')),
  }));
  const shown = fitColumns(all, width);
  const line = (cellOf: (fitted: Fitted) => string, styleOf: (fitted: Fitted) => Style | null): string => {
    const parts = shown.map((fitted, place) => {
      const text = shorten(fitted.column, cellOf(fitted), fitted.width);
      const padding = ' '.repeat(Math.max(0, fitted.width - textWidth(text)));
      const style = styleOf(fitted);
      const painted = style && text ? paint(style, text) : text;
      if (fitted.column.align === 'right') return padding + painted;
      return place === shown.length - 1 ? painted : painted + padding;
    });
    return `${parts.join(GAP).trimEnd()}\n`;
  };
  const heading = line(
    ({ column }) => column.header,
    () => 'bold',
  );
  const lines = rows.map((row, at) =>
    line(
      ({ texts }) => texts[at]!,
      ({ index }) => {
        const cell = row[index] ?? '';
        return typeof cell === 'string' ? null : cell.style;
      },
    ),
  );
  return heading + lines.join('');
}

function shorten({ shrink }: Column, text: string, width: number): string {
  if (shrink === 'id') return isUuid(text) ? text.slice(0, width) : text;
  return shrink === 'name' ? shortenMiddle(text, width) : truncate(text, width);
}

type Unfitted = Pick<Fitted, 'column' | 'index' | 'texts'>;

/** Chooses the columns that are shown, and their widths. */
function fitColumns(columns: readonly Unfitted[], total: number | undefined): readonly Fitted[] {
  const full = columns.map((each): Fitted => {
    const width = widest(each);
    return { ...each, width, comfortable: width, narrowest: width };
  });
  if (total === undefined || widthOf(full) <= total) return full;
  const narrow = columns.map(measure);
  for (let shown: readonly Fitted[] = narrow; ; ) {
    if (widthOf(shown, 'comfortable') <= total) return shrinkToFit(shown, 'comfortable', total);
    const next = nextToDrop(shown);
    if (next === null) return shrinkToFit(shown, 'narrowest', total);
    shown = shown.filter((each) => each !== next);
  }
}

function measure(each: Unfitted): Fitted {
  const { column, texts } = each;
  const header = textWidth(column.header);
  const full = widest(each);
  if (column.shrink === 'id') {
    const whole = texts.filter((text) => !isUuid(text)).map(textWidth);
    const width = Math.min(full, greatest(whole, Math.max(header, uniqueLength(texts.filter(isUuid)))));
    return { ...each, width, comfortable: width, narrowest: width };
  }
  if (!column.shrink) return { ...each, width: full, comfortable: full, narrowest: full };
  const least = Math.min(full, Math.max(header, NARROWEST));
  const narrowest = column.shrink === 'name' ? distinctWidth(texts, least, full) : least;
  return { ...each, width: full, comfortable: Math.max(narrowest, Math.min(full, COMFORTABLE)), narrowest };
}

function widest({ column, texts }: Unfitted): number {
  return greatest(texts.map(textWidth), textWidth(column.header));
}

function widthOf(columns: readonly Fitted[], which: 'width' | 'comfortable' = 'width'): number {
  return columns.reduce((sum, each) => sum + each[which], 0) + GAP.length * (columns.length - 1);
}

function nextToDrop(columns: readonly Fitted[]): Fitted | null {
  let next: Fitted | null = null;
  for (const each of columns) {
    const order = each.column.drop;
    if (order !== undefined && (next === null || order < next.column.drop!)) next = each;
  }
  return next;
}

/** Narrows the widest columns until the table fits or all have their least width. */
function shrinkToFit(
  columns: readonly Fitted[],
  least: 'comfortable' | 'narrowest',
  total: number,
): readonly Fitted[] {
  for (let excess = widthOf(columns) - total; excess > 0; excess -= 1) {
    let chosen: Fitted | null = null;
    for (const each of columns) {
      if (each.width > each[least] && (chosen === null || each.width > chosen.width)) chosen = each;
    }
    if (chosen === null) break;
    chosen.width -= 1;
  }
  return columns;
}

/** How many characters of these ids tell all of them apart; at least as many as make a repetition elsewhere unlikely. */
export function uniqueLength(ids: readonly string[]): number {
  const sorted = [...new Set(ids)].sort();
  let longest = SHORT_ID;
  for (let at = 1; at < sorted.length; at += 1) {
    longest = Math.max(longest, commonLength(sorted[at - 1]!, sorted[at]!) + 1);
  }
  return longest;
}

function commonLength(a: string, b: string): number {
  let length = 0;
  while (length < a.length && a[length] === b[length]) length += 1;
  return length;
}

/** The least width at which different names still look different; a wider column never makes them alike again. */
function distinctWidth(texts: readonly string[], least: number, full: number): number {
  const names = [...new Set(texts)];
  const areDistinct = (width: number): boolean =>
    new Set(names.map((name) => shortenMiddle(name, width))).size === names.length;
  let [low, high] = [least, full];
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    if (areDistinct(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}
