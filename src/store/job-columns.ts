import type { Column, SqlType, Value } from './columns.js';

/**
 * The columns of a job, each once. Selects, inserts, moves between tables and the types of rows are all derived from
 * this table, and columns are given by name, never by position. A test compares it with the database. A new column
 * takes a migration, an entry here, and the code that uses it.
 */

/** The tables that hold jobs, and the claims of running ones. The key of `claims` is `job`, the id of its job. */
export type JobTable = 'jobs' | 'later' | 'job_history' | 'job_history_kept' | 'claims';

interface JobColumn {
  readonly type: SqlType | 'json[]';
  /** A column that two tables share moves with the job from one to the other. */
  readonly in: readonly JobTable[];
  /** Tables in which it may be null. */
  readonly nullIn: readonly JobTable[];
  /**
   * Written when a job is stored: differs for each job, is mostly the same for a bulk, or only for jobs of schedules or
   * steps of workflows.
   */
  readonly insert?: 'each' | 'bulk' | 'scheduled' | 'step';
  /** Read when the API shows a job. Lists leave out large columns, unless they are requested. */
  readonly read?: 'small' | 'large';
  /** Its length depends on the user, so it counts towards the size of a batch. */
  readonly unbounded?: true;
}

const ALL = ['jobs', 'later', 'job_history', 'job_history_kept'] as const;
const WAITING = ['jobs', 'later'] as const;
const ENDED = ['job_history', 'job_history_kept'] as const;
const ATTEMPT = ['claims', 'job_history', 'job_history_kept'] as const;
const NONE = [] as const;
/** Null in `later` until the submission of a caller's transaction is parsed. */
const UNPARSED = ['later'] as const;

