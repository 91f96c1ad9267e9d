import { expect, it } from 'vitest';
import { z } from 'zod';
import { task } from '../core/task.js';
import { testContext } from './test-context.js';

it('runs a handler without any node, and remembers its progress and log', async () => {
  const greet = task('greet', async (input: { name: string }, ctx) => {
    await ctx.progress(0.5, 'half way');
    await ctx.progress(7);
    ctx.log(`attempt ${ctx.attempt}`);
    ctx.log.warn({ odd: true });
    return { text: `Hello ${input.name}`, fence: ctx.fence, at: new Date(0), queue: ctx.queue };
  });
  const context = testContext({ attempt: 3, queue: 'mail' });
  expect(await greet.run({ name: 'Ada' }, context)).toEqual({
    ...{ text: 'Hello Ada', fence: 3, queue: 'mail' },
    at: '1970-01-01T00:00:00.000Z',
  });
  expect(context.progressReports).toEqual([{ progress: 0.5, message: 'half way' }, { progress: 1 }]);
  expect(context.logLines).toEqual([
    { level: 'info', message: 'attempt 3' },
    { level: 'warn', message: '{ odd: true }' },
  ]);
});

it('checks the input as a submission would, and gives the handler what the schema makes of it', async () => {
  const dated = task(
    'dated',
    { input: z.object({ at: z.string().transform((text) => new Date(text)) }) },
    (input) => input.at.getUTCFullYear(),
  );
  expect(await dated.run({ at: '2026-01-01' }, testContext())).toBe(2026);
  await expect(dated.run({ at: 1 as never }, testContext())).rejects.toMatchObject({
    code: 'INVALID_REQUEST',
    errors: [{ pointer: '/payload/at' }],
  });
});

it('passes errors on as they were thrown, and results as JSON has them', async () => {
  const thrown = new Error('as it is');
  await expect(task('bad', () => Promise.reject(thrown)).run(undefined, testContext())).rejects.toBe(thrown);
  expect(await task('nothing', () => undefined).run(undefined, testContext())).toBe(null);
  await expect(task('unfit', () => () => 1).run(undefined, testContext())).rejects.toThrow('a function');
});

it('starts a handler in the call, and not at all if it was stopped before', async () => {
  let starts = 0;
  const slow = task('slow', async (_: unknown, { signal }) => {
    starts += 1;
    expect(signal.aborted).toBe(false);
    await new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
  });
  const context = testContext();
  const run = slow.run(null, context);
  expect(starts).toBe(1);
  context.abort(new Error('cancelled'));
  await expect(run).rejects.toThrow('cancelled');
  await expect(slow.run(null, context)).rejects.toThrow('cancelled');
  expect(starts).toBe(1);
  const checked = task('checked', { input: z.number() }, () => {
    starts += 1;
  });
  const other = testContext();
  const waiting = checked.run(1, other);
  other.abort(new Error('cancelled'));
  await expect(waiting).rejects.toThrow('cancelled');
  expect(starts).toBe(1);
});

it('has a signal that a test, or the caller, aborts', async () => {
  const waits = task(
    'waits',
    (_: unknown, { signal }) =>
      new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
  );
  const own = testContext();
  const first = waits.run(null, own);
  await new Promise((resolve) => setImmediate(resolve));
  own.abort(new Error('cancelled'));
  await expect(first).rejects.toThrow('cancelled');
  const outer = new AbortController();
  const given = testContext({ signal: outer.signal });
  outer.abort(new Error('from outside'));
  expect(given.signal.reason).toMatchObject({ message: 'from outside' });
});

it('remembers the steps that a handler adds', async () => {
  const plan = task('plan', async (input: { pages: number }, ctx) =>
    Object.keys(
      await ctx.spawn((w) => {
        for (let i = 1; i <= input.pages; i++) w.run('render', { page: i }, { name: `page-${i}` });
      }),
    ),
  );
  const context = testContext({ workflow: 'w' });
  expect(await plan.run({ pages: 2 }, context)).toEqual(['page-1', 'page-2']);
  expect(context.additions).toEqual([
    {
      jobs: {
        'page-1': { task: 'render', payload: { page: 1 } },
        'page-2': { task: 'render', payload: { page: 2 } },
      },
    },
  ]);
  await expect(plan.run({ pages: 1 }, testContext())).rejects.toThrow('of no step');
});
