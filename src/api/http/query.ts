import type { TObject } from 'typebox';
import { NoQuery } from '../schemas/query.js';
import { validate } from '../validate.js';

type Query = Readonly<Record<string, unknown>>;

const INTEGER = /^-?\d{1,15}$/;

/**
 * Makes the reader of a route's query. Numbers arrive as text and become numbers where the schema wants one, and what is
 * left out has the schema's default.
 */
export function queryReader(schema: TObject = NoQuery): (query: Query) => Query {
  const properties: [string, { type?: unknown; default?: unknown }][] = Object.entries(schema.properties);
  const numbers = new Set(properties.filter(([, { type }]) => type === 'integer').map(([name]) => name));
  const defaults: Query = Object.fromEntries(
    properties.filter(([, rules]) => 'default' in rules).map(([name, rules]) => [name, rules.default]),
  );
  return (query) => {
    const entries = Object.entries(query).map(([name, value]) => {
      const isNumber = numbers.has(name) && typeof value === 'string' && INTEGER.test(value);
      return [name, isNumber ? Number(value) : value] as const;
    });
    // Most requests have no query, and none of it is required anywhere.
    if (entries.length === 0) return defaults;
    return { ...defaults, ...(validate(schema, Object.fromEntries(entries)) as Query) };
  };
}
