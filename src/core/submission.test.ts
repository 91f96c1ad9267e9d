import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Duration } from './duration.js';
import { PunctualError } from './errors.js';
import { type JobSubmission, NAME_RULE } from './job.js';
import { rulesOfStored } from './parse-task.js';
import { DEFAULT_BACKOFF, DEFAULT_RETRY } from './retry.js';
import {
  parseSubmission,
  parseSubmissions,
  REFUSED_COMMAND,
  readJson,
  type SubmissionContext,
} from './submission.js';

const NOW = Date.UTC(2026, 0, 1);
const context: SubmissionContext = {
  now: NOW,
  maxPayload: 1_000,
  jobTimeout: 1_200_000,
  maxJobTimeout: 3_600_000,
  allowCommands: true,
  maxDepth: 8,
};

function refusal(input: unknown, pointer?: string): PunctualError {
  try {
    parseSubmission(input, context, pointer);
  } catch (error) {
    if (error instanceof PunctualError) return error;
    throw error;
  }
  return expect.unreachable('the submission was accepted');
}

/** Pointers of everything that is wrong with a submission, beginning from one that is good. */
function wrongAt(change: Record<string, unknown>): string[] {
  const error = refusal({ task: 'mail', ...change });
  expect(error.code).toBe('INVALID_REQUEST');
  return [...new Set(error.errors.map((each) => each.pointer))];
}

const parse = (change: Record<string, unknown>) => parseSubmission({ task: 'mail', ...change }, context);

