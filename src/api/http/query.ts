import type { TObject } from 'typebox';
import { LIST, NoQuery } from '../../core/schemas/query.js';
import { validate } from '../../core/schemas/validate.js';

type Query = Readonly<Record<string, unknown>>;

const INTEGER = /^-?\d{1,15}$/;

/** `payload.customer` or `payload[customer]`: the name of a parameter that holds an object, and of one of its fields. */
const FIELD = /^([a-z]+)(?:\.(.*)|\[(.*)\])$/is;

/**
 * Makes the parser of a route's query. Texts become numbers where the schema has a number, fields of an object become
 * that object, and missing fields get the defaults of the schema. A list that is given as several parameters of one name
 * becomes one text with commas.
 */
export function queryReader(schema: TObject = NoQuery): (query: Query) => Query {
  const properties: [string, { type?: unknown; default?: unknown }][] = Object.entries(schema.properties);
  const numbers = new Set(properties.filter(([, { type }]) => type === 'integer').map(([name]) => name));
  const lists = new Set(properties.filter(([, rules]) => LIST in rules).map(([name]) => name));
  const objects = new Set(properties.filter(([, { type }]) => type === 'object').map(([name]) => name));
  const withDefault = properties.filter(([, rules]) => 'default' in rules);
  const defaults: Query = Object.freeze(
    Object.fromEntries(withDefault.map(([name, rules]) => [name, rules.default])),
  );
  const requiresSome = (schema.required ?? []).length > 0;
  return (query) => {
    const entries = Object.entries(query).map(([name, value]) => {
      if (lists.has(name) && Array.isArray(value)) return [name, value.join(',')] as const;
      const isNumber = numbers.has(name) && typeof value === 'string' && INTEGER.test(value);
      return [name, isNumber ? Number(value) : value] as const;
    });
    // Most requests have no query, so there is nothing to check.
    if (entries.length === 0 && !requiresSome) return defaults;
    const given = Object.fromEntries(objects.size === 0 ? entries : gathered(entries, objects));
    return { ...defaults, ...(validate(schema, given) as Query) };
  };
}

type Entry = readonly [name: string, value: unknown];

/** The entries with the fields of objects gathered. An object that is given otherwise is left for the schema to refuse. */
function gathered(entries: readonly Entry[], objects: ReadonlySet<string>): Entry[] {
  const fields = new Map<string, Entry[]>();
  const others: Entry[] = [];
  for (const entry of entries) {
    const match = FIELD.exec(entry[0]);
    const object = match?.[1];
    if (object === undefined || !objects.has(object)) others.push(entry);
    else fields.set(object, [...(fields.get(object) ?? []), [match![2] ?? match![3]!, entry[1]]]);
  }
  return [...others, ...[...fields].map(([name, values]): Entry => [name, Object.fromEntries(values)])];
}
