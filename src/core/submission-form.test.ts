import fc from 'fast-check';
import { Compile } from 'typebox/compile';
import { describe, expect, it } from 'vitest';
import { parseDuration } from './duration.js';
import { PunctualError } from './errors.js';
import type { ExecTarget, HttpTarget, JobSubmission } from './job.js';
import { parseMoment } from './moment.js';
import { DEFINITION_FIELDS } from './schedule.js';
import { parseDefinition } from './schedule-definition.js';
import { nearlyFromSchema } from './schemas/from-schema.fixture.js';
import { ScheduleDefinition } from './schemas/schedule.js';
import { JobSubmission as Form } from './schemas/submission.js';
import { parseSubmission, parseSubmissions } from './submission.js';

/** What is accepted is what the documented schema and the rules between fields allow, and nothing else. */

const NOW = Date.UTC(2026, 0, 1);
const context = {
  now: NOW,
  maxPayload: 600,
  jobTimeout: 60_000,
  maxJobTimeout: 3_600_000,
  allowCommands: true,
  maxDepth: 8,
  createdAt: NOW,
};

const MANY_LABELS = Object.fromEntries(Array.from({ length: 16 }, (_, i) => [`label-${i}`, 'x'.repeat(256)]));

const depth = (value: unknown): number =>
  typeof value === 'object' && value !== null ? 1 + Math.max(0, ...Object.values(value).map(depth)) : 0;

function isJson(value: unknown): boolean {
  try {
    const text = JSON.stringify(value ?? null);
    return text !== undefined && Buffer.byteLength(text) <= context.maxPayload && depth(value) <= 8;
  } catch {
    return false;
  }
}

const REFUSED_HEADERS =
  /^(host|connection|keep-alive|te|trailer|upgrade|transfer-encoding|content-length|expect|accept-encoding|trace(parent|state)|(punctual|webhook|proxy)-.*)$/i;
const isSent = (text: string) => [...text].every((character) => character.codePointAt(0)! < 256);

/** What the schema does not say about calls. */
function isCallable({ url, method, body, timeout, headers = {} }: HttpTarget): boolean {
  const { username, password } = new URL(url);
  // What is no JSON is refused by another rule.
  const references = isJson(body) && JSON.stringify(body ?? null).includes('"$secret"');
  return (
    `${username}${password}` === '' &&
    !(body !== undefined && ['GET', 'HEAD'].includes(method ?? '')) &&
    (timeout === undefined || parseDuration(timeout)! >= 1) &&
    !references &&
    Object.entries(headers).every(
      ([name, value]) =>
        !REFUSED_HEADERS.test(name) && isSent(typeof value === 'string' ? value : (value.prefix ?? '')),
    )
  );
}

/** What the schema does not say about programs. */
function isRunnable({ env = {}, limits }: ExecTarget): boolean {
  return (
    (limits?.cpuTime === undefined || parseDuration(limits.cpuTime)! >= 1) &&
    !Object.keys(env).some((name) =>
      /^(BASH_ENV|BASHOPTS|ENV|PS4|SHELLOPTS|LIBMOUNT_.*|LD_.*|PUNCTUAL_.*|TRACEPARENT|GLIBC_TUNABLES|GCONV_PATH|LOCPATH|NLSPATH|MALLOC_.*)$/.test(
        name,
      ),
    )
  );
}

/** The rules between fields, each told apart from the others. */
const RULES: Readonly<Record<string, (job: JobSubmission) => boolean>> = {
  'task or target': ({ task, target }) => (task === undefined) !== (target === undefined),
  'runAt or delay': ({ runAt, delay }) => runAt === undefined || delay === undefined,
  'a time for an artifact with one': ({ target }) =>
    target?.type !== 'exec' || target.artifactTimeout === undefined || target.artifact !== undefined,
  'artifact or command': ({ target }) =>
    target?.type !== 'exec' || (target.artifact === undefined) !== (target.command === undefined),
  'a program that can be run': ({ target }) => target?.type !== 'exec' || isRunnable(target),
  'a call that can be made': ({ target }) => target?.type !== 'http' || isCallable(target),
  'a target within limits': ({ target }) => isJson(target),
  'a payload within limits': ({ payload }) => isJson(payload),
  'labels within limits': ({ requires = {} }) => Buffer.byteLength(JSON.stringify(requires)) <= 4_096,
  'a timeout within limits': ({ timeout = '1m' }) =>
    parseDuration(timeout)! >= 1 && parseDuration(timeout)! <= context.maxJobTimeout,
  'one start': ({ delivery, retry }) =>
    delivery !== 'at-most-once' ||
    ((retry?.maxAttempts ?? 1) === 1 && (retry?.onWorkerLost?.maxAttempts ?? 1) === 1),
  'a mode of a key': ({ key, keyMode }) => keyMode === undefined || key !== undefined,
  'a window for the modes with one': ({ keyMode = 'keep', keyWindow }) =>
    ['debounce', 'throttle'].includes(keyMode)
      ? keyWindow !== undefined && parseDuration(keyWindow)! > 0
      : keyWindow === undefined,
  'a debounced job without a time': ({ keyMode, runAt, delay }) =>
    keyMode !== 'debounce' || (runAt === undefined && delay === undefined),
  'a last moment after the first': ({ startBefore, runAt, keyMode, keyWindow = '0s', delay = '0s' }) => {
    if (keyMode === 'debounce' && startBefore !== undefined)
      return parseMoment(startBefore)! > NOW + parseDuration(keyWindow)!;
    const due = runAt === undefined ? NOW + parseDuration(delay)! : Math.max(NOW, parseMoment(runAt)!);
    return startBefore === undefined || parseMoment(startBefore)! > due;
  },
};