describe('a submission', () => {
  it('needs a task alone; everything else has a default', () => {
    const { definition, payload } = parseSubmission({ task: 'mail' }, context);
    expect(payload).toBe('null');
    expect(definition).toEqual({
      at: NOW,
      queue: 'default',
      task: 'mail',
      target: null,
      needs: { target: 'handler', handler: 'mail', labels: {} },
      priority: 5,
      runAt: NOW,
      key: null,
      keyRule: { mode: 'keep', windowMs: 0 },
      retry: DEFAULT_RETRY,
      backoffIsDefault: true,
      timeoutMs: 1_200_000,
      delivery: 'at-least-once',
      concurrencyKey: null,
      startBefore: null,
      hold: false,
    });
  });

  it('keeps everything that was given', () => {
    const parsed = parse({
      queue: 'q:1',
      payload: { to: ['a', 1, null, true, '\u0000', '\ud800'] },
      runAt: '2026-01-02T00:00:00+01:00',
      priority: 9,
      key: 'order-42 ü',
      keyMode: 'throttle',
      keyWindow: '5m',
      retry: {
        maxAttempts: 2,
        backoff: { base: '1s', factor: 3, max: '1m', jitter: 0 },
        onWorkerLost: { maxAttempts: 7 },
      },
      timeout: '1h',
      concurrencyKey: 'customer-7',
      requires: { region: 'eu' },
      startBefore: '2026-01-03T00:00:00Z',
      hold: true,
    });
    expect(parsed.payload).toBe('{"to":["a",1,null,true,"\\u0000","\\ud800"]}');
    expect(parsed.definition).toEqual({
      at: NOW,
      queue: 'q:1',
      task: 'mail',
      target: null,
      needs: { target: 'handler', handler: 'mail', labels: { region: 'eu' } },
      priority: 9,
      runAt: Date.UTC(2026, 0, 1, 23),
      key: 'order-42 ü',
      keyRule: { mode: 'throttle', windowMs: 300_000 },
      retry: {
        maxAttempts: 2,
        backoff: { baseMs: 1_000, factor: 3, maxMs: 60_000, jitter: 0 },
        onWorkerLost: { maxAttempts: 7 },
      },
      backoffIsDefault: false,
      timeoutMs: 3_600_000,
      delivery: 'at-least-once',
      concurrencyKey: 'customer-7',
      startBefore: Date.UTC(2026, 0, 3),
      hold: true,
    });
  });

  it.each([
    [{ task: 'a b' }, '/task'],
    [{ task: '' }, '/task'],
    [{ task: null }, '/task'],
    [{ queue: 'a/b' }, '/queue'],
    [{ queue: 5 }, '/queue'],
    [{ priority: 0 }, '/priority'],
    [{ priority: 10 }, '/priority'],
    [{ priority: '5' }, '/priority'],
    [{ runAt: 'soon' }, '/runAt'],
    [{ runAt: NOW }, '/runAt'],
    [{ delay: '5' }, '/delay'],
    [{ delay: -5 }, '/delay'],
    [{ delay: '5s', runAt: '2026-01-02T00:00:00Z' }, '/delay'],
    [{ key: '' }, '/key'],
    [{ key: 'a\0b' }, '/key'],
    [{ key: 'x'.repeat(513) }, '/key'],
    [{ key: '\ud83d' }, '/key'],
    [{ keyMode: 'replace' }, '/keyMode'],
    [{ keyMode: 'keep' }, '/keyMode'],
    [{ key: 'k', keyMode: 'forget' }, '/keyMode'],
    [{ key: 'k', keyMode: 'forget', keyWindow: '5m' }, '/keyMode'],
    [{ key: 'k', keyWindow: '5m' }, '/keyWindow'],
    [{ key: 'k', keyMode: 'replace', keyWindow: '5m' }, '/keyWindow'],
    [{ key: 'k', keyMode: 'debounce' }, '/keyWindow'],
    [{ key: 'k', keyMode: 'throttle' }, '/keyWindow'],
    [{ key: 'k', keyMode: 'throttle', keyWindow: '0s' }, '/keyWindow'],
    [{ key: 'k', keyMode: 'throttle', keyWindow: 'long' }, '/keyWindow'],
    [{ key: 'k', keyMode: 'debounce', keyWindow: '5m', delay: '1s' }, '/delay'],
    [{ key: 'k', keyMode: 'debounce', keyWindow: '5m', runAt: '2026-01-02T00:00:00Z' }, '/runAt'],
    [{ key: 'k', keyMode: 'debounce', keyWindow: '5m', startBefore: '2026-01-01T00:05:00Z' }, '/startBefore'],
    [{ concurrencyKey: 5 }, '/concurrencyKey'],
    [{ timeout: '0s' }, '/timeout'],
    [{ timeout: '61m' }, '/timeout'],
    [{ timeout: 'long' }, '/timeout'],
    [{ delivery: 'exactly-once' }, '/delivery'],
    [{ hold: 'yes' }, '/hold'],
    [{ startBefore: '2025-12-31T23:59:59Z' }, '/startBefore'],
    [{ startBefore: '2026-01-01T00:00:00Z' }, '/startBefore'],
    [{ startBefore: '2026-01-01T00:00:05Z', delay: '5s' }, '/startBefore'],
    [{ requires: { region: 5 } }, '/requires/region'],
    [{ requires: ['eu'] }, '/requires'],
    [{ requires: Object.fromEntries(Array.from({ length: 33 }, (_, i) => [`l${i}`, 'x'])) }, '/requires'],
    [{ retry: 3 }, '/retry'],
    [{ retry: { attempts: 3 } }, '/retry/attempts'],
    [{ retry: { maxAttempts: 0 } }, '/retry/maxAttempts'],
    [{ retry: { maxAttempts: 1_001 } }, '/retry/maxAttempts'],
    [{ retry: { backoff: { base: 2 } } }, '/retry/backoff/base'],
    [{ retry: { backoff: { factor: 0.5 } } }, '/retry/backoff/factor'],
    [{ retry: { backoff: { max: 'never' } } }, '/retry/backoff/max'],
    [{ retry: { backoff: { jitter: 1.1 } } }, '/retry/backoff/jitter'],
    [{ retry: { onWorkerLost: { maxAttempts: 0 } } }, '/retry/onWorkerLost/maxAttempts'],
    [{ retry: { onWorkerLost: 5 } }, '/retry/onWorkerLost'],
    [{ delivery: 'at-most-once', retry: { maxAttempts: 2 } }, '/retry/maxAttempts'],
    [
      { delivery: 'at-most-once', retry: { onWorkerLost: { maxAttempts: 2 } } },
      '/retry/onWorkerLost/maxAttempts',
    ],
    [{ target: { type: 'handler', name: 'mail' } }, '/task'],
    [{ Task: 'mail' }, '/Task'],
    [{ 'a/b~c': 1 }, '/a~1b~0c'],
  ])('is refused for %j, at %s', (change, pointer) => {
    expect(wrongAt(change)).toEqual([pointer]);
  });

  it('that is debounced is due when its window has passed', () => {
    expect(parse({ key: 'k', keyMode: 'debounce', keyWindow: '5m' }).definition.runAt).toBe(NOW + 300_000);
    expect(parse({ key: 'k', keyMode: 'throttle', keyWindow: '5m' }).definition.runAt).toBe(NOW);
  });

  it('is told everything that is wrong with it at once, below the pointer of its place', () => {
    const error = refusal({ queue: '', priority: 99, retry: { maxAttempts: -1 }, odd: 1 }, '/jobs/7');
    expect(new Set(error.errors.map((each) => each.pointer))).toEqual(
      new Set([
        '/jobs/7/odd',
        '/jobs/7/task',
        '/jobs/7/queue',
        '/jobs/7/priority',
        '/jobs/7/retry/maxAttempts',
      ]),
    );
  });

  it.each([[null], [[]], ['mail'], [5], [undefined]])('is an object, not %j', (input) => {
    expect(refusal(input, '/jobs/0').errors).toEqual([{ pointer: '/jobs/0', detail: 'must be an object' }]);
  });

  it('is due now when it names no time or one that has passed', () => {
    expect(parse({}).definition.runAt).toBe(NOW);
    expect(parse({ runAt: '2020-01-01T00:00:00Z' }).definition.runAt).toBe(NOW);
    expect(parse({ delay: '0s' }).definition.runAt).toBe(NOW);
    expect(parse({ delay: '250ms' }).definition.runAt).toBe(NOW + 250);
  });

  it('that is delivered at most once has one attempt and one loss', () => {
    const once = { maxAttempts: 1, backoff: DEFAULT_BACKOFF, onWorkerLost: { maxAttempts: 1 } };
    expect(parse({ delivery: 'at-most-once' }).definition.retry).toEqual(once);
    expect(parse({ delivery: 'at-most-once', retry: {} }).definition.retry).toEqual(once);
    expect(parse({ delivery: 'at-most-once', retry: { maxAttempts: 1 } }).definition.retry).toEqual(once);
  });

  it('without a timeout has the default, within what the operator allows', () => {
    const strict = { ...context, jobTimeout: 5_000, maxJobTimeout: 5_000 };
    expect(parseSubmission({ task: 'mail' }, strict).definition.timeoutMs).toBe(5_000);
    expect(() => parseSubmission({ task: 'mail', timeout: '5001ms' }, strict)).toThrow('at most 5s');
  });
});

