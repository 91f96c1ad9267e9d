import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { JobSubmission } from './job.js';
import { parseTask, rulesOfStored } from './parse-task.js';
import { DEFAULT_RETRY } from './retry.js';
import { type JobDefinition, parseSubmission, parseSubmissions, taskNamesOf } from './submission.js';
import type { TaskDefinition } from './task-definition.js';

const context = {
  now: Date.UTC(2026, 0, 1),
  maxPayload: 10_000,
  jobTimeout: 60_000,
  maxJobTimeout: 3_600_000,
  allowCommands: true,
  maxDepth: 16,
};

/** The lookup of one task, as a node makes it of what is stored. */
function tasksOf(definition: TaskDefinition, name = 'greet') {
  const stored = JSON.stringify(parseTask(name, definition, context));
  return new Map([[name, rulesOfStored(name, stored)]]);
}

function submitted(definition: TaskDefinition, submission: JobSubmission): JobDefinition {
  const tasks = tasksOf(definition);
  return parseSubmission({ task: 'greet', ...submission }, { ...context, tasks }).definition;
}

function refusal(run: () => unknown): unknown {
  try {
    run();
  } catch (error) {
    return error;
  }
  throw new Error('it was not refused');
}

const optional = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined });
const duration = fc.constantFrom('1s', '2s', '5m');
const attempts = fc.integer({ min: 1, max: 9 });

const template = fc.record({
  queue: optional(fc.constantFrom('mail', 'slow')),
  priority: optional(fc.integer({ min: 1, max: 9 })),
  timeout: optional(duration),
  requires: optional(fc.constantFrom({ region: 'eu' }, { gpu: 'yes' })),
  concurrencyKey: optional(fc.constantFrom('one', 'two')),
  retry: optional(
    fc.record({
      maxAttempts: optional(attempts),
      backoff: optional(
        fc.record({
          base: optional(duration),
          factor: optional(fc.integer({ min: 1, max: 4 })),
          max: optional(duration),
        }),
      ),
      onWorkerLost: optional(fc.record({ maxAttempts: optional(attempts) })),
    }),
  ),
}) as fc.Arbitrary<
  Pick<JobSubmission, 'queue' | 'priority' | 'timeout' | 'requires' | 'concurrencyKey' | 'retry'>
>;

const withoutUndefined = (value: object) => JSON.parse(JSON.stringify(value));