function refusal(parse: () => unknown): string | null {
  try {
    parse();
    return null;
  } catch (error) {
    expect(error).toBeInstanceOf(PunctualError);
    expect((error as PunctualError).errors.length).toBeGreaterThan(0);
    return (error as PunctualError).code;
  }
}

describe('a submission is refused', () => {
  const compiled = Compile(Form);
  const isGood = (value: unknown) =>
    compiled.Check(value) && Object.values(RULES).every((keeps) => keeps(value as JobSubmission));

  it('exactly when the documented schema or a rule between fields says so', () => {
    const seen = { good: 0, bad: 0 };
    fc.assert(
      fc.property(nearlyFromSchema(Form, { task: 'a' }), (value) => {
        const code = refusal(() => parseSubmission(value, context));
        expect(code === null).toBe(isGood(value));
        expect([null, 'INVALID_REQUEST', 'PAYLOAD_TOO_LARGE']).toContain(code);
        seen[code === null ? 'good' : 'bad'] += 1;
      }),
      { numRuns: 3_000 },
    );
    expect(seen.good).toBeGreaterThan(100);
    expect(seen.bad).toBeGreaterThan(100);
  });

  it.each<[rule: string, body: JobSubmission]>([
    ['task or target', {}],
    ['runAt or delay', { task: 'a', delay: '0s', runAt: '2026-01-01T00:00:05Z' }],
    ['artifact or command', { target: { type: 'exec', artifact: 'a', command: 'b' } }],
    ['a program that can be run', { target: { type: 'exec', command: 'ls', env: { LD_PRELOAD: '/x' } } }],
    ['a program that can be run', { target: { type: 'exec', command: 'ls', limits: { cpuTime: '0s' } } }],
    ['a call that can be made', { target: { type: 'http', url: 'http://a', headers: { host: 'b' } } }],
    ['a payload within limits', { task: 'a', payload: 'x'.repeat(599) }],
    ['labels within limits', { task: 'a', requires: MANY_LABELS }],
    ['a timeout within limits', { task: 'a', timeout: '0s' }],
    ['one start', { task: 'a', delivery: 'at-most-once', retry: { maxAttempts: 2 } }],
    ['a mode of a key', { task: 'a', keyMode: 'replace' }],
    ['a window for the modes with one', { task: 'a', key: 'k', keyMode: 'throttle' }],
    [
      'a debounced job without a time',
      { task: 'a', key: 'k', keyMode: 'debounce', keyWindow: '5m', delay: '1s' },
    ],
    ['a last moment after the first', { task: 'a', startBefore: '2026-01-01T00:00:00Z' }],
  ])('for a rule alone: %s', (rule, body) => {
    expect(Object.keys(RULES).filter((name) => !RULES[name]!(body))).toEqual([rule]);
    expect(compiled.Check(body)).toBe(true);
    expect(refusal(() => parseSubmission(body, context))).not.toBeNull();
  });

  it('in bulk as it is alone', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(nearlyFromSchema(Form, { task: 'a' }), { maxLength: 4 }), async (jobs) => {
        const accepted = await parseSubmissions(jobs, context).then(
          () => true,
          () => false,
        );
        expect(accepted).toBe(jobs.every(isGood));
      }),
      { numRuns: 300 },
    );
  });
});

describe('a schedule', () => {
  it('has the fields of its schema, in the order in which they are stored', () => {
    expect(Object.keys(ScheduleDefinition.properties)).toEqual([...DEFINITION_FIELDS]);
  });

  it('with a command is refused where the operator does not allow them', () => {
    const definition = { every: '1m', target: { type: 'exec', command: 'ls' } };
    const closed = { ...context, allowCommands: false };
    expect(refusal(() => parseDefinition(definition, closed))).toBe('TARGET_UNAVAILABLE');
    expect(refusal(() => parseDefinition(definition, context))).toBeNull();
  });

  it('without anything to run is told everything that it could run, beside its other mistakes', () => {
    const parse = () =>
      parseDefinition({ every: '1m', delivery: 'at-most-once', retry: { maxAttempts: 3 } }, context);
    const detail = 'give one of "task", "target", "workflow" and "batch"';
    let errors: unknown;
    try {
      parse();
    } catch (error) {
      errors = (error as { errors: unknown }).errors;
    }
    expect(errors).toEqual([
      { pointer: '/task', detail },
      { pointer: expect.stringContaining('/retry'), detail: expect.any(String) },
    ]);
  });

  it('is refused when the documented schema says so, and never in another way', () => {
    const compiled = Compile(ScheduleDefinition);
    fc.assert(
      fc.property(nearlyFromSchema(ScheduleDefinition), (value) => {
        const code = refusal(() => parseDefinition(value, context));
        expect([null, 'INVALID_REQUEST', 'PAYLOAD_TOO_LARGE']).toContain(code);
        if (!compiled.Check(value)) expect(code).not.toBeNull();
      }),
      { numRuns: 2_000 },
    );
  });
});