const PASSAGE =
  'must be text of 0 to 32768 characters without control characters other than tabs and line ends';
const MANY_SECRETS = Object.fromEntries(
  Array.from({ length: 17 }, (_, i) => [`V${i}`, { $secret: `s${i}` }]),
);

describe('a target', () => {
  const target = (value: unknown) => parseSubmission({ target: value }, context).definition;
  const wrong = (value: unknown) =>
    refusal({ target: value }).errors.map((each) => `${each.pointer} ${each.detail}`);

  it('may be a handler', () => {
    expect(target({ type: 'handler', name: 'mail' })).toMatchObject({
      task: null,
      target: { type: 'handler', name: 'mail' },
      needs: { target: 'handler', handler: 'mail' },
    });
  });

  it.each([
    { type: 'exec', command: 'ls', env: {} },
    {
      type: 'exec',
      artifact: 'tool@1',
      args: ['-v', '', 'two\nlines'],
      env: { A: '1', KEY: { $secret: 'key', prefix: 'x ' } },
      limits: { cpuTime: '90s', cpus: 0.5, memory: 1 << 26, files: 64, processes: 8, output: 0, disk: 1e9 },
      isolation: 'required',
    },
  ])('may be a program: %j', (value) => {
    expect(target(value)).toMatchObject({
      task: null,
      target: value,
      needs: { target: 'exec', handler: '' },
    });
  });

  it('may be a command only where the operator allows it, and tasks may not have one either', async () => {
    const closed = { ...context, allowCommands: false };
    const value = { type: 'exec', command: 'ls' };
    const refused = { code: 'TARGET_UNAVAILABLE', status: 422 };
    await expect(parseSubmissions([{ task: 'a' }, { target: value }], closed)).rejects.toMatchObject({
      ...refused,
      errors: [{ pointer: '/jobs/1/target/command', detail: REFUSED_COMMAND }],
    });
    const tasks = new Map([['list', rulesOfStored('list', JSON.stringify({ target: value }))]]);
    await expect(parseSubmissions([{ task: 'list' }], { ...closed, tasks })).rejects.toMatchObject(refused);
    await parseSubmissions([{ target: { type: 'exec', artifact: 'ls' } }], closed);
  });

  it('may be a call', () => {
    const call = {
      type: 'http',
      url: 'https://example.com/x?y',
      method: 'PUT',
      headers: { a: 'b', authorization: { $secret: 'key', prefix: 'Bearer ' } },
      body: { deep: [{ $secret: 'other' }], plain: null },
      expect: [200, 409],
      completion: 'response',
      timeout: '5s',
      redirects: 2,
      retryStatuses: [503],
    };
    expect(target(call)).toMatchObject({ task: null, target: call, needs: { target: 'http' } });
  });

  it.each([
    'Host',
    'punctual-token',
    'Punctual-Anything',
    'webhook-signature',
    'traceparent',
    'tracestate',
    'connection',
    'keep-alive',
    'Transfer-Encoding',
    'te',
    'trailer',
    'upgrade',
    'content-length',
    'expect',
    'proxy-authorization',
    'accept-encoding',
  ])('that calls may not set the header %s', (name) => {
    const call = { type: 'http', url: 'http://a', headers: { ok: '1', [name]: 'x' } };
    expect(wrong(call)).toEqual([`/target/headers/${name} is a header that the call itself sets`]);
  });

  it.each([
    [{ url: 'http://user@a' }, '/target/url'],
    [{ url: 'http://:pass@a' }, '/target/url'],
    [{ method: 'GET', body: null }, '/target/body'],
    [{ method: 'HEAD', body: {} }, '/target/body'],
    [{ timeout: '0s' }, '/target/timeout'],
    [{ headers: { a: '🎉' } }, '/target/headers/a'],
    [{ headers: { a: { $secret: 5 } } }, '/target/headers/a/$secret'],
    [{ body: { $secret: 5 } }, '/target/body/$secret'],
    [{ body: [{ x: { $secret: 'a b' } }] }, '/target/body/0/x/$secret'],
    [{ body: { $secret: 'a', prefix: 'x\n' } }, '/target/body/prefix'],
    [{ body: { $secret: 'a', other: 1 } }, '/target/body'],
    [{ body: Array.from({ length: 17 }, (_, i) => ({ $secret: `s${i}` })) }, '/target'],
  ])('that calls is refused for what the schema cannot say: %j', (fields, pointer) => {
    const errors = refusal({ target: { type: 'http', url: 'http://a', ...fields } }).errors;
    expect(errors.map((each) => each.pointer)).toEqual([pointer]);
  });

  it.each([
    [{ type: 'handler' }, ['/target/name is required']],
    [{ name: 'mail' }, ['/target/type is required']],
    [{ type: 'http' }, ['/target/url is required']],
    [{ type: 'http', url: 'ftp://example.com' }, ['/target/url must be an http or https URL']],
    [{ type: 'http', url: 'nowhere' }, ['/target/url must be an http or https URL']],
    [
      { type: 'http', url: 'http://a', headers: { 'a b': '' } },
      ['/target/headers/a b the name must be the name of a header'],
    ],
    [{ type: 'exec' }, ['/target/artifact give either "artifact" or "command"']],
    [{ type: 'exec', artifact: 'a', command: 'b' }, ['/target/artifact give either "artifact" or "command"']],
    [{ type: 'exec', command: 'ls', args: 'x' }, ['/target/args must be an array']],
    [{ type: 'exec', command: 'ls', args: ['a\0'] }, [`/target/args/0 ${PASSAGE}`]],
    [{ type: 'exec', command: 'ls', args: [5] }, [`/target/args/0 ${PASSAGE}`]],
    [
      { type: 'exec', command: 'ls', env: { '1A': '' } },
      ['/target/env/1A the name must be the name of a variable'],
    ],
    [
      { type: 'exec', command: 'ls', env: { LD_PRELOAD: '' } },
      ['/target/env/LD_PRELOAD is a variable that a target may not set'],
    ],
    [{ type: 'exec', command: 'ls', env: { A: { $secret: 5 } } }, [`/target/env/A/$secret ${NAME_RULE}`]],
    [
      { type: 'exec', command: 'ls', limits: { memory: 5 } },
      ['/target/limits/memory must be a whole number from 1048576 to 1125899906842624'],
    ],
    [{ type: 'exec', command: 'ls', limits: { ram: 5 } }, ['/target/limits/ram is not a known field']],
    [
      { type: 'exec', command: 'ls', isolation: 'full' },
      ['/target/isolation must be one of "none", "auto", "required"'],
    ],
    [
      { type: 'exec', command: 'ls', env: MANY_SECRETS },
      ['/target/env must name at most 16 different secrets'],
    ],
    [{ type: 'handler', name: 'mail', url: 'x' }, ['/target/url is not a known field']],
  ])('%j is refused: %j', (value, errors) => {
    expect(wrong(value)).toEqual(errors);
  });

  it('that has the wrong kind of value in a field is told so once', () => {
    expect(wrong({ type: 'ftp', name: 'mail' })).toEqual([
      '/target/type must be one of "handler", "http", "exec"',
    ]);
    expect(wrong({ type: 'handler', name: 'a b' })).toHaveLength(1);
    expect(wrong({ type: 'http', url: 5 })).toEqual(['/target/url must be an http or https URL']);
    expect(wrong({ type: 'http', url: 'http://x', method: 'get' })).toHaveLength(1);
    expect(wrong({ type: 'http', url: 'http://x', headers: { a: 5 } })).toHaveLength(1);
    expect(wrong({ type: 'exec', command: 'ls', env: { A: 'a\0' } })).toHaveLength(1);
  });

  it.each([[null], ['handler'], [[]]])('is an object, not %j', (value) => {
    expect(wrong(value)).toContain('/target must be an object');
  });
});

