import fc from 'fast-check';
import Schema from 'typebox/schema';
import { describe, expect, it } from 'vitest';
import type { FieldError } from './errors.js';
import { PayloadSchema } from './payload-schema.js';

function read(schema: unknown): PayloadSchema {
  const errors: FieldError[] = [];
  const found = PayloadSchema.read(schema, '/payloadSchema', errors);
  if (!found) throw new Error(JSON.stringify(errors));
  return found;
}

function mistakes(schema: unknown): readonly FieldError[] {
  const errors: FieldError[] = [];
  expect(PayloadSchema.read(schema, '/payloadSchema', errors) === null).toBe(errors.length > 0);
  return errors;
}

function check(schema: unknown, payload: unknown): readonly FieldError[] {
  const errors: FieldError[] = [];
  read(schema).check(payload, '/payload', errors);
  return errors;
}

const PERSON = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  type: 'object',
  properties: {
    name: { type: 'string', minLength: 1, maxLength: 3 },
    age: { type: 'integer', minimum: 0, exclusiveMaximum: 150 },
    tags: { type: 'array', items: { enum: ['a', 'b'] }, maxItems: 2 },
    friend: { $ref: '#' },
    home: { $ref: '#/$defs/place' },
  },
  required: ['name'],
  additionalProperties: false,
  $defs: { place: { oneOf: [{ type: 'string' }, { type: 'object', required: ['city'] }] } },
};

describe('a payload', () => {
  it.each([
    [{ name: 'Ada' }],
    [{ name: 'A', age: 36, tags: ['a', 'b'], home: 'here' }],
    [{ name: '🙂🙂🙂', friend: { name: 'B', friend: { name: 'C' } }, home: { city: 'x' } }],
  ])('that fits is taken: %j', (payload) => expect(check(PERSON, payload)).toEqual([]));

  it.each([
    [{}, '/payload/name', 'is required'],
    [[], '/payload', 'must be an object'],
    [{ name: '' }, '/payload/name', 'must have at least 1 characters'],
    [{ name: 'long' }, '/payload/name', 'must have at most 3 characters'],
    [{ name: 'A', age: 1.5 }, '/payload/age', 'must be a whole number'],
    [{ name: 'A', age: 150 }, '/payload/age', 'must be less than 150'],
    [{ name: 'A', tags: ['a', 'c'] }, '/payload/tags/1', 'must be one of "a","b"'],
    [{ name: 'A', 'x/y': 1 }, '/payload/x~1y', 'is not a known field'],
    [{ name: 'A', friend: { name: 1 } }, '/payload/friend/name', 'must be text'],
    [{ name: 'A', home: 7 }, '/payload/home', 'must fit exactly one of the schemas of "oneOf"'],
  ])('that does not is refused with a pointer: %j', (payload, pointer, detail) => {
    expect(check(PERSON, payload)).toEqual([{ pointer, detail }]);
  });

  it('with many mistakes is told of some of them', () => {
    expect(check({ items: { type: 'string' } }, new Array(100_000).fill(1)).length).toBe(21);
  });
});

