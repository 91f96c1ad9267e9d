import fc from 'fast-check';
import type { TSchema } from 'typebox';
import { Compile } from 'typebox/compile';
import { isPlainObject } from './explain.js';

/** Bodies that are made from a schema, and bodies in which one thing was changed afterwards. */

interface Rules {
  readonly type?: string;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly TSchema[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly items?: TSchema;
  readonly minItems?: number;
  readonly properties?: Readonly<Record<string, TSchema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: TSchema;
  readonly propertyNames?: TSchema;
}

/** Texts that fit somewhere, mostly at a bound; each kind of text takes what fits. */
const TEXTS = [
  '0123456789abcdef',
  ...[
    '',
    'a',
    'mail',
    'x'.repeat(128),
    'x'.repeat(512),
    '🎉'.repeat(300),
    '🎉'.repeat(512),
    'ü 🎉',
    'a\nb',
    '*',
  ],
  ...['0s', '1ms', '30s', '1m', '2h', '36600d', '2026-01-01T00:00:05Z', '2020-01-01T00:00:00+01:00'],
  ...[
    'http://a',
    'https://a.example/b?c',
    '* * * * *',
    '30 2 * * *',
    'UTC',
    'Europe/Berlin',
    'payload',
    'failed,cancelled',
  ],
  '01890a5d-ac96-774b-bcce-b302099a8057',
];

const ODD = fc.oneof(
  fc.jsonValue({ maxDepth: 2 }),
  fc.constantFrom(...TEXTS, 'x'.repeat(513), '\0', '\ud800', '🎉'.repeat(513), 'a b', '36601d', 'file:///a'),
  fc.constantFrom<unknown>(null, undefined, 0, 1, 10, 0.5, -1, Number.NaN, 5n, {}, [], [[[[[[[[[1]]]]]]]]]),
);

/** Bodies that a schema describes. */
export function fromSchema(schema: TSchema): fc.Arbitrary<unknown> {
  const rules = schema as Rules;
  if (rules.anyOf) return fc.oneof(...rules.anyOf.map(fromSchema));
  if (rules.enum) return fc.constantFrom(...rules.enum);
  if ('const' in rules) return fc.constant(rules.const);
  if (rules.type === 'object') return objectFrom(rules);
  if (rules.type === 'array')
    return fc.array(fromSchema(rules.items!), { minLength: rules.minItems ?? 0, maxLength: 3 });
  if (rules.type === 'boolean') return fc.boolean();
  if (rules.type === 'null') return fc.constant(null);
  if (rules.type === 'string') return textFrom(schema);
  if (rules.type === undefined) return fc.jsonValue({ maxDepth: 2 });
  const bounds = { min: rules.minimum ?? 0, max: rules.maximum ?? 1_000 };
  return rules.type === 'integer' ? fc.integer(bounds) : fc.double({ ...bounds, noNaN: true });
}

function objectFrom({ properties, required = [], propertyNames, additionalProperties }: Rules) {
  if (!properties) {
    return fc.dictionary(textFrom(propertyNames!), fromSchema(additionalProperties!), { maxKeys: 3 });
  }
  const fields = Object.entries(properties).map(([name, field]) => [name, fromSchema(field)] as const);
  return fc
    .tuple(
      fc.record(Object.fromEntries(fields), { noNullPrototype: true }),
      fc.array(fc.nat(), { maxLength: 4 }),
    )
    .map(([body, picks]) => {
      // Few fields at once: with all of them hardly any body would keep the rules between fields.
      const kept = new Set([...required, ...picks.map((pick) => fields[pick % fields.length]![0])]);
      return Object.fromEntries(Object.entries(body).filter(([name]) => kept.has(name)));
    });
}

function textFrom(schema: TSchema): fc.Arbitrary<string> {
  const compiled = Compile(schema);
  return fc.constantFrom(...TEXTS.filter((text) => compiled.Check(text)));
}

/**
 * The same bodies, most of them after one field was replaced, added or taken away somewhere. Half of them also get what
 * is `usual`: fields that rules beyond the schema ask for, without which nearly every body would be refused.
 */
export function nearlyFromSchema(
  schema: TSchema,
  usual: Readonly<Record<string, unknown>> = {},
): fc.Arbitrary<unknown> {
  const made = fc
    .tuple(fromSchema(schema), fc.boolean())
    .map(([body, isUsual]) => (isUsual && isPlainObject(body) ? { ...usual, ...body } : body));
  const change = fc.tuple(fc.nat(), fc.constantFrom('replace', 'add', 'remove'), ODD);
  return fc.tuple(made, fc.array(change, { maxLength: 2 })).map(([body, changes]) =>
    changes.reduce((changed, [pick, how, odd]) => {
      const objects = objectsIn(changed);
      const object = objects[pick % objects.length];
      if (!object) return structuredClone(odd);
      const names = Object.keys(object);
      const name = how === 'add' ? 'unknown' : names[pick % Math.max(names.length, 1)];
      if (name === undefined) return changed;
      if (how === 'remove') delete object[name];
      else object[name] = structuredClone(odd);
      return changed;
    }, structuredClone(body)),
  );
}

function objectsIn(value: unknown): Record<string, unknown>[] {
  if (!isPlainObject(value)) return [];
  return [value, ...Object.values(value).flatMap(objectsIn)];
}
