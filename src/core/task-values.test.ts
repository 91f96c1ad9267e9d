import { describe, expect, it } from 'vitest';
import { PunctualError } from './errors.js';
import { TaskDefinition } from './schemas/task.js';
import { validate } from './schemas/validate.js';
import { type TaskOptions, task } from './task.js';

/** The pointers to what is wrong, by an error that was thrown; none if nothing was. */
function wrongOf(work: () => unknown): string[] {
  try {
    work();
    return [];
  } catch (error) {
    expect(error).toBeInstanceOf(PunctualError);
    return (error as PunctualError).errors.map(({ pointer }) => pointer);
  }
}

const defined = (options: unknown) => task('mail', options as TaskOptions, () => 1);

const VALUES = [
  ...['', 'mail', 'a b', '5 minutes', '5m', '1.5h', '-5s', '999999999999999d', 'at-most-once', 'sometimes'],
  ...[-1, 0, 0.5, 1, 1.5, 4, 9, 10, 100, 101, 1_000, 1_001, Number.NaN, Number.POSITIVE_INFINITY],
  ...[null, true, [], ['1s'], {}, { region: 'eu' }, { region: 7 }],
];

/** An option at the end of steps, inside of the objects that they lead through. */
const nested = (steps: readonly string[], value: unknown): unknown =>
  steps.reduceRight((inner, step) => ({ [step]: inner }), value);

describe('the values of options of a task', () => {
  it.each([
    ...['/queue', '/priority', '/timeout', '/delivery', '/requires', '/retry/maxAttempts'],
    ...['/retry/backoff/base', '/retry/backoff/factor', '/retry/backoff/max', '/retry/backoff/jitter'],
    '/retry/onWorkerLost/maxAttempts',
  ])('are refused when it is defined if nodes would refuse them: %s', (pointer) => {
    for (const value of VALUES) {
      const options = nested(pointer.split('/').slice(1), value);
      const isWrong = wrongOf(() => validate(TaskDefinition, options)).length > 0;
      expect([value, wrongOf(() => defined(options))]).toEqual([value, isWrong ? [pointer] : []]);
    }
  });

  it.each([
    [{ timeout: '5 minutes' }, '/timeout: task("mail") needs a duration such as 250ms'],
    [{ timeout: '0s' }, 'got "0s"'],
    [
      { retry: { maxAttempts: 0 } },
      '/retry/maxAttempts: task("mail") needs a whole number from 1 to 1000, got 0',
    ],
    [{ retry: 3 }, '/retry: task("mail") needs an object such as { maxAttempts: 6 }, got 3'],
    [{ priority: 10, timeout: 5 }, 'from 1 to 9, got 10 (and 1 more)'],
  ])('are told with what is right: %j', (options, text) => {
    expect(() => defined(options)).toThrow(text);
  });

  it('may be left open', () => {
    expect(() => defined({ timeout: undefined, retry: { backoff: undefined } })).not.toThrow();
  });
});
