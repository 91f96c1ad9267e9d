import { greatest } from '../core/long-lists.js';
import { type Paint, printable, type Style } from './paint.js';

/** A column: its heading, and how it behaves when the terminal is narrow. */
export interface Column {
  readonly header: string;
  readonly align?: 'left' | 'right';
  /** Whether cells may be cut to fit the terminal; identifiers must not be. */
  readonly shrink?: boolean;
}

/** A cell is text, or text in a style. */
export type Cell = string | { readonly text: string; readonly style: Style };

export interface TableOptions {
  readonly paint: Paint;
  /** Columns of the terminal; undefined when the table goes to a file or a pipe. */
  readonly width?: number | undefined;
}

const GAP = '  ';
const NARROWEST = 6;

const textOf = (cell: Cell): string => printable(typeof cell === 'string' ? cell : cell.text);
const lengthOf = (text: string): number => [...text].length;

/** Cuts a text to a length and shows that something is missing. */
export function truncate(text: string, length: number): string {
  if (lengthOf(text) <= length) return text;
  return length <= 0 ? '' : `${[...text].slice(0, length - 1).join('')}…`;
}

/** Takes from the widest columns that may shrink until the table fits or nothing more can be taken. */
function shrinkToFit(widths: number[], columns: readonly Column[], total: number): void {
  let excess = widths.reduce((sum, width) => sum + width, 0) + GAP.length * (widths.length - 1) - total;
  while (excess > 0) {
    let widest = -1;
    for (const [index, column] of columns.entries()) {
      const width = widths[index]!;
      if (column.shrink && width > NARROWEST && (widest < 0 || width > widths[widest]!)) widest = index;
    }
    if (widest < 0) return;
    widths[widest]! -= 1;
    excess -= 1;
  }
}

/** A table with aligned columns; every row ends with a newline. */
export function renderTable(
  columns: readonly Column[],
  rows: readonly (readonly Cell[])[],
  options: TableOptions,
): string {
  const widths = columns.map((column, index) =>
    greatest(
      rows.map((row) => lengthOf(textOf(row[index] ?? ''))),
      lengthOf(column.header),
    ),
  );
  if (options.width !== undefined) shrinkToFit(widths, columns, options.width);
  const line = (cells: readonly Cell[], heading: boolean): string => {
    const parts = columns.map((column, index) => {
      const cell = cells[index] ?? '';
      const text = truncate(textOf(cell), widths[index]!);
      const padding = ' '.repeat(widths[index]! - lengthOf(text));
      const style = heading ? 'bold' : typeof cell === 'string' ? null : cell.style;
      const painted = style && text ? options.paint(style, text) : text;
      if (column.align === 'right') return padding + painted;
      return index === columns.length - 1 ? painted : painted + padding;
    });
    return `${parts.join(GAP).trimEnd()}\n`;
  };
  const heading = columns.map((column) => column.header);
  return line(heading, true) + rows.map((row) => line(row, false)).join('');
}

/** Names and values below each other, for one thing in detail. Absent values are left out. */
export function renderDetails(
  entries: readonly (readonly [name: string, value: Cell | null | undefined])[],
  options: TableOptions,
): string {
  const shown = entries.filter(
    (entry): entry is [string, Cell] => entry[1] !== null && entry[1] !== undefined,
  );
  const width = greatest(
    shown.map(([name]) => lengthOf(name)),
    0,
  );
  return shown
    .map(([name, value]) => {
      const text = textOf(value);
      const painted = typeof value === 'string' || !text ? text : options.paint(value.style, text);
      return `${options.paint('dim', name.padEnd(width))}${GAP}${painted}`.trimEnd();
    })
    .join('\n')
    .concat('\n');
}
