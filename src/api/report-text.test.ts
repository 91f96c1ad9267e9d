import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { cutError, cutProgress, resultText } from './report-text.js';

const limits = { maxPayload: 100, maxDepth: 4 };

describe('a result', () => {
  it('is kept as JSON', () => {
    expect(resultText({ a: [1, 'ü', null] }, limits)).toEqual({ json: '{"a":[1,"ü",null]}' });
    expect(resultText(undefined, limits)).toEqual({ json: 'null' });
    expect(resultText('\u0000\ud800', limits)).toEqual({ json: '"\\u0000\\ud800"' });
  });

  it('that is too large or too deep becomes a failure that says so', () => {
    expect(resultText('x'.repeat(99), limits)).toEqual({
      error: { code: 'RESULT_TOO_LARGE', message: 'The result must be at most 100 bytes as JSON.' },
    });
    expect(resultText([[[[[1]]]]], limits)).toEqual({
      error: {
        code: 'RESULT_NOT_JSON',
        message: 'The result must not be nested deeper than 4 levels.',
      },
    });
    expect(resultText(5n, limits)).toMatchObject({ error: { code: 'RESULT_NOT_JSON' } });
  });
});

describe('an error', () => {
  it('that fits is kept as it is', () => {
    const error = { message: 'no', code: 'E_NO', stack: 'Error: no\n    at x' };
    expect(cutError(error, 1_000)).toEqual(error);
    expect(cutError({ message: 'no' }, 1_000)).toEqual({ message: 'no' });
  });

  it('that is too long keeps its message first, then what fits of the stack', () => {
    const cut = cutError({ message: 'm'.repeat(100), stack: 's'.repeat(10_000) }, 1_000);
    expect(cut.message).toBe('m'.repeat(100));
    expect(cut.stack).toMatch(/^s{890,}…$/);
    expect(cutError({ message: 'm'.repeat(10_000) }, 1_000).message).toMatch(/^m{490,}…$/);
  });

  it('is cut within the limit and between characters', () => {
    const text = fc.string({
      unit: fc.constantFrom('a', 'ü', '€', '🎉', '\n'),
      maxLength: 2_000,
      size: 'max',
    });
    fc.assert(
      fc.property(text, text, fc.integer({ min: 1_000, max: 4_000 }), (message, stack, maxBytes) => {
        const cut = cutError({ message, stack }, maxBytes);
        expect(Buffer.byteLength(cut.message + cut.stack)).toBeLessThanOrEqual(maxBytes);
        expect(message.startsWith(cut.message.replace(/…$/, ''))).toBe(true);
        expect(stack.startsWith(cut.stack!.replace(/…$/, ''))).toBe(true);
      }),
    );
  });
});

describe('progress', () => {
  it('with a short message, or none, is kept as it is', () => {
    for (const progress of [{ progress: 0.5 }, { progress: 1, message: 'ü'.repeat(512) }]) {
      expect(cutProgress(progress)).toEqual(progress);
    }
  });

  it('with a long message is cut, not refused', () => {
    const { message, progress } = cutProgress({ progress: 0.5, message: '€'.repeat(100_000) });
    expect(progress).toBe(0.5);
    expect(Buffer.byteLength(message)).toBeLessThanOrEqual(1_024);
    expect(message).toMatch(/^€+…$/);
  });
});