describe('the limits of a payload', () => {
  const nested = (levels: number): unknown => (levels === 0 ? 1 : [nested(levels - 1)]);

  it('are bytes of JSON, up to and including the last one', () => {
    expect(parse({ payload: 'x'.repeat(998) }).payload).toHaveLength(1_000);
    const error = refusal({ task: 'mail', payload: 'x'.repeat(999) }, '/jobs/4');
    expect(error.code).toBe('PAYLOAD_TOO_LARGE');
    expect(error.errors.map((each) => each.pointer)).toEqual(['/jobs/4/payload']);
    expect(refusal({ task: 'mail', payload: 'ü'.repeat(500) }).code).toBe('PAYLOAD_TOO_LARGE');
  });

  it('hold for targets as well', () => {
    const error = refusal({ target: { type: 'http', url: 'http://x', body: 'x'.repeat(1_000) } });
    expect(error.code).toBe('PAYLOAD_TOO_LARGE');
    expect(error.errors.map((each) => each.pointer)).toEqual(['/target']);
  });

  it('are levels of nesting', () => {
    expect(parse({ payload: nested(8) }).payload).toBe('[[[[[[[[1]]]]]]]]');
    expect(wrongAt({ payload: nested(9) })).toEqual(['/payload']);
    expect(wrongAt({ payload: nested(5_000) })).toEqual(['/payload']);
  });

  it('exclude what JSON cannot hold', () => {
    const circle: unknown[] = [];
    circle.push(circle);
    expect(wrongAt({ payload: circle })).toEqual(['/payload']);
    expect(wrongAt({ payload: 5n })).toEqual(['/payload']);
    expect(wrongAt({ payload: () => undefined })).toEqual(['/payload']);
  });
});

