import { addAll } from '../core/long-lists.js';
import { plainArray } from './array-text.js';
import { inClaimOrder } from './claim-order.js';
import { type Column, isUniform, type Value } from './columns.js';

/**
 * Many rows as the parameters of a statement that finds them by `id = ANY(ids)`, which walks the index once instead of
 * searching it anew for every row (from Postgres 17 on).
 *
 * What belongs to a row is looked up by the place of its id among the ids, which are in order: a search by halves in the
 * array of a column. That finds an element at once only where all are of one length and none is missing: JSON goes as one
 * run of bytes with the place of each text in it, and what is missing as a value that stands for it. A column with one
 * value for all rows goes as that value, as in `Columns`.
 */
export interface PlacedInSql {
  /** The ids. */
  readonly ids: string;
  /** The value of a column in the row with the id. */
  readonly of: (name: string, id: string) => string;
}

/** Stands for a missing number; none of the columns has a negative one. */
const MISSING = -1;

export class PlacedColumns<Row extends { readonly id: string }> {
  constructor(private readonly columns: readonly Column<Row>[]) {}

  /** Each column has a single value and an array; JSON has the bytes, the beginnings and the lengths of its texts. */
  inSql(from: number): PlacedInSql {
    const ids = `$${from}::uuid[]`;
    const values = new Map<string, (id: string) => string>();
    let next = from + 1;
    for (const { name, type } of this.columns) {
      const single = `$${next}::${type}`;
      if (type === 'json') {
        const [bytes, begins, lengths] = [
          `$${next + 1}::bytea`,
          `($${next + 2}::int[])`,
          `($${next + 3}::int[])`,
        ];
        values.set(name, (id) => {
          const place = `width_bucket(${id}, ${ids})`;
          const text = `convert_from(substring(${bytes} FROM ${begins}[${place}] FOR nullif(${lengths}[${place}], 0)), 'UTF8')`;
          return `CASE WHEN ${bytes} IS NULL THEN ${single} ELSE ${text}::json END`;
        });
        next += 4;
      } else {
        const array = `($${next + 1}::${type}[])`;
        values.set(name, (id) => {
          const value = `${array}[width_bucket(${id}, ${ids})]`;
          const orNull = type === 'uuid' ? value : `nullif(${value}, ${MISSING})`;
          return `CASE WHEN ${array} IS NULL THEN ${single} ELSE ${orNull} END`;
        });
        next += 2;
      }
    }
    return { ids, of: (name, id) => values.get(name)!(id) };
  }

  /** The parameters for these rows, as `inSql` counts them. */
  parameters(rows: readonly Row[]): (Value | Buffer)[] {
    const ordered = inClaimOrder(rows);
    const parameters: (Value | Buffer)[] = [plainArray(ordered.map(({ id }) => id))];
    for (const { type, of } of this.columns) {
      if (isUniform(ordered, of))
        parameters.push(of(ordered[0]!), null, ...(type === 'json' ? [null, null] : []));
      else if (type === 'json') addAll(parameters, [null, ...slices(ordered.map(of) as (string | null)[])]);
      else parameters.push(null, plainArray(ordered.map((row) => of(row) ?? MISSING)));
    }
    return parameters;
  }
}

/** Texts as one run of bytes, with the place (from one on) and the length of each; none for a missing one. */
function slices(texts: readonly (string | null)[]): [Buffer, string, string] {
  const parts = texts.map((text) => (text === null ? null : Buffer.from(text)));
  let end = 1;
  const begins = parts.map((part) => {
    const begin = end;
    end += part?.length ?? 0;
    return begin;
  });
  const bytes = Buffer.concat(parts.filter((part) => part !== null));
  return [bytes, plainArray(begins), plainArray(parts.map((part) => part?.length ?? 0))];
}
