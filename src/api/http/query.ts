import type { TObject } from 'typebox';
import { LIST, NoQuery } from '../../core/schemas/query.js';
import { validate } from '../../core/schemas/validate.js';

type Query = Readonly<Record<string, unknown>>;

const INTEGER = /^-?\d{1,15}$/;

/**
 * Makes the parser of a route's query. Texts become numbers where the schema has a number, and missing fields get the
 * defaults of the schema. A list that is given as several parameters of one name becomes one text with commas.
 */
export function queryReader(schema: TObject = NoQuery): (query: Query) => Query {
  const properties: [string, { type?: unknown; default?: unknown }][] = Object.entries(schema.properties);
  const numbers = new Set(properties.filter(([, { type }]) => type === 'integer').map(([name]) => name));
  const lists = new Set(properties.filter(([, rules]) => LIST in rules).map(([name]) => name));
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
    return { ...defaults, ...(validate(schema, Object.fromEntries(entries)) as Query) };
  };
}
