import { humanDuration } from '../core/duration.js';
import { greatest } from '../core/long-lists.js';
import type { Cli } from './cli.js';
import { type Paint, painterFor, printable, type Style } from './paint.js';

/** Prints the data of a command on stdout, as text or as JSON; notes go to stderr. */
export class Output {
  readonly json: boolean;
  readonly paint: Paint;
  readonly #cli: Cli;

  constructor(cli: Cli, json: boolean) {
    this.#cli = cli;
    this.json = json;
    this.paint = painterFor(cli.stdout, cli.environment);
  }

  /** Prints `value` as JSON on one line, or the text that `text` returns. */
  document(value: unknown, text: () => string): void {
    if (this.json) this.#cli.stdout.write(`${JSON.stringify(value)}\n`);
    else this.#cli.stdout.write(text());
  }

  table(columns: readonly Column[], rows: readonly (readonly Cell[])[]): string {
    return renderTable(columns, rows, { paint: this.paint, width: this.#width() });
  }

  details(entries: readonly (readonly [name: string, value: Cell | null | undefined])[]): string {
    return renderDetails(entries, { paint: this.paint, width: this.#width() });
  }

  /** Prints a line for the user on stderr. */
  note(text: string): void {
    this.#cli.stderr.write(`${text}\n`);
  }

  #width(): number | undefined {
    return this.#cli.stdout.isTTY ? this.#cli.stdout.columns : undefined;
  }
}

/** A column of a table. */
export interface Column {
  readonly header: string;
  readonly align?: 'left' | 'right';
  /** Whether cells may be truncated to fit the terminal; ids must not be. */
  readonly shrink?: boolean;
}

/** A cell is text, or text in a style. */
export type Cell = string | { readonly text: string; readonly style: Style };

interface TableOptions {
  readonly paint: Paint;
  /** The width of the terminal; undefined when the table goes to a file or a pipe. */
  readonly width?: number | undefined;
}

const GAP = '  ';
const NARROWEST = 6;

const textOf = (cell: Cell): string => printable(typeof cell === 'string' ? cell : cell.text);
const lengthOf = (text: string): number => [...text].length;

/** Truncates a text to a length, with an ellipsis. */
export function truncate(text: string, length: number): string {
  if (lengthOf(text) <= length) return text;
  return length <= 0 ? '' : `${[...text].slice(0, length - 1).join('')}…`;
}

/** Narrows the widest columns that may shrink until the table fits or none can be narrowed any more. */
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

/** Names and values, one pair per line. Values that are null or undefined are left out. */
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

const SECOND = 1_000;

/** A time relative to now: `4.2s ago`, `in 3m`. */
export function relativeTime(time: string | null, now: number): string {
  if (time === null) return '-';
  const distance = Date.parse(time) - now;
  if (Number.isNaN(distance)) return time;
  if (Math.abs(distance) < SECOND) return 'now';
  return distance > 0 ? `in ${humanDuration(distance)}` : `${humanDuration(-distance)} ago`;
}

/** The duration between two times; null when one of them is missing. */
export function elapsed(from: string | null, to: string | null): string | null {
  if (from === null || to === null) return null;
  return humanDuration(Date.parse(to) - Date.parse(from));
}
