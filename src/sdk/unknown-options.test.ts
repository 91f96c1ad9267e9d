import { describe, expect, it } from 'vitest';
import { MemoryScheduler } from '../../test/memory-scheduler.js';
import { JobHandle, Jobs } from '../client/job-handle.js';
import { ScheduleHandle } from '../client/schedule-handle.js';
import { schedule } from '../client/schedules-as-code.js';
import { task } from '../core/task.js';
import { startNode } from '../node/embed.js';
import type { Transport } from '../transport/transport.js';
import { connect } from './connect.js';
import { Punctual } from './punctual.js';
import { testContext } from './test-context.js';

/** As programs without types call us. */
type Untyped = Record<string, (...given: unknown[]) => unknown>;

let requests = 0;
const transport: Transport = {
  request: () => {
    requests += 1;
    return Promise.reject(new Error('nothing must be asked'));
  },
};
const punctual = new Punctual({
  transport,
  openGateway: () => new MemoryScheduler(),
  tenant: 'acme',
  close: async () => undefined,
});
const sdk = punctual as unknown as Untyped;
const tasks = punctual.tasks as unknown as Untyped;
const jobs = new Jobs(transport);
const job = new JobHandle('j', jobs) as unknown as Untyped;
const daily = new ScheduleHandle('daily', transport, (id) => new JobHandle(id, jobs)) as unknown as Untyped;
const untyped = { connect, startNode, task, schedule, testContext } as unknown as Untyped;
const noop = () => undefined;

