import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { JsonText, readJsonText, readLargeJsonText } from './json-reader.js';
import { MOST_VALUES, MOST_VALUES_AT_ONCE } from './json-scanner.js';

const BULK = { maxDepth: 64, text: 'payload', lists: ['jobs'] };
const MAP = { maxDepth: 64, text: 'payload', maps: ['jobs'] };
const TOP = { ...MAP, topText: 'input' };
const OR = { ...MAP, orText: 'workflow' };
const ONE = { maxDepth: 64, text: 'payload' };

function depthOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  return 1 + Math.max(0, ...Object.values(value).map(depthOf));
}

/** The value with everything that was kept as text in its place, and the texts themselves. */
function opened(value: unknown): unknown {
  if (value instanceof JsonText) return JSON.parse(value.text);
  if (Array.isArray(value)) return value.map(opened);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, child]) => [name, opened(child)]));
}

function outcomeOf(read: () => unknown): unknown {
  try {
    return JSON.stringify(opened(read()));
  } catch (error) {
    return (error as { code?: string }).code;
  }
}

function parsed(text: string): unknown {
  return outcomeOf(() => {
    try {
      return JSON.parse(text);
    } catch (error) {
      throw Object.assign(error as Error, { code: 'MALFORMED_JSON' });
    }
  });
}

/** JSON whose names matter here, with some of its characters left out, doubled or replaced. */
const submissions = fc
  .dictionary(
    fc.constantFrom('payload', 'jobs', 'input', 'task', 'p"a', 'ä'),
    fc.oneof(
      fc.jsonValue({ maxDepth: 3 }),
      fc.array(fc.dictionary(fc.constantFrom('payload', 'task', 'é\n'), fc.jsonValue({ maxDepth: 2 })), {
        maxLength: 5,
      }),
      fc.dictionary(
        fc.constantFrom('a', 'b', 'jobs', 'payload', 'é"'),
        fc.oneof(
          fc.jsonValue({ maxDepth: 1 }),
          fc.dictionary(fc.constantFrom('payload', 'workflow', 'task', 'é\n'), fc.jsonValue({ maxDepth: 2 })),
        ),
      ),
      fc.array(fc.jsonValue({ maxDepth: 1 }), { maxLength: 3 }),
    ),
  )
  .map((value) => JSON.stringify(value));
const damaged = fc
  .tuple(
    submissions,
    fc.nat(),
    fc.constantFrom('', ',', '"', '\\', '\\u12', '{', ']', ' ', '-', '0', '1.', 'e', '\n', 'tru', '\u0001'),
    fc.nat(2),
  )
  .map(([text, place, by, gone]) => {
    const at = place % (text.length + 1);
    return text.slice(0, at) + by + text.slice(at + gone);
  });