describe('a schema', () => {
  it.each([
    [{ type: 'text' }, '/payloadSchema/type'],
    [{ properties: { a: { type: [] } } }, '/payloadSchema/properties/a/type'],
    [{ minimum: '1' }, '/payloadSchema/minimum'],
    [{ minLength: -1 }, '/payloadSchema/minLength'],
    [{ multipleOf: 0 }, '/payloadSchema/multipleOf'],
    [{ anyOf: [] }, '/payloadSchema/anyOf'],
    [{ items: [{}] }, '/payloadSchema/items'],
    [{ required: [1] }, '/payloadSchema/required'],
    [{ enum: [] }, '/payloadSchema/enum'],
    [{ $ref: 'https://example.com/schema.json' }, '/payloadSchema/$ref'],
    [{ $ref: '#/$defs/missing', $defs: {} }, '/payloadSchema/$ref'],
    [{ $id: 'https://example.com/schema.json' }, '/payloadSchema/$id'],
    [{ minimun: 1 }, '/payloadSchema/minimun'],
    [{ if: {} }, '/payloadSchema/if'],
    ['object', '/payloadSchema'],
    [null, '/payloadSchema'],
  ])('that is none, or says what is not checked, is refused: %j', (schema, pointer) => {
    expect(mistakes(schema)[0]).toMatchObject({ pointer });
  });

  it.each<[string, unknown]>([
    ['pattern', '(a+)+$'],
    ['pattern', 7],
    ['format', 'regex'],
    ['format', 'toString'],
    ['patternProperties', { '(a+)+$': {} }],
  ])('with what could hold nodes up is refused wherever it stands: %s %j', (keyword, value) => {
    const schema = { properties: { name: { anyOf: [{ [keyword]: value }] } } };
    expect(mistakes(schema)).toMatchObject([
      { pointer: `/payloadSchema/properties/name/anyOf/0/${keyword}` },
    ]);
  });

  it.each<[unknown, readonly string[], readonly string[]]>([
    [{ pattern: '^[A-Z]{2}\\d+$' }, ['AB1', 'XY123456'], ['', 'AB', 'ab1', 'AB1 ']],
    [{ format: 'date-time' }, ['2026-12-24T18:00:00Z'], ['2026-12-24', 'soon', '']],
    [{ format: 'date' }, ['2026-12-24'], ['2026-13-01', '2026-02-30', '24.12.2026']],
    [{ format: 'uuid' }, ['01890a5d-ac96-774b-bcce-b302099a8057'], ['01890a5d', '']],
    [
      { format: 'email' },
      ['ada@example.com', 'a@b'],
      ['ada', '@b', 'a@', 'a@b@c', 'a b@c', `${'x'.repeat(300)}@y`],
    ],
    [
      { format: 'uri' },
      ['https://example.com/a?b', 'mailto:a@b'],
      ['example', '/path', `https://${'x'.repeat(9_000)}`],
    ],
  ])('takes the texts it describes: %j', (schema, right, wrong) => {
    for (const text of right) expect(check(schema, text)).toEqual([]);
    for (const text of wrong) expect(check(schema, text)).toHaveLength(1);
    expect(check(schema, 7)).toEqual([]);
  });

  it('may use the names of keywords for properties', () => {
    expect(
      check({ properties: { pattern: { type: 'string' }, $ref: true } }, { pattern: 'x', $ref: 1 }),
    ).toEqual([]);
  });

  it('is bounded in depth and in schemas', () => {
    let deep: unknown = {};
    for (let i = 0; i < 40; i++) deep = { items: deep };
    expect(mistakes(deep)[0]!.detail).toContain('32 levels');
    expect(mistakes({ anyOf: new Array(2_000).fill({}) })[0]!.detail).toContain('1000 schemas');
  });

  it.each<[string, unknown, unknown]>([
    [
      'many alternatives',
      { items: { anyOf: [...new Array(900).fill({ type: 'string' }), true] } },
      new Array(100_000).fill(1),
    ],
    [
      'long lists of values',
      { items: { enum: Array.from({ length: 9_000 }, (_, i) => `v${i}`) } },
      new Array(50_000).fill('v8999'),
    ],
    ['a circle of references', { $ref: '#' }, 1],
    [
      'two references at each level',
      {
        allOf: [{ $ref: '#/$defs/a' }],
        $defs: { a: { allOf: [{ $ref: '#/$defs/a' }, { $ref: '#/$defs/a' }] } },
      },
      1,
    ],
    ['a costly pattern', { pattern: 'a*a*a*a*b' }, 'a'.repeat(1_000)],
    ['many optional characters', { pattern: `^${'a?'.repeat(40)}a{40}$` }, 'a'.repeat(40)],
    ['long texts', { items: { minLength: 1 } }, new Array(100).fill('x'.repeat(100_000))],
  ])('cannot hold the event loop: %s', (_, schema, payload) => {
    const began = performance.now();
    expect(check(schema, payload)).toEqual([
      { pointer: '/payload', detail: 'takes too long to check against the schema of the task' },
    ]);
    expect(performance.now() - began).toBeLessThan(2_000);
  });

  it('means what the installed validator takes it to mean', () => {
    const text = fc.string({ maxLength: 4 });
    const name = fc.constantFrom('a', 'b', 'c');
    const { schema } = fc.letrec<{ schema: unknown; object: unknown }>((tie) => ({
      schema: fc.oneof({ depthSize: 'small', maxDepth: 3 }, fc.boolean(), tie('object')),
      object: fc.record(
        {
          type: fc.oneof(kind, fc.uniqueArray(kind, { minLength: 1, maxLength: 3 })),
          enum: fc.array(fc.oneof(text, fc.integer({ min: 0, max: 3 })), { minLength: 1, maxLength: 3 }),
          const: fc.jsonValue({ maxDepth: 1 }),
          minimum: fc.integer({ min: -3, max: 3 }),
          exclusiveMaximum: fc.integer({ min: -3, max: 3 }),
          multipleOf: fc.integer({ min: 1, max: 3 }),
          minLength: fc.nat({ max: 3 }),
          maxLength: fc.nat({ max: 3 }),
          pattern: fc.constantFrom('^a', 'b$', '^[ab]{2}$', '.+'),
          items: tie('schema'),
          prefixItems: fc.array(tie('schema'), { minLength: 1, maxLength: 2 }),
          minItems: fc.nat({ max: 2 }),
          maxItems: fc.nat({ max: 2 }),
          properties: fc.dictionary(name, tie('schema'), { maxKeys: 2 }),
          required: fc.uniqueArray(name, { maxLength: 2 }),
          additionalProperties: tie('schema'),
          propertyNames: fc.record({ maxLength: fc.nat({ max: 1 }) }),
          minProperties: fc.nat({ max: 2 }),
          maxProperties: fc.nat({ max: 2 }),
          allOf: fc.array(tie('schema'), { minLength: 1, maxLength: 2 }),
          anyOf: fc.array(tie('schema'), { minLength: 1, maxLength: 2 }),
          oneOf: fc.array(tie('schema'), { minLength: 1, maxLength: 2 }),
          not: tie('schema'),
        },
        { requiredKeys: [] },
      ),
    }));
    const value = fc.letrec<{ value: unknown }>((tie) => ({
      value: fc.oneof(
        { depthSize: 'small', maxDepth: 3 },
        fc.constantFrom(null, true, 0, 1, 2, -1, 1.5, '', 'a', 'ab', '🙂'),
        fc.array(tie('value'), { maxLength: 3 }),
        fc.dictionary(name, tie('value'), { maxKeys: 3 }),
      ),
    })).value;
    fc.assert(
      fc.property(schema, value, (given, payload) => {
        expect(check(given, payload).length === 0).toBe(Schema.Check(given as never, payload));
      }),
      { numRuns: 2_000 },
    );
  });
});

const kind = fc.constantFrom('string', 'number', 'integer', 'boolean', 'null', 'object', 'array');
