import { Readable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { cliUnderTest } from '../../test/cli-under-test.js';
import { parseJobLines } from './job-submit.js';
import { readDataOption, readJsonInput, readPayload } from './json-input.js';

const stdinOf = (text: string) => cliUnderTest({ stdin: Readable.from([text]) }).cli;

/** JSON that JavaScript would change without a word, and what is said about it. */
const LOSSY: readonly (readonly [text: string, pointer: string, detail: string])[] = [
  ['{"jobs":{"a":{"task":"one"},"a":{"task":"two"}}}', '/jobs/a', 'is given twice'],
  ['{"x":[{"y":{"k":1},"\\u0079":2}]}', '/x/0/y', 'is given twice'],
  ['{"n":12345678901234567890}', '/n', 'is a number that would be stored as another one; send it as text'],
];

describe('what the shell would lose on the way', () => {
  it.each(LOSSY)('is refused wherever JSON is read: %s', async (text, pointer, detail) => {
    const refused = (field: string) => ({
      code: 'INVALID_REQUEST',
      errors: [{ pointer: field + pointer, detail }],
    });
    await expect(readJsonInput(stdinOf(text), '-')).rejects.toMatchObject(refused(''));
    await expect(readPayload(stdinOf(''), text)).rejects.toMatchObject(refused('/payload'));
    await expect(readPayload(stdinOf(text), '-', '--input')).rejects.toMatchObject(refused('/input'));
    await expect(readDataOption(stdinOf(''), text)).rejects.toMatchObject(refused('/target/body'));
    const message = `line 2 of the file (${pointer}): ${detail}`;
    expect(() => parseJobLines(`{}\n${text}`)).toThrow(message);
  });

  it('is nothing that only looks like it', async () => {
    const text = '{"a":{"k":1},"b":{"k":1},"c":[{"k":1},{"k":1,"a":"k"}]}';
    expect(await readJsonInput(stdinOf(text), '-')).toEqual(JSON.parse(text));
    expect(await readDataOption(stdinOf(''), 'a=1&a=2')).toEqual({ value: 'a=1&a=2', isText: true });
  });
});
