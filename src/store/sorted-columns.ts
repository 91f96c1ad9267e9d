import { addAll } from '../core/long-lists.js';
import { binaryArray } from './array-bytes.js';
import { inClaimOrder } from './batch-statement.js';
import { arrayOf, type Column, isUniform, type Sent } from './columns.js';

/** The columns inside the text of a statement. */
interface SortedInSql {
  /** The ids. */
  readonly ids: string;
  /** The value of a column in the row with the id. */
  readonly of: (name: string, id: string) => string;
  /** The place of the row with the id in the arrays. To find it takes a search, so a statement over many columns does it once. */
  readonly placeOf: (id: string) => string;
  /** The value of a column in the row at the place. */
  readonly at: (name: string, place: string) => string;
}

/** The sentinel for a null number; none of the columns has a negative one. There is none for ids and flags. */
const MISSING = -1;

/**
 * Many rows as the parameters of a statement that finds them by `id = ANY(ids)`, which scans the index once instead of
 * searching it for every row (from Postgres 17 on).
 *
 * The ids are sorted, so a binary search (`width_bucket`) gives the index of a row's id, under which the arrays of the
 * columns hold its values. Postgres accesses an array element in O(1) only if all elements have a fixed length and none
 * is null. JSON is therefore sent as one buffer with the offset and length of each text, and a null number as a
 * sentinel. A column with one value for all rows is sent as that value, as in `Columns`.
 */
export class SortedColumns<Row extends { readonly id: string }> {
  constructor(private readonly columns: readonly Column<Row>[]) {}

  /** Per column a single value and an array; for JSON a single value, the buffer, the offsets and the lengths. */
  inSql(from: number): SortedInSql {
    const ids = `$${from}::uuid[]`;
    const values = new Map<string, (place: string) => string>();
    let next = from + 1;
    for (const { name, type } of this.columns) {
      const single = `$${next}::${type}`;
      if (type === 'json') {
        const [bytes, begins, lengths] = [
          `$${next + 1}::bytea`,
          `($${next + 2}::int[])`,
          `($${next + 3}::int[])`,
        ];
        values.set(name, (place) => {
          const text = `convert_from(substring(${bytes} FROM ${begins}[${place}] FOR nullif(${lengths}[${place}], 0)), 'UTF8')`;
          return `CASE WHEN ${bytes} IS NULL THEN ${single} ELSE ${text}::json END`;
        });
        next += 4;
      } else {
        const array = `($${next + 1}::${type}[])`;
        values.set(name, (place) => {
          const value = `${array}[${place}]`;
          const orNull = type === 'uuid' || type === 'boolean' ? value : `nullif(${value}, ${MISSING})`;
          return `CASE WHEN ${array} IS NULL THEN ${single} ELSE ${orNull} END`;
        });
        next += 2;
      }
    }
    const at = (name: string, place: string) => values.get(name)!(place);
    const placeOf = (id: string) => `width_bucket(${id}, ${ids})`;
    return { ids, of: (name, id) => at(name, placeOf(id)), placeOf, at };
  }

  /** The parameters for these rows, in the order of `inSql`. */
  parameters(rows: readonly Row[]): Sent[] {
    const ordered = inClaimOrder(rows);
    const parameters: Sent[] = [
      binaryArray(
        'uuid',
        ordered.map(({ id }) => id),
      ),
    ];
    for (const { type, of } of this.columns) {
      if (isUniform(ordered, of))
        parameters.push(of(ordered[0]!), null, ...(type === 'json' ? [null, null] : []));
      else if (type === 'json') addAll(parameters, [null, ...slices(ordered.map(of) as (string | null)[])]);
      else {
        const values = ordered.map((row) => of(row) ?? MISSING);
        parameters.push(null, arrayOf(type, values));
      }
    }
    return parameters;
  }
}

/** Texts as one buffer, with the offset (counted from one) and the length of each; the length of a null is zero. */
function slices(texts: readonly (string | null)[]): [Buffer, Buffer, Buffer] {
  const parts = texts.map((text) => (text === null ? null : Buffer.from(text)));
  let end = 1;
  const begins = parts.map((part) => {
    const begin = end;
    end += part?.length ?? 0;
    return begin;
  });
  const bytes = Buffer.concat(parts.filter((part) => part !== null));
  return [
    bytes,
    binaryArray('int', begins),
    binaryArray(
      'int',
      parts.map((part) => part?.length ?? 0),
    ),
  ];
}
