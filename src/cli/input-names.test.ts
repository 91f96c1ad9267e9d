import { describe, expect, it } from 'vitest';
import { cliUnderTest } from '../../test/cli-under-test.js';
import { invalid, PunctualError } from '../core/errors.js';
import { inputOf, nameInputs } from './input-names.js';
import { buildProgram } from './program.js';

const program = buildProgram(cliUnderTest().cli);

function command(noun: string, verb: string) {
  return program.commands
    .find((each) => each.name() === noun)!
    .commands.find((each) => each.name() === verb)!;
}

describe('inputOf', () => {
  it.each([
    ['job', 'submit', '/task', '--task'],
    ['job', 'submit', '/runAt', '--run-at'],
    ['job', 'submit', '/retry/maxAttempts', '--max-attempts'],
    ['job', 'submit', '/payload/timeout', '--payload (/timeout)'],
    ['job', 'submit', '/requires/region', '--requires (/region)'],
    ['job', 'submit', '/retry/backoff/base', null],
    ['job', 'submit', '', null],
    ['job', 'get', '/id', '<id>'],
    ['job', 'cancel', '/filter/state', '--state'],
    ['job', 'delete', '/filter/errorCode', '--error-code'],
    ['job', 'retry', '/all', '--all'],
    ['queue', 'limit', '/name', '<name>'],
    ['queue', 'limit', '/keyConcurrency', '--per-key'],
    ['queue', 'limit', '/rate/limit', '--rate (/limit)'],
    ['task', 'define', '/target/name', '--handler'],
    ['task', 'define', '/concurrencyKey/path', '--concurrency-key-path'],
    ['task', 'define', '/payloadSchema/properties/a', '--payload-schema (/properties/a)'],
    ['schedule', 'create', '/dst/gap', '--dst-gap'],
    ['job', 'submit', '/target/body/a', '--data (/a)'],
    ['job', 'submit', '/target/url', '--http'],
    ['job', 'submit', '/target/env/LD_PRELOAD', '--env (/LD_PRELOAD)'],
    ['schedule', 'create', '/target/limits/cpuTime', '--limit (/cpuTime)'],
    ['schedule', 'change', '/target/artifact', '--exec'],
    ['schedule', 'create', '/catchUp/within', '--catch-up (/within)'],
  ])('punctual %s %s: the field %j is %j', (noun, verb, pointer, input) => {
    expect(inputOf(command(noun, verb), pointer)).toBe(input);
  });
});

describe('nameInputs', () => {
  const submit = command('job', 'submit');
  const named = (thrown: unknown) => nameInputs(thrown, (pointer) => inputOf(submit, pointer));

  it('names every input and keeps the pointers for programs', () => {
    const error = invalid([
      { pointer: '/task', detail: 'is required' },
      { pointer: '/other', detail: 'is unknown' },
    ]);
    expect(named(error)).toMatchObject({
      code: 'INVALID_REQUEST',
      message: '--task: is required (and 1 more)',
      errors: [{ pointer: '/task', input: '--task' }, { pointer: '/other' }],
    });
  });

  it('keeps the quota that was exceeded, and the advice about it', () => {
    const error = new PunctualError('PAYLOAD_TOO_LARGE', '/payload: too large', {
      errors: [{ pointer: '/payload', detail: 'too large' }],
      quota: { name: 'payloadBytes', limit: 100 },
    });
    expect(named(error)).toMatchObject({
      message: '--payload: too large',
      quota: { name: 'payloadBytes', limit: 100 },
      hint: expect.stringContaining('--quota payloadBytes=N'),
    });
  });

  it('leaves everything else as it is', () => {
    for (const thrown of [new Error('x'), new PunctualError('NO_LEADER', 'wait'), undefined]) {
      expect(named(thrown)).toBe(thrown);
    }
  });
});