/** What is called, how, and what the error says. */
const CALLS: readonly (readonly [string, () => unknown, string])[] = [
  ['connect()', () => untyped.connect!({ adress: 'x' }), 'It has url, apiKey'],
  ['connect()', () => untyped.connect!({ apikey: 'x' }), 'Did you mean apiKey?'],
  ['startNode()', () => untyped.startNode!({ databseUrl: 'x' }), 'Did you mean databaseUrl?'],
  ['startNode()', () => untyped.startNode!({ tenat: 'x' }), 'Did you mean tenant?'],
  ['task("x")', () => untyped.task!('x', { retries: 3 }, noop), 'Did you mean retry?'],
  [
    'retry of task("x")',
    () => untyped.task!('x', { retry: { maxAttempt: 3 } }, noop),
    'Did you mean maxAttempts?',
  ],
  [
    'retry.backoff of task("x")',
    () => untyped.task!('x', { retry: { backoff: { bse: '1s' } } }, noop),
    '/retry/backoff/bse',
  ],
  [
    'retry.onWorkerLost of submit()',
    () => sdk.submit!('x', {}, { retry: { onWorkerLost: { attempts: 3 } } }),
    'Did you mean maxAttempts?',
  ],
  ['retry of submitMany()', () => sdk.submitMany!('x', [1], { retry: { max: 1 } }), '/retry/max'],
  [
    'retry of submitMany()',
    () => sdk.submitMany!('x', [1, 2], () => ({ retry: { max: 1 } })),
    '/jobs/0/retry/max',
  ],
  ['dst of schedule()', () => untyped.schedule!('x', { every: '1h', dst: { gaps: 'skip' } }), '/dst/gaps'],
  [
    'catchUp of schedule()',
    () => sdk.schedule!('x', { every: '1h', catchUp: { withn: '1h' } }),
    'Did you mean within?',
  ],
  ['retry of tasks.define()', () => tasks.define!('x', { retry: { maxAttempt: 3 } }), '/retry/maxAttempt'],
  ['retry of tasks.change()', () => tasks.change!('x', { retry: { maxAttempt: 3 } }), '/retry/maxAttempt'],
  [
    'rate of limitQueue()',
    () => sdk.limitQueue!('x', { rate: { limit: 1, per: '1s', brust: 2 } }),
    'Did you mean burst?',
  ],
  ['rate of worker()', () => sdk.worker!([], { rate: { limit: 1, per: '1s', brust: 2 } }), '/rate/brust'],
  ['testContext()', () => untyped.testContext!({ atempt: 3 }), 'Did you mean attempt?'],
  ['schedule()', () => untyped.schedule!('x', { evry: '1h' }), 'Did you mean every?'],
  ['schedule()', () => sdk.schedule!('x', { every: '1h', timzone: 'UTC' }), 'Did you mean timezone?'],
  ['schedules()', () => sdk.schedules!([], { prun: true }), 'Did you mean prune?'],
  [
    'schedule()',
    () => sdk.schedules!([{ task: 'x', options: { cron: '@daily', jiter: '1s' } }]),
    'Did you mean jitter?',
  ],
  ['submit()', () => sdk.submit!('x', {}, { prioritty: 3 }), 'Did you mean priority?'],
  ['submitMany()', () => sdk.submitMany!('x', [1], { dely: '1s' }), 'Did you mean delay?'],
  [
    'submitMany()',
    () => sdk.submitMany!('x', [1, 2], (n: number) => (n === 2 ? { keyy: 'k' } : { key: 'k' })),
    '/jobs/1/keyy',
  ],
  ['occurrences()', () => sdk.occurrences!('x', { form: 'x' }), 'Did you mean from?'],
  ['list()', () => sdk.list!({ sate: 'failed' }), 'Did you mean state?'],
  ['logs()', () => sdk.logs!('j', { pagesize: 3 }), 'Did you mean pageSize?'],
  ['result()', () => sdk.result!('j', { timeout: '5s' }), 'It has signal.'],
  ['cancel()', () => sdk.cancel!('j', { txn: {} }), 'Did you mean tx?'],
  ['change()', () => sdk.change!('j', { runat: 'x' }), 'Did you mean runAt?'],
  ['redrive()', () => sdk.redrive!({ taks: 'x' }), 'Did you mean task?'],
  ['stats()', () => sdk.stats!({ histroy: '1h' }), 'Did you mean history?'],
  ['queues()', () => sdk.queues!({ limit: 3 }), 'It has pageSize, signal.'],
  ['events()', () => sdk.events!({ typ: ['job.*'] }), 'Did you mean types?'],
  ['cancelMany()', () => sdk.cancelMany!({ id: ['j'] }), 'Did you mean ids?'],
  ['filter of holdMany()', () => sdk.holdMany!({ filter: { queu: 'mail' } }), 'Did you mean queue?'],
  ['retryMany()', () => sdk.retryMany!({ all: true }, { dryrun: true }), 'Did you mean dryRun?'],
  ['limitQueue()', () => sdk.limitQueue!('x', { concurency: 3 }), 'Did you mean concurrency?'],
  ['worker()', () => sdk.worker!([], { slot: 2 }), 'Did you mean slots?'],
  ['events of worker()', () => sdk.worker!([], { events: { onEror: noop } }), 'Did you mean onError?'],
  ['tasks.define()', () => tasks.define!('x', { retries: 3 }), 'Did you mean retry?'],
  ['tasks.change()', () => tasks.change!('x', { timout: '1s' }), 'Did you mean timeout?'],
  ['tasks.list()', () => tasks.list!({ pageSiz: 3 }), 'Did you mean pageSize?'],
  ['result()', () => job.result!({ timeout: '5s' }), 'It has signal.'],
  ['change()', () => job.change!({ prio: 3 }), 'It has runAt, priority, payload.'],
  ['logs()', () => job.logs!({ limit: 3 }), 'It has pageSize, signal.'],
  ['occurrences()', () => daily.occurrences!({ limt: 3 }), 'Did you mean limit?'],
  ['backfill()', () => daily.backfill!({ from: 'x', to: 'y', dryrun: true }), 'Did you mean dryRun?'],
];

describe('what is no task', () => {
  it.each([
    ['submit()', () => sdk.submit!(undefined, {}), 'made with task(), or the name of one; it is undefined'],
    ['submitMany()', () => sdk.submitMany!(null, [1]), 'it is null'],
    ['schedule()', () => sdk.schedule!(noop, { every: '1h' }), 'it is function'],
    ['worker(), without a list', () => sdk.worker!(task('x', noop)), 'such as worker([mail])'],
    ['worker(), in the list', () => sdk.worker!([task('x', noop), undefined]), 'The item 1'],
  ])('is refused by %s', async (_, call, message) => {
    await expect((async () => call())()).rejects.toThrow(message);
    await expect((async () => call())()).rejects.toHaveProperty('code');
  });
});

describe('an option that does not exist', () => {
  it.each(CALLS)('is refused by %s before anything is done', async (of, call, advice) => {
    requests = 0;
    // Some functions throw and some reject; both end the program that does not expect it.
    const refused = (async () => call())();
    await expect(refused).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
      message: expect.stringContaining(`${of} has no such option`),
    });
    await expect(refused).rejects.toThrow(advice);
    expect(requests).toBe(0);
  });

  it('may be a field of an object with hooks, if that has a class', () => {
    class Hooks {
      seen = 0;
      onAttempt(): void {
        this.seen += 1;
      }
    }
    expect(() => punctual.worker([], { log: false, events: new Hooks() })).not.toThrow();
  });
});
