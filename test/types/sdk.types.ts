import { z } from 'zod';
import { connect, type Job, type Json, PermanentError, task } from '../../src/index.js';

/**
 * What must and what must not compile. This file is never run: the type check of the repository reads it, and
 * fails on a wrong line without `@ts-expect-error` as well as on a right line with one.
 */

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
function holds<T extends true>(): T | undefined {
  return undefined;
}

const punctual = connect();

/** The example of the contract. */
export const greet = task(
  'greet',
  { retry: { maxAttempts: 4 }, timeout: '2m' },
  async (input: { name: string }, ctx) => {
    await ctx.progress(0.5, 'half way');
    ctx.log('text');
    ctx.log.warn('text');
    const signal: AbortSignal = ctx.signal;
    return { text: `Hello ${input.name}`, fence: ctx.fence, aborted: signal.aborted };
  },
);

export async function inputAndResultOfATask(): Promise<void> {
  const job = await punctual.submit(greet, { name: 'Ada' }, { delay: '5s', key: 'greet-ada' });
  const result = await job.result({ signal: AbortSignal.timeout(30_000) });
  holds<Equal<typeof result, { text: string; fence: number; aborted: boolean }>>();
  holds<Equal<Awaited<ReturnType<typeof job.get>>, Job>>();
  // @ts-expect-error A field of the wrong type.
  await punctual.submit(greet, { name: 1 });
  // @ts-expect-error A field too few.
  await punctual.submit(greet, {});
  // @ts-expect-error No input where one is needed.
  await punctual.submit(greet);
  // @ts-expect-error A field too many.
  await punctual.submit(greet, { name: 'Ada', age: 36 });
  // @ts-expect-error There is no such option.
  await punctual.submit(greet, { name: 'Ada' }, { dealy: '5s' });
  // @ts-expect-error There is no such delivery.
  await punctual.submit(greet, { name: 'Ada' }, { delivery: 'exactly-once' });
  // @ts-expect-error The result has no such field.
  result.txt;
}

export async function manyJobs(): Promise<void> {
  const jobs = await punctual.submitMany(greet, [{ name: 'Ada' }], (input, index) => ({
    key: `${input.name}-${index}`,
  }));
  const result = await jobs[0]!.result();
  holds<Equal<typeof result.text, string>>();
  // @ts-expect-error One input of the wrong type.
  await punctual.submitMany(greet, [{ name: 'Ada' }, { name: 2 }]);
  // @ts-expect-error A transaction takes single jobs.
  await punctual.submitMany(greet, [{ name: 'Ada' }], { tx: { query: async () => ({ rows: [] }) } });
}

export async function schedules(): Promise<void> {
  const hourly = await punctual.schedule(greet, { cron: '0 * * * *', input: { name: 'Ada' } });
  const run = await hourly.run();
  const result = await run.result();
  holds<Equal<typeof result.text, string>>();
  const tick = task('tick', () => 1);
  await punctual.schedule(tick, { every: '5m', overlap: 'skip', catchUp: { within: '6h' } });
  await punctual.schedule('somewhere-else', { at: new Date(), name: 'once', input: 1 });
  // @ts-expect-error A schedule must say when.
  await punctual.schedule(tick, {});
  // @ts-expect-error It must not say so twice.
  await punctual.schedule(tick, { cron: '0 * * * *', every: '1h' });
  // @ts-expect-error The task needs an input.
  await punctual.schedule(greet, { every: '1h' });
  // @ts-expect-error The input must fit.
  await punctual.schedule(greet, { every: '1h', input: { name: 1 } });
  // @ts-expect-error There is no such policy.
  await punctual.schedule(tick, { every: '1h', overlap: 'maybe' });
  // @ts-expect-error A key would be the same for every job.
  await punctual.schedule(tick, { every: '1h', key: 'k' });
}

export async function tasksWithoutInput(): Promise<void> {
  const tick = task('tick', () => 1);
  holds<Equal<Awaited<ReturnType<Awaited<ReturnType<typeof submitTick>>['result']>>, number>>();
  async function submitTick() {
    return punctual.submit(tick);
  }
  const optional = task('optional', (_input: { a: number } | undefined) => undefined);
  await punctual.submit(optional);
  await punctual.submit(optional, { a: 1 });
  // @ts-expect-error Given, it must fit.
  await punctual.submit(optional, { a: 'x' });
}

export async function schemas(): Promise<void> {
  const dated = task(
    'dated',
    { input: z.object({ at: z.string().transform((text) => new Date(text)) }) },
    (input, ctx) => {
      holds<Equal<typeof input, { at: Date }>>();
      holds<Equal<typeof ctx.attempt, number>>();
      return { at: input.at, year: input.at.getFullYear() };
    },
  );
  const job = await punctual.submit(dated, { at: '2026-01-01' });
  const result = await job.result();
  // A date has become text on its way back.
  holds<Equal<typeof result, { at: string; year: number }>>();
  // @ts-expect-error What is submitted is what the schema takes in, not what it gives out.
  await punctual.submit(dated, { at: new Date() });
  const numbered = z.object({ n: z.number() });
  // @ts-expect-error The handler wants something else than the schema gives.
  task('mismatch', { input: numbered }, (input: { n: string }) => input.n);
}

export async function namesInPlaceOfTasks(): Promise<void> {
  const job = await punctual.submit('somewhere-else', { any: 'thing' });
  const result = await job.result();
  holds<Equal<typeof result, unknown>>();
  const typed = await punctual.submit<{ total: number }>('somewhere-else');
  holds<Equal<Awaited<ReturnType<typeof typed.result>>, { total: number }>>();
}

export async function workers(): Promise<void> {
  const other = task('other', (input: number) => {
    if (input < 0) throw new PermanentError('negative', { code: 'NEGATIVE' });
  });
  const end = await punctual.worker([greet, other], { slots: 20 }).run();
  holds<Equal<typeof end, 'drained' | 'stopped'>>();
  // @ts-expect-error A worker takes tasks, not handlers.
  punctual.worker([() => 1]);
  // @ts-expect-error There is no such option.
  punctual.worker([greet], { slot: 20 });
  // @ts-expect-error A task needs a handler.
  task('nothing', { timeout: '2m' });
}

/** What JSON makes of types. */
export function json(): void {
  holds<Equal<Json<Date>, string>>();
  holds<Equal<Json<undefined>, null>>();
  holds<Equal<Json<unknown>, unknown>>();
  holds<Equal<Json<{ a: Date; b?: number; c: () => void; d: undefined }>, { a: string; b?: number }>>();
  holds<Equal<Json<[1, Date, null]>, [1, string, null]>>();
  holds<
    Equal<Json<Map<string, number> | 'x'> extends infer T ? ('x' extends T ? true : false) : never, true>
  >();
}

export async function sharesAndLimits(): Promise<void> {
  const queue = await punctual.limitQueue('mail', { concurrency: 5, rate: '100/1s', weight: 2 });
  holds<Equal<typeof queue.concurrency, number | null>>();
  await punctual.limitQueue('mail', { concurrency: null, rate: { limit: 1, per: '1m', burst: 1 } });
  // @ts-expect-error A limit per key cannot be taken away.
  await punctual.limitQueue('mail', { keyConcurrency: null });
  punctual.worker([greet], { queues: ['*'], shared: true, rate: '10/1s' });
  // @ts-expect-error A rate needs a time.
  punctual.worker([greet], { rate: { limit: 10 } });
  task('whose', (_input: unknown, ctx) => holds<Equal<typeof ctx.tenant, string>>());
}
