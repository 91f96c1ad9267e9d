import { Readable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { cliUnderTest } from '../../test/cli-under-test.js';
import { parseJobLines, submissionOf } from './job-submit.js';
import { readPayload } from './json-input.js';

describe('submissionOf', () => {
  it('sends only what was given', () => {
    expect(submissionOf({ task: 'greet' }, undefined)).toEqual({ task: 'greet' });
    expect(
      submissionOf(
        { task: 'greet', priority: 9, maxAttempts: 2, requires: { region: 'eu' }, hold: true },
        null,
      ),
    ).toEqual({
      task: 'greet',
      payload: null,
      priority: 9,
      retry: { maxAttempts: 2 },
      requires: { region: 'eu' },
      hold: true,
    });
  });

  it('wants a task, and one due time at most', () => {
    expect(() => submissionOf({}, undefined)).toThrow('--task');
    expect(() => submissionOf({ task: 'a', delay: '1s', runAt: '2026-12-24T18:00:00Z' }, undefined)).toThrow(
      'not both',
    );
  });
});

describe('readPayload', () => {
  it('reads JSON, and stdin for -', async () => {
    const { cli } = cliUnderTest({ stdin: Readable.from(['{"a"', ':1}']) });
    expect(await readPayload(cli, '[1]')).toEqual([1]);
    expect(await readPayload(cli, '-')).toEqual({ a: 1 });
    expect(await readPayload(cli, undefined)).toBeUndefined();
  });

  it('says what is wrong with it', async () => {
    const { cli } = cliUnderTest();
    await expect(readPayload(cli, '{name: Ada}')).rejects.toMatchObject({
      code: 'MALFORMED_JSON',
      message: expect.stringMatching(/at byte 1\. Quote it for the shell: --payload/),
    });
    await expect(readPayload(cli, '{bad', '--input')).rejects.toThrow(
      /^The input \(--input\) is not valid JSON: .* Quote it for the shell: --input '/,
    );
    await expect(readPayload(cli, '@missing.json')).rejects.toMatchObject({ code: 'USAGE' });
  });
});

describe('parseJobLines', () => {
  it('names the line that is broken', () => {
    expect(parseJobLines('{"task":"a"}\n\n{"task":"b"}\r\n')).toEqual([{ task: 'a' }, { task: 'b' }]);
    expect(() => parseJobLines('{"task":"a"}\n{"task":\n')).toThrow('Line 2');
    expect(() => parseJobLines('{"task":"a"}\nbroken')).toThrow(/^Line 2 is .* at byte 0\.$/);
    expect(() => parseJobLines('\n')).toThrow('no jobs');
  });
});
