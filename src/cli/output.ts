import { humanDuration } from '../core/duration.js';
import { greatest } from '../core/long-lists.js';
import { type Paint, painterFor } from '../core/paint.js';
import type { Cli } from './cli.js';
import { type Cell, type Column, GAP, renderTable, type TableOptions, textOf } from './table.js';
import { textWidth } from './text-width.js';

export type { Cell, Column } from './table.js';

const HOME = '\u001b[H';
const CLEAR_LINE = '\u001b[K';
const CLEAR_BELOW = '\u001b[J';

/** How a command prints. */
interface OutputOptions {
  readonly json?: boolean | undefined;
  /** Whether tables are shown in full, however wide. */
  readonly wide?: boolean | undefined;
}

/** Prints the data of a command on stdout, as text or as JSON; notes go to stderr. */
export class Output {
  readonly json: boolean;
  readonly paint: Paint;
  readonly #cli: Cli;
  readonly #wide: boolean;
  #redraws = false;
  #frames = 0;

  constructor(cli: Cli, { json = false, wide = false }: OutputOptions = {}) {
    this.#cli = cli;
    this.json = json;
    this.#wide = wide;
    this.paint = painterFor(cli.stdout, cli.environment);
  }

  /** Prints `value` as JSON on one line, or the text that `text` returns. */
  document(value: unknown, text: () => string): void {
    if (this.json) this.#cli.stdout.write(`${JSON.stringify(value)}\n`);
    else this.#cli.stdout.write(this.#redraws ? this.#frame(text()) : text());
  }

  /** From now on each document replaces the one before it on the screen; where there is no screen, it follows it. */
  redraw(): void {
    this.#redraws = true;
  }

  /** How text that fits the terminal is made. */
  get screen(): TableOptions {
    return { paint: this.paint, width: this.#width() };
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

  /** The text over what the screen shows, cut to its height so that it does not scroll. */
  #frame(text: string): string {
    const { isTTY, rows } = this.#cli.stdout;
    this.#frames += 1;
    if (!isTTY) return this.#frames === 1 ? text : `\n${text}`;
    const lines = text.trimEnd().split('\n');
    // The last rows are for a note below the text and for the cursor.
    const room = rows ? Math.max(1, rows - 2) : lines.length;
    const shown =
      lines.length <= room ? lines : [...lines.slice(0, room - 1), `… ${lines.length - room + 1} more lines`];
    return `${HOME}${shown.map((line) => `${line}${CLEAR_LINE}\n`).join('')}${CLEAR_BELOW}`;
  }

  #width(): number | undefined {
    const { isTTY, columns } = this.#cli.stdout;
    return isTTY && !this.#wide ? columns || undefined : undefined;
  }
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
    shown.map(([name]) => textWidth(name)),
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

/** A number of things: `1 job`, `2 jobs`. */
export function plural(number: number, noun: string, nouns = `${noun}s`): string {
  return `${number} ${number === 1 ? noun : nouns}`;
}

/** The duration between two times; null when one of them is missing. */
export function elapsed(from: string | null, to: string | null): string | null {
  if (from === null || to === null) return null;
  return humanDuration(Date.parse(to) - Date.parse(from));
}

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB'] as const;

/** A number of bytes for people. */
export function bytesText(bytes: number): string {
  let value = bytes;
  let unit = 0;
  for (; value >= 1_024 && unit < UNITS.length - 1; unit += 1) value /= 1_024;
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${UNITS[unit]}`;
}
