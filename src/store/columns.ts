import { PORTION, TimeSlice } from '../core/time-slice.js';
import { binaryArray } from './array-bytes.js';
import { textArray } from './array-text.js';

/** The SQL types that parameters have. */
export type SqlType = 'uuid' | 'text' | 'json' | 'int' | 'smallint' | 'bigint' | 'boolean';

/** A column of the rows that a statement takes as parameters. */
export interface Column<Row> {
  readonly name: string;
  readonly type: SqlType;
  readonly of: (row: Row) => Value;
  /** An object that determines the value, and that many rows may share. */
  readonly part?: ((row: Row) => object) | undefined;
}

/** A value as it is sent; JSON is a text. */
export type Value = string | number | boolean | null;

/** A parameter: a value, or an array of values. */
export type Sent = Value | Buffer;

/** The columns inside the text of a statement. */
interface ColumnsInSql {
  /** What to select from; its rows are called `u`. */
  readonly source: string;
  /** The value of a column in row `u`. */
  readonly of: (name: string) => string;
  /** The values of all columns, in order. */
  readonly all: string;
  /** The number of the first parameter after those of the columns. */
  readonly next: number;
}

/**
 * Many rows as the parameters of one statement, one array per column.
 *
 * Most columns of a bulk hold the same value in every row. Such a column is sent as that one value instead of an array:
 * writing, parsing and unnesting thousands of equal values was a third of the cost of storing a job.
 */
export class Columns<Row> {
  /** The names of the columns, in order. */
  readonly names: string;
  /** The part that columns are determined by; there is one at most. */
  private readonly part: ((row: Row) => object) | undefined;
  /** The columns that can be sent as arrays. */
  private readonly listed: readonly Column<Row>[];

  /**
   * The first column must be unique: it is always sent as an array, and is `u.<name>` in the statement. With
   * `alwaysShared` all rows must share the part: its columns have no arrays then, which cost a little for every row even
   * if they are missing.
   */
  constructor(
    private readonly columns: readonly Column<Row>[],
    alwaysShared = false,
  ) {
    this.names = columns.map(({ name }) => name).join(', ');
    this.part = columns.find(({ part }) => part)?.part;
    this.listed = alwaysShared ? columns.filter(({ part }) => !part) : columns;
  }

  /** The same columns for rows that all share the part. */
  shared(): Columns<Row> {
    return new Columns(this.columns, true);
  }

  /** These columns for rows that contain such a row. */
  inside<Whole>(rowOf: (whole: Whole) => Row): readonly Column<Whole>[] {
    const { part } = this;
    const partOf = part && ((whole: Whole) => part(rowOf(whole)));
    return this.columns.map(({ name, type, of, part: own }) => ({
      ...{ name, type, of: (whole) => of(rowOf(whole)) },
      part: own && partOf,
    }));
  }

  /** The SQL of the columns, whose parameters begin with number `from`: first the arrays, then the single values. */
  inSql(from: number): ColumnsInSql {
    const { columns, listed } = this;
    const arrays = listed.map(({ type }, i) => `$${from + i}::${type}[]`);
    const firstSingle = from + listed.length;
    const values = new Map(
      columns.map((column, i) => {
        const { name, type } = column;
        const single = `$${firstSingle + i - 1}::${type}`;
        const isListed = listed.includes(column);
        return [name, i === 0 ? `u.${name}` : isListed ? `coalesce(u.${name}, ${single})` : single];
      }),
    );
    return {
      source: `unnest(${arrays.join(', ')}) u(${listed.map(({ name }) => name).join(', ')})`,
      of: (name) => values.get(name)!,
      all: [...values.values()].join(', '),
      next: firstSingle + columns.length - 1,
    };
  }

  /** The SQL of one row whose values are plain parameters, the first of them number `from`. For one row arrays only cost. */
  oneInSql(from: number): Pick<ColumnsInSql, 'of' | 'all'> {
    const values = new Map(this.columns.map(({ name, type }, i) => [name, `$${from + i}::${type}`]));
    return { of: (name) => values.get(name)!, all: [...values.values()].join(', ') };
  }

  /** The parameters for one row, in the order of `oneInSql`. */
  valuesOf(row: Row): Value[] {
    return this.columns.map(({ of }) => of(row));
  }

  /** The parameters for these rows, in the order of `inSql`. */
  parameters(rows: readonly Row[]): Sent[] {
    const isShared = this.isPartShared(rows);
    return this.inOrder(this.columns.map((column, i) => parameterOf(column, rows, i > 0, isShared)));
  }

  /** The same, with pauses between the columns, so that thousands of rows do not block the event loop. */
  async parametersInSlices(rows: readonly Row[]): Promise<Sent[]> {
    const slice = new TimeSlice();
    const made: Parameter[] = [];
    const isShared = this.isPartShared(rows);
    for (const [i, column] of this.columns.entries()) {
      if (slice.isOver) await slice.next();
      made.push(parameterOf(column, rows, i > 0, isShared));
    }
    return this.inOrder(made);
  }

  private inOrder(parameters: readonly Parameter[]): Sent[] {
    const arrays = parameters.filter((_, i) => this.listed.includes(this.columns[i]!));
    return [...arrays.map(({ array }) => array), ...parameters.slice(1).map(({ single }) => single)];
  }

  /** Whether the rows of a bulk share the part: then no value of its columns needs to be looked at. */
  isPartShared(rows: readonly Row[]): boolean {
    return this.part !== undefined && isUniform(rows, this.part);
  }
}

/** The parameters for any number of rows: pauses cost time, so there are none for a few. */
export function parametersOf<Row>(columns: Columns<Row>, rows: readonly Row[]): Sent[] | Promise<Sent[]> {
  return rows.length < PORTION ? columns.parameters(rows) : columns.parametersInSlices(rows);
}

/** What is sent for a column: an array, or the one value of all rows. */
interface Parameter {
  readonly array: string | Buffer | null;
  readonly single: Value;
}

function parameterOf<Row>(
  { type, of, part }: Column<Row>,
  rows: readonly Row[],
  mayBeSingle: boolean,
  isPartShared: boolean,
): Parameter {
  if (mayBeSingle && ((isPartShared && part) || isUniform(rows, of)))
    return { array: null, single: of(rows[0]!) };
  return { array: arrayOf(type, rows.map(of)), single: null };
}

/** An array of values as a parameter. */
export function arrayOf(type: SqlType, values: readonly Value[]): string | Buffer {
  return type === 'text' || type === 'json'
    ? textArray(values as (string | null)[])
    : binaryArray(type, values as never[]);
}

/** Whether there are rows and all have the same value. */
export function isUniform<Row>(rows: readonly Row[], of: (row: Row) => Value | object): boolean {
  if (rows.length === 0) return false;
  const first = of(rows[0]!);
  for (const row of rows) if (of(row) !== first) return false;
  return true;
}