describe('a job of a defined task', () => {
  it('takes each value from its submission, else from the task, else from the defaults', () => {
    fc.assert(
      fc.property(template, template, (said, defined) => {
        const job = submitted(withoutUndefined(defined), withoutUndefined(said));
        const plain = parseSubmission({ task: 'greet' }, context).definition;
        expect(job.queue).toBe(said.queue ?? defined.queue ?? 'default');
        expect(job.priority).toBe(said.priority ?? defined.priority ?? 5);
        expect(job.concurrencyKey).toBe(said.concurrencyKey ?? defined.concurrencyKey ?? null);
        expect(job.needs.labels).toEqual(said.requires ?? defined.requires ?? {});
        const timeout = said.timeout ?? defined.timeout;
        expect(job.timeoutMs).toBe(
          timeout ? { '1s': 1_000, '2s': 2_000, '5m': 300_000 }[timeout as '1s'] : plain.timeoutMs,
        );
        const [a, b] = [said.retry, defined.retry];
        expect(job.retry.maxAttempts).toBe(a?.maxAttempts ?? b?.maxAttempts ?? DEFAULT_RETRY.maxAttempts);
        expect(job.retry.backoff.factor).toBe(
          a?.backoff?.factor ?? b?.backoff?.factor ?? DEFAULT_RETRY.backoff.factor,
        );
        expect(job.retry.onWorkerLost.maxAttempts).toBe(
          a?.onWorkerLost?.maxAttempts ??
            b?.onWorkerLost?.maxAttempts ??
            DEFAULT_RETRY.onWorkerLost.maxAttempts,
        );
      }),
    );
  });

  it('is what a submission would be that says everything itself', () => {
    fc.assert(
      fc.property(template, (defined) => {
        const definition = withoutUndefined(defined);
        const alone = parseSubmission({ task: 'greet', ...definition }, context).definition;
        const byTask = submitted(definition, {});
        // Whether the backoff is stored is about who said it, not about its values.
        expect({ ...byTask, backoffIsDefault: true }).toEqual({ ...alone, backoffIsDefault: true });
      }),
    );
  });

  it('of another name, and one with a target, takes nothing', () => {
    const tasks = tasksOf({ queue: 'mail' });
    expect(parseSubmission({ task: 'other' }, { ...context, tasks }).definition.queue).toBe('default');
    const target = { type: 'handler', name: 'greet' };
    expect(parseSubmission({ target }, { ...context, tasks }).definition.queue).toBe('default');
  });

  it('runs the target of its task', () => {
    const job = submitted({ target: { type: 'handler', name: 'hello' } }, {});
    expect(job).toMatchObject({ task: 'greet', needs: { target: 'handler', handler: 'hello' } });
  });

  it('is checked as a whole, and the error says which value comes from the task', () => {
    expect(
      refusal(() => submitted({ retry: { maxAttempts: 4 } }, { delivery: 'at-most-once' })),
    ).toMatchObject({
      code: 'INVALID_REQUEST',
      errors: [
        {
          pointer: '/retry/maxAttempts',
          detail: expect.stringMatching(/must be 1 \(4 comes from the task greet\)$/),
        },
      ],
    });
    expect(
      refusal(() => submitted({ delivery: 'at-most-once' }, { retry: { maxAttempts: 2 } })),
    ).toMatchObject({
      errors: [
        {
          pointer: '/retry/maxAttempts',
          detail: expect.stringMatching(/must be 1 \("at-most-once" comes from the task greet\)$/),
        },
      ],
    });
    expect(submitted({ delivery: 'at-most-once' }, {}).retry).toMatchObject({ maxAttempts: 1 });
    expect(
      submitted({ retry: { maxAttempts: 4 } }, { delivery: 'at-most-once', retry: { maxAttempts: 1 } }),
    ).toMatchObject({
      delivery: 'at-most-once',
    });
  });

  it('is not refused for a limit that was lowered after its task was defined', () => {
    const tasks = tasksOf({ timeout: '30m' });
    const lowered = { ...context, tasks, maxJobTimeout: 60_000 };
    expect(parseSubmission({ task: 'greet' }, lowered).definition.timeoutMs).toBe(60_000);
    expect(refusal(() => parseSubmission({ task: 'greet', timeout: '30m' }, lowered))).toMatchObject({
      errors: [{ pointer: '/timeout' }],
    });
  });
});

describe('a concurrency key in the payload', () => {
  const keyOf = (payload: unknown, path = 'customer.id', said: JobSubmission = {}) =>
    submitted({ concurrencyKey: { path } }, { payload, ...said }).concurrencyKey;

  it.each<[unknown, string | null]>([
    [{ customer: { id: 'c-7' } }, 'c-7'],
    [{ customer: { id: 7 } }, '7'],
    [{ customer: { id: false } }, 'false'],
    [{ customer: { id: null } }, null],
    [{ customer: { id: '' } }, null],
    [{ customer: { id: { deep: 1 } } }, null],
    [{ customer: {} }, null],
    [{ customer: 'c-7' }, null],
    [null, null],
    [[], null],
  ])('of %j is %j', (payload, key) => expect(keyOf(payload)).toBe(key));

  it('is found in lists, and never in what every object has', () => {
    expect(keyOf({ items: [{ id: 'a' }, { id: 'b' }] }, 'items.1.id')).toBe('b');
    expect(keyOf({ items: [1, 2] }, 'items.length')).toBe(null);
    expect(keyOf({}, 'constructor.name')).toBe(null);
  });

  it('gives way to the key of the submission, and must be one', () => {
    expect(keyOf({ customer: { id: 'c-7' } }, 'customer.id', { concurrencyKey: 'mine' })).toBe('mine');
    expect(keyOf({ customer: { id: 'a\nb' } }, 'customer.id', { concurrencyKey: 'mine' })).toBe('mine');
    expect(refusal(() => keyOf({ customer: { id: 'a\nb' } }))).toMatchObject({
      errors: [{ pointer: '/payload/customer/id', detail: expect.stringContaining('the task greet') }],
    });
  });
});

