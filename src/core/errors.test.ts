import { describe, expect, it } from 'vitest';
import { assertNever, ERROR_CODES, invalid, messageOf, PunctualError } from './errors.js';

describe('errors', () => {
  it('carry code, status, exit code, title and hint of one table', () => {
    const error = new PunctualError('JOB_NOT_FOUND', 'There is no job 7.', { cause: 'why', retryAfter: 2 });
    expect(error).toMatchObject({
      name: 'PunctualError',
      code: 'JOB_NOT_FOUND',
      status: 404,
      exitCode: 5,
      title: 'There is no such job',
      hint: expect.stringContaining('punctual job list'),
      message: 'There is no job 7.',
      cause: 'why',
      retryAfter: 2,
      errors: [],
    });
    expect(error).toBeInstanceOf(Error);
  });

  it.each(Object.entries(ERROR_CODES))('%s is a code that programs can rely on', (code, entry) => {
    expect(code).toMatch(/^[A-Z]+(_[A-Z]+)*$/);
    expect(entry.status).toBeGreaterThanOrEqual(400);
    expect(entry.status).toBeLessThan(600);
    expect([1, 2, 3, 4, 5, 6, 7, 124]).toContain(entry.exit);
    expect(entry.title).not.toBe('');
    expect(entry.hint).not.toBe('');
    // Programs get these errors, too; the CLI adds what only it has.
    expect(entry.hint ?? '').not.toContain('--help');
  });

  it('of an input say the first thing that is wrong and how many more there are', () => {
    const one = { pointer: '/queue', detail: 'must be text' };
    expect(invalid([one]).message).toBe('/queue: must be text');
    expect(invalid([one, one, one]).message).toBe('/queue: must be text (and 2 more)');
    expect(invalid([{ pointer: '', detail: 'must be an object' }]).message).toBe(
      'the body: must be an object',
    );
    expect(invalid([one])).toMatchObject({ code: 'INVALID_REQUEST', status: 422, errors: [one] });
  });

  it.each([
    [new Error('plain'), 'plain'],
    [new TypeError(), 'TypeError'],
    ['text', 'text'],
    [undefined, 'undefined'],
    [null, 'null'],
    [{ a: 1 }, '{"a":1}'],
    [42n, '[object BigInt]'],
    [Symbol('s'), 'Symbol(s)'],
  ])('tell what was thrown: %s', (thrown, message) => {
    expect(messageOf(thrown)).toBe(message);
  });

  it('reveal a case that nobody thought of', () => {
    expect(() => assertNever('odd' as never)).toThrow('"odd"');
  });
});