describe('JSON text', () => {
  it('is null for nothing, and says nothing is wrong', () => {
    const wrong = () => expect.unreachable();
    expect(readJson(undefined, context, wrong)).toBe('null');
    expect(readJson(null, context, wrong)).toBe('null');
    expect(readJson(Number.NaN, context, wrong)).toBe('null');
  });
});

describe('many submissions', () => {
  it('are read in order', async () => {
    const parsed = await parseSubmissions([{ task: 'a' }, { task: 'b' }], context);
    expect(parsed.map((each) => each.definition.task)).toEqual(['a', 'b']);
    expect(await parseSubmissions([], context)).toEqual([]);
  });

  it('are refused together, each wrong one with its number', async () => {
    const attempt = parseSubmissions([{ task: 'a' }, { task: '' }, 5, { task: 'd', hold: 1 }], context);
    await expect(attempt).rejects.toMatchObject({
      errors: [{ pointer: '/jobs/1/task' }, { pointer: '/jobs/2' }, { pointer: '/jobs/3/hold' }],
    });
  });

  it('that differ in their payloads only are checked as each alone would be', async () => {
    const deep = JSON.parse('['.repeat(200) + ']'.repeat(200));
    const jobs = [{ task: 'a', payload: 1 }, { task: 'a', payload: deep }, { task: 'a' }];
    await expect(parseSubmissions(jobs, context)).rejects.toMatchObject({
      errors: [{ pointer: '/jobs/1/payload' }],
    });
    const large = { task: 'a', payload: 'x'.repeat(context.maxPayload) };
    await expect(parseSubmissions([{ task: 'a', payload: 1 }, large], context)).rejects.toMatchObject({
      code: 'PAYLOAD_TOO_LARGE',
      errors: [{ pointer: '/jobs/1/payload' }],
    });
  });

  it('stop complaining after twenty errors, and say that there are more', async () => {
    await expect(parseSubmissions(new Array(10_000).fill({ task: '' }), context)).rejects.toMatchObject({
      errors: { length: 21, 20: { detail: expect.stringContaining('more mistakes') } },
    });
  });
});