describe('a bulk of a defined task', () => {
  const payloads = [{ id: 'a' }, { id: 'a' }, { id: 'b' }, {}, { id: 'b' }];
  const jobs = payloads.map((payload) => ({ task: 'greet', payload }));

  it('has the keys of its payloads, and shares definitions where they are the same', async () => {
    const tasks = tasksOf({ concurrencyKey: { path: 'id' }, queue: 'mail' });
    const parsed = await parseSubmissions(jobs, { ...context, tasks });
    expect(parsed.map(({ definition }) => definition.concurrencyKey)).toEqual(['a', 'a', 'b', null, 'b']);
    expect(parsed[0]!.definition).toBe(parsed[1]!.definition);
    expect(parsed.every(({ definition }) => definition.queue === 'mail')).toBe(true);
  });

  it('is checked payload by payload', async () => {
    const tasks = tasksOf({ payloadSchema: { required: ['id'] } });
    await expect(parseSubmissions(jobs, { ...context, tasks })).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
      errors: [{ pointer: '/jobs/3/payload/id', detail: 'is required' }],
    });
  });

  it('shares one definition where payloads are not read', async () => {
    const parsed = await parseSubmissions(jobs, { ...context, tasks: tasksOf({ queue: 'mail' }) });
    expect(new Set(parsed.map(({ definition }) => definition)).size).toBe(1);
  });
});

it('the names of submissions are each asked for once, and what is no name is not', () => {
  const inputs = [
    { task: 'a' },
    { task: 'a' },
    { task: 'b' },
    { task: 'a' },
    { task: 'a b' },
    { task: 1 },
    null,
    {},
  ];
  expect(taskNamesOf(inputs)).toEqual(['a', 'b']);
});

describe('a definition', () => {
  it.each<[unknown, string]>([
    [{ queue: 'a b' }, '/queue'],
    [{ priority: 10 }, '/priority'],
    [{ runAt: '2026-01-01T00:00:00Z' }, '/runAt'],
    [{ delivery: 'at-most-once', retry: { maxAttempts: 2 } }, '/retry/maxAttempts'],
    [{ timeout: '2h' }, '/timeout'],
    [{ timeout: '0s' }, '/timeout'],
    [{ concurrencyKey: { path: '' } }, '/concurrencyKey/path'],
    [{ concurrencyKey: { path: 'a..b' } }, '/concurrencyKey/path'],
    [{ concurrencyKey: 7 }, '/concurrencyKey'],
    [{ payloadSchema: { type: 'text' } }, '/payloadSchema/type'],
    [{ payloadSchema: null }, '/payloadSchema'],
    [{ target: { type: 'exec', command: 'a', artifact: 'b' } }, '/target/artifact'],
    [{ description: 'x'.repeat(2_000) }, '/description'],
  ])('that is wrong is refused: %j', (definition, pointer) => {
    expect(refusal(() => parseTask('greet', definition, context))).toMatchObject({ errors: [{ pointer }] });
  });

  it('is bounded in size', () => {
    const schema = { enum: ['x'.repeat(70_000)] };
    expect(refusal(() => parseTask('greet', { payloadSchema: schema }, context))).toMatchObject({
      errors: [{ pointer: '', detail: expect.stringContaining('65536 bytes') }],
    });
  });

  it('of a newer version is applied as far as it is understood, and its schema refuses what cannot be checked', () => {
    const text = JSON.stringify({ queue: 'mail', unknown: 1, payloadSchema: { newKeyword: true } });
    const tasks = new Map([['greet', rulesOfStored('greet', text)]]);
    expect(refusal(() => parseSubmission({ task: 'greet' }, { ...context, tasks }))).toMatchObject({
      errors: [{ pointer: '/payload', detail: expect.stringContaining('does not understand') }],
    });
  });
});
