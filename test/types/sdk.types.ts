import type pg from 'pg';
import { pino } from 'pino';
import { z } from 'zod';
import {
  connect,
  type Duration,
  type Handler,
  type Job,
  type Json,
  type Middleware,
  member,
  PermanentError,
  type Rate,
  type Repetition,
  schedule,
  type TaskView,
  task,
  testContext,
  workflow,
} from '../../src/index.js';

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
  const debounced = { key: 'k', keyMode: 'debounce', keyWindow: '5m' } as const;
  const { repetition } = await punctual.submit(greet, { name: 'Ada' }, debounced);
  holds<Equal<typeof repetition, Repetition | undefined>>();
  // @ts-expect-error There is no such mode of a key.
  await punctual.submit(greet, { name: 'Ada' }, { key: 'k', keyMode: 'forget' });
  // @ts-expect-error The result has no such field.
  result.txt;
}

export async function inATransaction(client: pg.PoolClient, single: pg.Client, pool: pg.Pool): Promise<void> {
  await punctual.submit(greet, { name: 'Ada' }, { tx: client });
  await punctual.submit(greet, { name: 'Ada' }, { tx: single });
  // @ts-expect-error Each query of a pool may go to another connection.
  await punctual.submit(greet, { name: 'Ada' }, { tx: pool });
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

export async function schedulesAsCode(): Promise<void> {
  const tick = task('tick', () => 1);
  const entries = [
    schedule(greet, { name: 'daily', cron: '0 7 * * *', input: { name: 'Ada' } }),
    schedule(tick, { every: '5m' }),
    schedule('somewhere-else', { at: new Date() }),
  ];
  const done = await punctual.schedules(entries, { owner: 'orders', prune: true });
  holds<Equal<typeof done.removed, readonly string[]>>();
  // @ts-expect-error The task needs an input.
  schedule(greet, { every: '1h' });
  // @ts-expect-error Only entries, not tasks.
  await punctual.schedules([tick]);
}

export async function steering(): Promise<void> {
  for await (const job of punctual.list({ state: 'failed', task: 'greet' })) {
    holds<Equal<typeof job.id, string>>();
    await punctual.retry(job.id);
  }
  for await (const line of punctual.logs('id')) holds<Equal<typeof line.message, string>>();
  for await (const each of punctual.occurrences('daily', { from: new Date() })) each.state satisfies string;
  for await (const queue of punctual.queues()) holds<Equal<typeof queue.paused, boolean>>();
  await punctual.change('id', { runAt: new Date(), priority: 9 });
  await punctual.cancel({ key: 'order-42' });
  await punctual.redrive({ task: 'greet', dryRun: true });
  await punctual.stats({ history: '1h' });
  // @ts-expect-error There is no such state.
  punctual.list({ state: 'lost' });
  // @ts-expect-error Which ones must be said.
  await punctual.redrive({});
}

export async function textsWithAForm(): Promise<void> {
  const wait: Duration = '1.5h';
  const most: Rate = '100/1s';
  await punctual.submit(greet, { name: 'Ada' }, { delay: wait });
  await punctual.limitQueue('mail', { rate: most });
  const settings: { delay: string } = JSON.parse('{"delay":"5s"}');
  await punctual.submit(greet, { name: 'Ada' }, { delay: settings.delay as Duration });
  // @ts-expect-error Not known to be a duration.
  await punctual.submit(greet, { name: 'Ada' }, { delay: settings.delay });
  // @ts-expect-error Not a rate.
  await punctual.limitQueue('mail', { rate: '100 per second' });
}

export async function unitTests(): Promise<void> {
  const result = await greet.run({ name: 'Ada' }, testContext({ attempt: 2 }));
  holds<Equal<typeof result, { text: string; fence: number; aborted: boolean }>>();
  holds<
    Equal<
      typeof greet.handler,
      Handler<{ name: string }, Promise<{ text: string; fence: number; aborted: boolean }>>
    >
  >();
  (await greet.handler({ name: 'Ada' }, testContext())).text.toUpperCase();
  // @ts-expect-error A field of the wrong type.
  await greet.run({ name: 1 }, testContext());
  // @ts-expect-error A field of the wrong type for the handler itself.
  await greet.handler({ name: 1 }, testContext());
  // @ts-expect-error A handler needs a context.
  await greet.run({ name: 'Ada' });
  // @ts-expect-error There is no such field of a context.
  testContext({ attempts: 2 });
  const dated = task(
    'dated',
    { input: z.object({ at: z.string().transform((text) => new Date(text)) }) },
    (input) => input,
  );
  // A run takes what a submission takes; the handler takes what the schema gives out.
  const seen = await dated.run({ at: '2026-01-01' }, testContext());
  holds<Equal<typeof seen, { at: string }>>();
  dated.handler({ at: new Date() }, testContext()).at.getFullYear();
  // @ts-expect-error The handler takes what the schema gives out.
  dated.handler({ at: '2026-01-01' }, testContext());
  const context = testContext();
  holds<Equal<(typeof context.logLines)[number]['level'], 'debug' | 'info' | 'warn' | 'error'>>();
}

export function middleware(): void {
  const timed: Middleware = async (ctx, next) => {
    holds<Equal<typeof ctx.payload, unknown>>();
    holds<Equal<typeof ctx.queue, string>>();
    const result = await next();
    holds<Equal<typeof result, unknown>>();
    ctx.log(`${ctx.jobId} ${ctx.attempt}`);
  };
  punctual.worker([greet], {
    middleware: [timed, (_ctx, next) => next(), async (ctx, next) => ctx.payload ?? (await next())],
    log: pino(),
    events: {
      onAttempt: ({ outcome, error }) => void (outcome === 'failed' && error?.code),
      onError: (thrown, { jobId, durationMs }) =>
        holds<Equal<[typeof thrown, string, number], [unknown, typeof jobId, typeof durationMs]>>(),
      onJobEnded: (_assignment, _outcome, error) => void error?.message,
    },
  });
  punctual.worker([greet], { log: false });
  punctual.worker([greet], { log: console });
  // @ts-expect-error A logger has four methods.
  punctual.worker([greet], { log: { info: () => undefined } });
  // @ts-expect-error It is a list.
  punctual.worker([greet], { middleware: timed });
  // @ts-expect-error The context has no such field.
  punctual.worker([greet], { middleware: [(ctx) => ctx.input] });
  // @ts-expect-error The rest takes no arguments.
  punctual.worker([greet], { middleware: [(ctx, next) => next(ctx)] });
}

export async function changesOfMany(): Promise<void> {
  const result = await punctual.cancelMany({ filter: { queue: 'mail', since: '2h', until: new Date() } });
  holds<Equal<typeof result.changed, number>>();
  holds<Equal<(typeof result.refused)[number]['code'], string>>();
  await punctual.retryMany(
    { ids: ['a'] },
    { onProgress: ({ matched }) => holds<Equal<typeof matched, number>>() },
  );
  await punctual.deleteMany({ all: true }, { dryRun: true, signal: AbortSignal.timeout(1_000) });
  // @ts-expect-error Nobody means all jobs by leaving something out.
  await punctual.deleteMany({});
  // @ts-expect-error All jobs are not false.
  await punctual.holdMany({ all: false });
  // @ts-expect-error One choice only.
  await punctual.holdMany({ ids: ['a'], filter: { queue: 'mail' } });
  // @ts-expect-error There is no such filter.
  await punctual.releaseMany({ filter: { colour: 'red' } });
}

export async function definitionsOfTasks(): Promise<void> {
  const made = await punctual.tasks.define(greet, { queue: 'mail', concurrencyKey: { path: 'name' } });
  holds<Equal<typeof made, TaskView>>();
  await punctual.tasks.define('by-name', { payloadSchema: { type: 'object' }, timeout: '30s' });
  await punctual.tasks.change('by-name', { timeout: null, priority: 9 });
  for await (const each of punctual.tasks.list({ pageSize: 10 })) holds<Equal<typeof each, TaskView>>();
  await punctual.tasks.delete('by-name');
  punctual.worker([greet], { publish: 'overwrite' });
  // @ts-expect-error There is no such field.
  await punctual.tasks.define('by-name', { runAt: '2026-01-01T00:00:00Z' });
  // @ts-expect-error A text that is no duration.
  await punctual.tasks.define('by-name', { timeout: 'soon' });
  // @ts-expect-error There is no such way to publish.
  punctual.worker([greet], { publish: 'always' });
}

interface Rendered {
  html: string;
  images: { url: string; width: number }[];
  note?: string;
}
const render = task(
  'render',
  async (input: { page: number; draft?: boolean }): Promise<Rendered> => ({
    html: `<p>${input.page}</p>`,
    images: [],
    ...(input.draft && { note: 'draft' }),
  }),
);
const upload = task('upload', async (input: { html: string; images: readonly { url: string }[] }) => ({
  ok: true,
  input,
}));
const count = task('count', async (input: { n: number }) => input.n);
const tidy = task('tidy', async () => 'tidy');

export async function workflows(): Promise<void> {
  const publish = workflow(
    'publish',
    { onFailure: 'stop', running: 'cancel' },
    (w, input: { page: number }) => {
      const a = w.run(render, input);
      const b = w.run(
        upload,
        { html: a.result.html, images: a.result.images },
        { retry: { maxAttempts: 2 } },
      );
      const c = w.run(
        count,
        { n: a.result.images[0]!.width },
        { name: 'width', after: [b], runIf: 'all-finished' },
      );
      const paid = w.wait<{ amount: number }>({ event: 'paid', timeout: '2d' }, { after: [c] });
      w.wait('30m', { after: [paid], name: 'pause' });
      w.run(count, { n: paid.result.amount });
      w.run(tidy, undefined, { after: [c] });
      w.run('elsewhere', { anything: [a.result, { deep: a.result.html }] });
      w.run(upload, a.result);
      // @ts-expect-error A result of another type.
      w.run(count, { n: a.result.html });
      w.run(upload, {
        html: a.result.html,
        // @ts-expect-error What is wrong is this field, not the whole input.
        images: a.result.html,
      });
      // @ts-expect-error The result has no such field.
      a.result.txt;
      // @ts-expect-error It may be missing; whoever knows better writes `!`.
      w.run(upload, { html: a.result.note, images: [] });
      w.run(upload, { html: a.result.note!, images: [{ url: a.result.html }] });
      // @ts-expect-error A field too few.
      w.run(upload, { html: 'x' });
      // @ts-expect-error No input where one is needed.
      w.run(upload);
      // @ts-expect-error A result is not known yet: nothing can be computed with it.
      w.run(count, { n: a.result.images[0]!.width + 1 });
      // @ts-expect-error There is no such option.
      w.run(tidy, undefined, { afer: [a] });
      // @ts-expect-error There is no such rule.
      w.run(tidy, undefined, { runIf: 'sometimes' });
      // @ts-expect-error Steps have no keys of their own.
      w.run(tidy, undefined, { key: 'k' });
      // @ts-expect-error Steps are named by their handles.
      w.run(tidy, undefined, { after: ['render'] });
      return b;
    },
  );
  const started = await punctual.start(publish, { page: 1 }, { key: 'publish-1' });
  const result = await started.result({ signal: AbortSignal.timeout(1_000) });
  holds<Equal<typeof result.ok, boolean>>();
  // @ts-expect-error The workflow needs an input.
  await punctual.start(publish);
  // @ts-expect-error Its input must fit.
  await punctual.start(publish, { page: 'one' });
  const defined = await (await punctual.startDefined(publish, { page: 1 }, { version: 2 })).result();
  holds<Equal<typeof defined.ok, boolean>>();
  // @ts-expect-error Its input must fit.
  await punctual.startDefined(publish, { page: 'one' });
  // @ts-expect-error The workflow needs an input.
  await punctual.startDefined(publish);
  const byName = await (await punctual.startDefined('publish', { page: 1 })).result();
  holds<Equal<typeof byName, undefined>>();
  // @ts-expect-error A name does not say which steps make the result, so nobody can claim its type.
  await punctual.startDefined<{ ok: boolean }>('publish');
  const several = workflow('several', (w) => ({ a: w.run(count, { n: 1 }), b: w.run(tidy) }));
  const results = await (await punctual.start(several)).result();
  holds<Equal<typeof results, { a: number; b: string }>>();
  const none = workflow('none', (w) => {
    w.run(tidy);
  });
  const nothing = await (await punctual.start(none, undefined, { key: 'k' })).result();
  holds<Equal<typeof nothing, undefined>>();
}

export async function batches(): Promise<void> {
  const gang = await punctual.batch([member(count, { n: 1 }), member(tidy), member('elsewhere', 1)], {
    onFailure: 'continue',
    startTimeout: '5m',
  });
  const results = await gang.results();
  holds<Equal<typeof results, [number, string, unknown]>>();
  // @ts-expect-error The input must fit.
  member(count, { n: 'one' });
  // @ts-expect-error A member has one attempt: retries belong to the batch.
  member(tidy, undefined, { retry: { maxAttempts: 2 } });
}