const name = fc.stringMatching(/^[A-Za-z0-9._:-]{1,20}$/);
const line = fc.stringMatching(/^[ -~ä-ü]{1,40}$/);
const duration = fc
  .tuple(fc.nat(1_000), fc.constantFrom('ms', 's'))
  .map(([n, unit]): Duration => `${n}${unit}`);

const goodSubmission: fc.Arbitrary<JobSubmission> = fc.record(
  {
    task: name,
    payload: fc.jsonValue({ maxDepth: 3 }) as fc.Arbitrary<unknown>,
    delay: duration,
    queue: name,
    priority: fc.integer({ min: 1, max: 9 }),
    key: line,
    retry: fc.record(
      {
        maxAttempts: fc.integer({ min: 1, max: 1_000 }),
        backoff: fc.record(
          {
            base: duration,
            factor: fc.integer({ min: 1, max: 100 }),
            max: duration,
            jitter: fc.double({ min: 0, max: 1, noNaN: true }),
          },
          { requiredKeys: [] },
        ),
        onWorkerLost: fc.record({ maxAttempts: fc.integer({ min: 1, max: 1_000 }) }, { requiredKeys: [] }),
      },
      { requiredKeys: [] },
    ),
    timeout: fc.integer({ min: 1, max: 3_600 }).map((n): Duration => `${n}s`),
    concurrencyKey: line,
    requires: fc.dictionary(name, line, { maxKeys: 4 }),
    hold: fc.boolean(),
  },
  { requiredKeys: ['task'] },
);