describe('reading JSON', () => {
  it('takes what JSON.parse takes and gives the same value, whatever is kept as text or read in parts', async () => {
    await fc.assert(
      fc.asyncProperty(fc.oneof(submissions, damaged, fc.json()), async (text) => {
        // Names that are given twice, numbers that do not fit and __proto__ are refused for reasons of their own.
        fc.pre(!text.includes('__proto__'));
        const bytes = Buffer.from(text);
        fc.pre(bytes.toString() === text);
        for (const shape of [BULK, MAP, OR, TOP, ONE, { maxDepth: 64 }]) {
          const here = outcomeOf(() => readJsonText(bytes, shape));
          if (here === 'INVALID_REQUEST') continue;
          expect(here).toBe(parsed(text));
          const large = await readLargeJsonText(bytes, shape).catch((error) => error);
          expect(outcomeOf(() => (large instanceof Error ? raise(large) : large))).toBe(here);
        }
      }),
      { numRuns: 600 },
    );
  });

  it('refuses what is too deep, and nothing else', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 6 }), fc.nat(8), (value, maxDepth) => {
        fc.pre(!JSON.stringify(value).includes('__proto__'));
        const body = Buffer.from(JSON.stringify(value, null, 1));
        if (depthOf(value) > maxDepth) {
          expect(() => readJsonText(body, { maxDepth })).toThrow(/nested deeper/);
        } else {
          expect(JSON.stringify(readJsonText(body, { maxDepth }))).toBe(JSON.stringify(value));
        }
      }),
    );
  });

  it('refuses any bytes with an error that names a code, or gives a value, never a crash', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        try {
          readJsonText(Buffer.from(bytes), { maxDepth: 4 });
        } catch (error) {
          expect(error).toHaveProperty('code');
        }
      }),
    );
  });

  it('keeps one of two fields of each item as text, to the letter', () => {
    const text =
      '{"jobs":{"a":{"workflow": {"x":1.10} },"b":{"workflow":{"x":2}},"c":{"payload":1e400},"d":{"payload":2.0}}}';
    const { jobs } = readJsonText(Buffer.from(text), OR) as {
      jobs: Record<string, Record<string, JsonText>>;
    };
    expect(jobs.a).toEqual({ workflow: new JsonText('{"x":1.10}', 10) });
    expect(jobs.b).toEqual({ workflow: new JsonText('{"x":2}', 7) });
    expect(jobs.c).toEqual({ payload: new JsonText('1e400', 5) });
    expect(jobs.d).toEqual({ payload: new JsonText('2.0', 3) });
  });

  it('lets the word __proto__ stand as a value', () => {
    const text = '{"word":"__proto__","list":["__proto__"],"say":"\\"__proto__\\": no"}';
    expect(readJsonText(Buffer.from(text), { maxDepth: 8 })).toEqual(JSON.parse(text));
  });

  it.each([
    ['{"task":"a","payload":{"a":[{"__proto__":1}]}}', ONE, '/payload/a/0/__proto__'],
    ['{"jobs":[{"payload":1},{"payload":{"\\u005f_proto__":1}}]}', BULK, '/jobs/1/payload/__proto__'],
    ['{"jobs":[{"payload":1,"payload":2}]}', BULK, '/jobs/0/payload'],
    ['{"jobs":[],"jobs":[]}', BULK, '/jobs'],
    ['{"jobs":{},"jobs":{"a":{}}}', MAP, '/jobs'],
    ['{"jobs":{"a":{"task":"x"},"b":{},"\\u0061":{}}}', MAP, '/jobs/a'],
    ['{"jobs":{"a":{"payload":1,"payload":2}}}', MAP, '/jobs/a/payload'],
    ['{"jobs":{"a":{"payload":{"__proto__":1}}}}', MAP, '/jobs/a/payload/__proto__'],
    ['{"jobs":{"__proto__":{}}}', MAP, '/jobs/__proto__'],
    ['{"jobs":{"a":{"workflow":1,"workflow":2}}}', OR, '/jobs/a/workflow'],
    ['{"jobs":{"a":{"payload":1,"workflow":2}}}', OR, '/jobs/a/workflow'],
    ['{"jobs":{"a":{"workflow":1,"payload":2}}}', OR, '/jobs/a/payload'],
    ['{"payload":1,"p\\u0061yload":2}', ONE, '/payload'],
    ['{"jobs":[{"n":[0,1e999]}]}', BULK, '/jobs/0/n/1'],
    ['{"n":12345678901234567890}', ONE, '/n'],
    ['{"n":9007199254740993}', ONE, '/n'],
    ['{"n":-1e-400}', ONE, '/n'],
    [`{"payload":[${'1'.repeat(20_000)}]}`, ONE, '/payload/0'],
  ])('points at what it refuses: %s', (text, shape, pointer) => {
    let errors: unknown;
    try {
      readJsonText(Buffer.from(text), shape);
    } catch (error) {
      errors = (error as { errors: unknown }).errors;
    }
    expect(errors).toMatchObject([{ pointer }]);
  });

  it.each(['0.1', '1e3', '-0', '3.141592653589793238462643', '0e999', '1152921504606846976'])(
    'takes numbers that stay what they are, or are fractions: %s',
    (number) => {
      expect(readJsonText(Buffer.from(`[${number}]`), ONE)).toEqual([Number(number)]);
    },
  );

  it('keeps the texts in a map to the letter, under the names of their objects', async () => {
    const payload = '{ "n": 12345678901234567890, "é":[1e999] }';
    const items = [
      `"b":{"task":"x"}`,
      `"1":{"payload": ${payload} ,"task":"x"}`,
      `"constructor":{"payload":1}`,
    ];
    const body = Buffer.from(`{"name":"w","jobs": {${items.join(' , ')}, "c": 7},"onFailure":"stop"}`);
    const expected = {
      name: 'w',
      jobs: {
        b: { task: 'x' },
        '1': { task: 'x', payload: new JsonText(payload, Buffer.byteLength(payload)) },
        constructor: { payload: new JsonText('1', 1) },
        c: 7,
      },
      onFailure: 'stop',
    };
    expect(readJsonText(body, MAP)).toEqual(expected);
    expect(await readLargeJsonText(body, MAP)).toEqual(expected);
  });

  it('keeps a field of the object beside those of items, wherever it stands', () => {
    const input = '{"payload": 1.50, "jobs": {"a": 2e999}}';
    const jobs = '"jobs": {"a": {"payload": 3.0}, "b": {"input": 4}}';
    for (const text of [`{"input": ${input}, ${jobs}}`, `{${jobs}, "in\\u0070ut" : ${input} }`]) {
      const read = readJsonText(Buffer.from(text), TOP) as Record<string, unknown>;
      expect(read.input).toEqual(new JsonText(input, input.length));
      expect(read.jobs).toEqual({ a: { payload: new JsonText('3.0', 3) }, b: { input: 4 } });
    }
    expect(() => readJsonText(Buffer.from('{"input": 1, "input": 2}'), TOP)).toThrow('is given twice');
  });

  it('reads a map of ten thousand in slices, each with its own payload', async () => {
    const names = Array.from({ length: 10_000 }, (_, i) => `step-${i}`);
    const items = names.map((name, i) => `"${name}":{"task":"t","payload":${i}}`);
    const read = (await readLargeJsonText(Buffer.from(`{"jobs":{${items.join(',')}}}`), MAP)) as {
      jobs: Record<string, { payload: JsonText }>;
    };
    expect(Object.keys(read.jobs)).toEqual(names);
    expect(names.every((name, i) => read.jobs[name]!.payload.text === String(i))).toBe(true);
  });

  it('keeps a text to the letter, with its numbers and blanks', () => {
    const payload = '{ "n": 12345678901234567890, "big":1e999, "s":"\\u00e9ü" }';
    const body = Buffer.from(`{"jobs":[{"task":"a","payload": ${payload} ,"queue":"ü"},{"payload":1e999}]}`);
    expect(readJsonText(body, BULK)).toEqual({
      jobs: [
        { task: 'a', queue: 'ü', payload: new JsonText(payload, Buffer.byteLength(payload)) },
        { payload: new JsonText('1e999', 5) },
      ],
    });
  });

  it('reads a very large text as any other, with characters of one byte or of more', async () => {
    const jobs = (filler: string) =>
      Array.from({ length: 2_000 }, (_, n) => ({ task: `t${n}`, labels: { n }, payload: filler.repeat(n) }));
    for (const filler of ['x', 'é']) {
      const text = JSON.stringify({ jobs: jobs(filler), note: filler });
      const bytes = Buffer.from(text);
      expect(bytes.length).toBeGreaterThan(1024 * 1024);
      expect(opened(readJsonText(bytes, BULK))).toEqual(JSON.parse(text));
      expect(opened(await readLargeJsonText(bytes, BULK))).toEqual(JSON.parse(text));
    }
  });

  it('refuses a list that is too long before it has scanned the rest', async () => {
    const shape = { ...BULK, mostItems: 10 };
    const long = Buffer.from(`{"jobs":[${'{},'.repeat(200_000)}`);
    await expect(readLargeJsonText(long, shape)).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
      errors: [{ pointer: '/jobs', detail: 'must have at most 10 entries' }],
    });
    const other = Buffer.from(`{"other":[${Array(15_000).fill('{}').join(',').padEnd(600_000)}]}`);
    expect(await readLargeJsonText(other, shape)).toMatchObject({ other: { length: 15_000 } });
  });

  it('counts values outside of texts before it builds any, at once and in all', () => {
    const many = (count: number) => `[${Array(count).fill('{}').join(',')}]`;
    const read = (text: string) =>
      outcomeOf(() => readJsonText(Buffer.from(text), BULK) instanceof Object && 'read');
    expect(read(`{"jobs":[{"payload":${many(MOST_VALUES)}}]}`)).toBe('"read"');
    expect(read(`{"jobs":${many(MOST_VALUES_AT_ONCE * 2)}}`)).toBe('"read"');
    expect(read(`{"jobs":${many(MOST_VALUES)}}`)).toBe('INVALID_REQUEST');
    expect(read(`{"jobs":[{"a":${many(MOST_VALUES_AT_ONCE)}}]}`)).toBe('INVALID_REQUEST');
    expect(read(`{"a":${many(MOST_VALUES_AT_ONCE)}}`)).toBe('INVALID_REQUEST');
  });
});

function raise(error: Error): never {
  throw error;
}
