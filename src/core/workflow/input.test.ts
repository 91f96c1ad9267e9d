import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { JsonText } from '../json-reader.js';
import { outlineInput, putInput } from './input.js';
import { findReferences } from './references.js';

const LIMITS = { maxBytes: 10_000, maxDepth: 16, maxTotalBytes: 20_000 };

function json(text: string): JsonText {
  return new JsonText(text, Buffer.byteLength(text));
}

/** The payloads of steps s0, s1 … with the input put in. */
async function put(payloads: readonly string[], input: string | null, limits = LIMITS): Promise<string[]> {
  const open = payloads.map((text, i) => {
    const payload = json(text);
    return { step: `s${i}`, payload, references: findReferences(payload).references };
  });
  const put = await putInput(open, await outlineInput(input === null ? null : json(input)), limits);
  for (const each of put) expect(each.bytes).toBe(Buffer.byteLength(each.text));
  return put.map(({ text }) => text);
}

const errorsOf = (putting: Promise<unknown>) =>
  putting.then(
    () => [],
    (error: { errors: { pointer: string; detail: string }[] }) => error.errors,
  );

describe('the input of a workflow', () => {
  it('is put in to the letter, and results of steps are left for later', async () => {
    const input = '{"n": 1.50, "list": [ {"é": "\\u0041"} ], "0": [7]}';
    expect(
      await put(
        [
          '{"a":{"$from":"input.n"},"b":[{"$from":"input.list.0"},{"$from":"s9.result.x"}],"c":{"$from":"input.0.0"}}',
          '{"$from":"input"}',
          '{"$from":"input","other":1}',
        ],
        input,
      ),
    ).toEqual([
      '{"a":1.50,"b":[{"é": "\\u0041"},{"$from":"s9.result.x"}],"c":7}',
      input,
      '{"$from":"input","other":1}',
    ]);
  });

  it('is what JSON says, whatever it and the payload are', () =>
    fc.assert(
      fc.asyncProperty(
        fc.jsonValue({ maxDepth: 3 }),
        fc.jsonValue({ maxDepth: 2 }),
        async (input, around) => {
          const text = JSON.stringify(input);
          fc.pre(!text.includes('$from') && !JSON.stringify(around).includes('$from'));
          const payload = { around, all: { $from: 'input' }, list: [{ $from: 'input' }] };
          const [made] = await put([JSON.stringify(payload)], text);
          expect(JSON.parse(made!)).toEqual(
            JSON.parse(JSON.stringify({ around, all: input, list: [input] })),
          );
        },
      ),
    ));

  it('is missing where it is, or where a path leads nowhere: with a pointer, and the step that needs it', async () => {
    const payload = '{"a":{"$from":"input.x.y/z.0"}}';
    expect(await errorsOf(put([payload], null))).toMatchObject([{ pointer: '/input' }]);
    expect(await errorsOf(put(['1', payload], '{"x": 1}'))).toEqual([
      {
        pointer: '/input/x/y~1z',
        detail: 'is missing: step "s1" needs "input.x.y/z.0", and "input.x" is a number without "y/z"',
      },
    ]);
  });

  it('must not hold references, which would be resolved with the results of steps', async () => {
    for (const input of ['{"$from":"a.result"}', '[{"a":{"$from":1}}]', '{"\\u0024from":"input"}']) {
      expect(await errorsOf(put(['{"$from":"input"}'], input))).toMatchObject([{ pointer: '/input' }]);
    }
    expect(await put(['{"$from":"input"}'], '{"$from":1,"b":2}')).toEqual(['{"$from":1,"b":2}']);
  });

  it('keeps to the limits of one payload and of all, before anything is built', async () => {
    const large = JSON.stringify('x'.repeat(6_000));
    const twice = '[{"$from":"input"},{"$from":"input"}]';
    expect(await errorsOf(put([twice], large))).toMatchObject([
      { detail: expect.stringContaining('larger than 10000 bytes') },
    ]);
    const one = '{"$from":"input"}';
    expect(await put([one, one, one], large)).toHaveLength(3);
    await expect(put([one, one, one, one], large)).rejects.toMatchObject({ code: 'PAYLOAD_TOO_LARGE' });
    const deep = `${'['.repeat(15)}${']'.repeat(15)}`;
    expect(await put(['[{"$from":"input"}]'], deep)).toHaveLength(1);
    expect(await errorsOf(put(['[[{"$from":"input"}]]'], deep))).toMatchObject([
      { detail: expect.stringContaining('deeper than 16 levels') },
    ]);
  });
});