// biome-ignore format: one line for each column.
const TABLE = {
  id: { type: 'uuid', in: ALL, nullIn: NONE, insert: 'each', read: 'small' },
  tenant: { type: 'text', in: ALL, nullIn: NONE, insert: 'bulk', read: 'small' },
  queue: { type: 'int', in: ALL, nullIn: UNPARSED, insert: 'bulk', read: 'small' },
  needs: { type: 'int', in: ALL, nullIn: UNPARSED, insert: 'bulk' },
  // The hash slot of the concurrency key, zero without one: see `laneOf`.
  lane: { type: 'int', in: ALL, nullIn: NONE, insert: 'bulk' },
  rank: { type: 'smallint', in: ALL, nullIn: UNPARSED, insert: 'bulk', read: 'small' },
  run_at: { type: 'bigint', in: ALL, nullIn: UNPARSED, insert: 'bulk', read: 'small' },
  attempts: { type: 'int', in: ALL, nullIn: NONE, read: 'small' },
  failures: { type: 'smallint', in: ALL, nullIn: NONE, read: 'small' },
  losses: { type: 'smallint', in: ALL, nullIn: NONE, read: 'small' },
  max_attempts: { type: 'smallint', in: ALL, nullIn: UNPARSED, insert: 'bulk', read: 'small' },
  max_losses: { type: 'smallint', in: ALL, nullIn: UNPARSED, insert: 'bulk', read: 'small' },
  at_most_once: { type: 'boolean', in: ALL, nullIn: UNPARSED, insert: 'bulk', read: 'small' },
  timeout_ms: { type: 'bigint', in: ALL, nullIn: UNPARSED, insert: 'bulk', read: 'small' },
  created_at: { type: 'bigint', in: ALL, nullIn: NONE, insert: 'bulk', read: 'small' },
  start_before: { type: 'bigint', in: ALL, nullIn: ALL, insert: 'bulk', read: 'small' },
  late_by: { type: 'bigint', in: ALL, nullIn: ALL, read: 'small' },
  task: { type: 'text', in: ALL, nullIn: ALL, insert: 'bulk', read: 'small' },
  created_by: { type: 'text', in: ALL, nullIn: NONE, insert: 'bulk', read: 'small' },
  key: { type: 'text', in: ALL, nullIn: ALL, insert: 'bulk', read: 'small' },
  concurrency_key: { type: 'text', in: ALL, nullIn: ALL, insert: 'bulk', read: 'small' },
  target: { type: 'json', in: ALL, nullIn: ALL, insert: 'bulk', read: 'small', unbounded: true },
  backoff: { type: 'json', in: ALL, nullIn: ALL, insert: 'bulk', read: 'small' },
  requires: { type: 'json', in: ALL, nullIn: ALL, insert: 'bulk', read: 'small', unbounded: true },
  // The context of the trace that the submission was part of.
  traceparent: { type: 'text', in: ALL, nullIn: ALL, insert: 'bulk' },
  payload: { type: 'json', in: ALL, nullIn: UNPARSED, insert: 'each', read: 'large', unbounded: true },
  earlier_attempts: { type: 'json[]', in: ALL, nullIn: ALL, read: 'large', unbounded: true },
  // The name of the schedule that made the job, and the moment of its occurrence; null for a run by hand.
  schedule: { type: 'text', in: ALL, nullIn: ALL, insert: 'scheduled', read: 'small' },
  occurrence: { type: 'bigint', in: ALL, nullIn: ALL, insert: 'scheduled', read: 'small' },
  // The workflow that it is a step of.
  workflow: { type: 'uuid', in: ALL, nullIn: ALL, insert: 'step', read: 'small' },
  // The batch that it is a member of.
  batch: { type: 'uuid', in: ALL, nullIn: ALL, read: 'small' },
  // The artifact that it waits for, and until when. It is blocked then.
  artifact: { type: 'uuid', in: ['later'], nullIn: ALL, read: 'small' },
  artifact_by: { type: 'bigint', in: ['later'], nullIn: ALL, read: 'small' },
  // The size of its assignment in kibibytes, rounded down.
  size_kib: { type: 'int', in: WAITING, nullIn: NONE, insert: 'each' },
  edited: { type: 'boolean', in: ['jobs'], nullIn: NONE },
  admit_at: { type: 'bigint', in: ['later'], nullIn: NONE },
  held: { type: 'boolean', in: ['later'], nullIn: NONE, read: 'small' },
  // Whether it waits for other jobs or for an artifact; it is not admitted then, held or not.
  blocked: { type: 'boolean', in: ['later'], nullIn: NONE },
  submission: { type: 'json', in: ['later'], nullIn: UNPARSED },
  // When it was submitted, in microseconds: the order of submissions with one key.
  said_at: { type: 'bigint', in: ['later'], nullIn: ['later'] },
  fence: { type: 'int', in: ATTEMPT, nullIn: ENDED, read: 'small' },
  worker: { type: 'uuid', in: ATTEMPT, nullIn: ENDED, read: 'small' },
  epoch: { type: 'bigint', in: ATTEMPT, nullIn: ENDED, read: 'small' },
  claimed_at: { type: 'bigint', in: ATTEMPT, nullIn: ENDED, read: 'small' },
  cancelled_at: { type: 'bigint', in: ['claims'], nullIn: ['claims'], read: 'small' },
  // When the worker handed the attempt on; null while a worker holds it.
  handed_on_at: { type: 'bigint', in: ['claims'], nullIn: ['claims'], read: 'small' },
  progress: { type: 'json', in: ATTEMPT, nullIn: ATTEMPT, read: 'small' },
  // In claims set only for an attempt that was handed on.
  started_at: { type: 'bigint', in: ATTEMPT, nullIn: ATTEMPT, read: 'small' },
  finished_at: { type: 'bigint', in: ENDED, nullIn: NONE, read: 'small' },
  state: { type: 'text', in: ENDED, nullIn: NONE, read: 'small' },
  outcome: { type: 'text', in: ENDED, nullIn: ENDED, read: 'small' },
  result: { type: 'json', in: ENDED, nullIn: ENDED, read: 'large', unbounded: true },
  error: { type: 'json', in: ENDED, nullIn: ENDED, read: 'large', unbounded: true },
  // How the last attempt ran a program.
  execution: { type: 'json', in: ENDED, nullIn: ENDED, read: 'large', unbounded: true },
} as const satisfies Readonly<Record<string, JobColumn>>;

type Table = typeof TABLE;
/** The name of a column of any of the tables. */
type ColumnName = keyof Table;

/** The names of the columns that have such a property. */
type NamesWith<P> = { [N in ColumnName]: Table[N] extends P ? N : never }[ColumnName];

/** The names of the columns of a table. */
export type ColumnOf<T extends JobTable> = {
  [N in ColumnName]: T extends Table[N]['in'][number] ? N : never;
}[ColumnName];

interface TypeScriptTypes {
  uuid: string;
  text: string;
  json: string;
  int: number;
  smallint: number;
  bigint: number;
  boolean: boolean;
  'json[]': readonly string[];
}

type ValueIn<T extends JobTable, N extends ColumnName> =
  | TypeScriptTypes[Table[N]['type']]
  | (T & Table[N]['nullIn'][number] extends never ? never : null);

/** A row of a table with these columns; JSON is a text. */
export type RowOf<T extends JobTable, N extends ColumnName> = { readonly [K in N]: ValueIn<T, K> };