describe('any input', () => {
  it('that is valid keeps its values', () => {
    const roomy = { ...context, maxPayload: 1_000_000, maxDepth: 64 };
    fc.assert(
      fc.property(goodSubmission, (input) => {
        const { definition, payload } = parseSubmission(input, roomy);
        expect(definition.task).toBe(input.task);
        expect(definition.queue).toBe(input.queue ?? 'default');
        expect(definition.priority).toBe(input.priority ?? 5);
        expect(definition.key).toBe(input.key ?? null);
        expect(definition.concurrencyKey).toBe(input.concurrencyKey ?? null);
        expect(definition.hold).toBe(input.hold ?? false);
        expect(definition.needs.labels).toEqual(input.requires ?? {});
        expect(payload).toBe(JSON.stringify(input.payload ?? null));
        expect(definition.retry.maxAttempts).toBe(input.retry?.maxAttempts ?? 4);
        expect(definition.runAt).toBeGreaterThanOrEqual(NOW);
      }),
    );
  });

  it('that is not fails with a code and pointers into it, never otherwise', () => {
    const fields = ['task', 'target', 'payload', 'runAt', 'delay', 'queue', 'priority', 'key', 'retry'];
    const almost = fc.dictionary(
      fc.constantFrom(...fields, 'timeout', 'delivery', 'requires', 'startBefore', 'hold', '__proto__', 'x'),
      fc.oneof(fc.jsonValue(), line, name, duration, fc.constantFrom({ type: 'http' }, { type: 'exec' })),
    );
    fc.assert(
      fc.property(fc.oneof(almost, fc.anything(), fc.jsonValue()), (input) => {
        try {
          parseSubmission(input, context, '/jobs/0');
        } catch (error) {
          expect(error).toBeInstanceOf(PunctualError);
          const { code, errors } = error as PunctualError;
          expect(['INVALID_REQUEST', 'PAYLOAD_TOO_LARGE']).toContain(code);
          expect(errors.length).toBeGreaterThan(0);
          for (const each of errors) expect(each.pointer).toMatch(/^\/jobs\/0(\/|$)/);
        }
      }),
      { numRuns: 500 },
    );
  });
});

describe('submissions in bulk', () => {
  it('become the same as one by one', async () => {
    const bulk = fc.array(
      fc.tuple(goodSubmission, fc.array(fc.jsonValue({ maxDepth: 2 }), { maxLength: 3 })),
    );
    await fc.assert(
      fc.asyncProperty(bulk, async (groups) => {
        const jobs = groups.flatMap(([submission, payloads]) => [
          submission,
          ...payloads.map((payload) => ({ ...submission, payload })),
        ]);
        const together = await parseSubmissions(jobs, context);
        expect(together).toEqual(jobs.map((job) => parseSubmission(job, context)));
      }),
      { numRuns: 50 },
    );
  });
});
