import type { Cli } from './cli.js';
import { type Paint, painterFor } from './paint.js';
import { type Cell, type Column, renderDetails, renderTable } from './table.js';

/** Prints the data of a command on stdout, as text for people or as JSON for programs; notes go to stderr. */
export class Output {
  readonly json: boolean;
  readonly paint: Paint;
  readonly #cli: Cli;

  constructor(cli: Cli, json: boolean) {
    this.#cli = cli;
    this.json = json;
    this.paint = painterFor(cli.stdout, cli.environment);
  }

  /** Prints one thing: `value` as a JSON document on one line, or what `text` makes of it. */
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

  /** Says something to the person at the terminal without touching the data. */
  note(text: string): void {
    this.#cli.stderr.write(`${text}\n`);
  }

  #width(): number | undefined {
    return this.#cli.stdout.isTTY ? this.#cli.stdout.columns : undefined;
  }
}