type Camel<S extends string> = S extends `${infer Head}_${infer Tail}`
  ? `${Head}${Capitalize<Camel<Tail>>}`
  : S;

/** Such a row with the names that `selectCamel` gives to columns. */
export type CamelRowOf<T extends JobTable, N extends ColumnName> = {
  readonly [K in N as Camel<K>]: ValueIn<T, K>;
};

const COLUMNS: readonly (JobColumn & { readonly name: ColumnName })[] = (
  Object.keys(TABLE) as ColumnName[]
).map((name) => ({ name, ...(TABLE[name] as JobColumn) }));

/** The columns of one of the tables. */
export function columnsOf<T extends JobTable>(table: T): readonly (JobColumn & { name: ColumnOf<T> })[] {
  return COLUMNS.filter((column) => column.in.includes(table)) as (JobColumn & { name: ColumnOf<T> })[];
}

type Inserted = NonNullable<JobColumn['insert']>;

/** The name of a column with this kind of `insert`. */
export type InsertedColumn<I extends Inserted> = NamesWith<{ insert: I }>;

/** The names of the columns with this kind of `insert`. */
export function insertedColumns<I extends Inserted>(insert: I): InsertedColumn<I>[] {
  return COLUMNS.filter((column) => column.insert === insert).map(({ name }) => name as InsertedColumn<I>);
}

/** The names of the columns that the API shows and that are always small. */
export const SMALL_COLUMNS = COLUMNS.filter(({ read }) => read === 'small').map(({ name }) => name);

/** The name of a column that the API shows. */
export type ReadColumn = NamesWith<{ read: 'small' | 'large' }>;

/** The names of the columns that the API shows. */
export const READ_COLUMNS = COLUMNS.filter(({ read }) => read !== undefined).map(
  ({ name }) => name as ReadColumn,
);

/** The names of the columns whose length depends on the user. */
export const UNBOUNDED_COLUMNS = COLUMNS.filter(({ unbounded }) => unbounded).map(({ name }) => name);

/** Whether a table has the column. */
export function isIn(table: JobTable, name: ColumnName): boolean {
  return (TABLE[name] as JobColumn).in.includes(table);
}

/** The SQL type of a column. */
export function typeOf(name: ColumnName): JobColumn['type'] {
  return TABLE[name].type;
}

/** A parameter column with the name and the type of a column of jobs. */
export function column<Row>(
  name: Exclude<ColumnName, 'earlier_attempts'>,
  of: (row: Row) => Value,
  part?: (row: Row) => object,
): Column<Row> {
  return { name, type: TABLE[name].type, of, part };
}

/** Columns in a select: `j.id, j.run_at`. */
export function select(alias: string, names: readonly ColumnName[]): string {
  return names.map((name) => `${alias}.${name}`).join(', ');
}

/** Columns in a select with names in camel case: `j.id, j.run_at AS "runAt"`. */
export function selectCamel(alias: string, names: readonly ColumnName[]): string {
  const camel = (name: string) => name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
  return names
    .map((name) => (name.includes('_') ? `${alias}.${name} AS "${camel(name)}"` : `${alias}.${name}`))
    .join(', ');
}

/** A move of jobs from one table to another. */
interface Move<From extends JobTable, To extends JobTable> {
  readonly from: From;
  readonly to: To;
  /** The part of the WITH that deleted the rows from `from`; they are called `m`. */
  readonly rows: string;
  /** Values of columns that the old row lacks or that change. */
  readonly set: { readonly [N in ColumnOf<To>]?: string };
}

/** The statement that inserts moved rows; columns that the old table lacks and that are not set get their defaults. */
export function insertMoved<From extends JobTable, To extends JobTable>(move: Move<From, To>): string {
  const set: { readonly [N in ColumnName]?: string } = move.set;
  const names = columnsOf(move.to)
    .map(({ name }) => name as ColumnName)
    .filter((name) => set[name] !== undefined || isIn(move.from, name));
  const values = names.map((name) => (set[name] ? `${set[name]} AS ${name}` : `m.${name}`));
  return `INSERT INTO punctual.${move.to} (${names.join(', ')})
    SELECT ${values.join(', ')}
    FROM ${move.rows} m`;
}

/** The SQL for the approximate size of a row; large values are measured by their pointers, without being read. */
export function rowBytes(alias: string, table: JobTable): string {
  const sizes = UNBOUNDED_COLUMNS.filter((name) => isIn(table, name)).map(
    (name) => `coalesce(pg_column_size(${alias}.${name}), 0)`,
  );
  return `(256 + ${sizes.join(' + ')})`;
}
