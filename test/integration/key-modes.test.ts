import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { SubmittedJob } from '../../src/core/job.js';
import { KEY_MODES, type KeyMode } from '../../src/core/keys.js';
import type { LeaderState } from '../../src/dispatch/leader-state.js';
import { DirectTransport } from '../../src/node/direct-transport.js';
import { createTestDatabase, type TestDatabase } from '../database.js';
import { type Answer, TestNode, TestTenant } from '../node-for-tests.js';
import { ProtocolWorker } from '../protocol-worker.js';
import { TestClock } from '../test-clock.js';

/** Two nodes on one database, one of them the leader, with a clock that stands still between the steps of a test. */
let database: TestDatabase;
const nodes: TestNode[] = [];
const clock = new TestClock();
const SETTINGS = { workerTimeout: '2d', heartbeatInterval: '100ms' };
const WINDOW_MS = 60_000;
let tenants = 0;

beforeAll(async () => {
  database = await createTestDatabase();
  for (let i = 0; i < 2; i++) nodes.push(await TestNode.start({ database, clock, settings: SETTINGS }));
});
afterAll(async () => {
  for (const node of nodes) await node.stop();
  await database.drop();
});

/** The same tenant as both nodes see it. */
function newTenant(): readonly [TestTenant, TestTenant] {
  tenants += 1;
  return [new TestTenant(nodes[0]!, `keys-${tenants}`), new TestTenant(nodes[1]!, `keys-${tenants}`)];
}

function submission(mode: KeyMode, payload: unknown): Record<string, unknown> {
  const window = mode === 'debounce' || mode === 'throttle' ? { keyWindow: '1m' } : {};
  return { task: 'work', key: 'k', keyMode: mode, payload, retry: { maxAttempts: 1 }, ...window };
}

interface ModelJob {
  readonly id: string;
  readonly createdAt: number;
  payload: unknown;
  runAt: number;
  state: 'waiting' | 'running' | 'ended';
}

type Step =
  | { readonly does: 'submit'; readonly mode: KeyMode; readonly at: 0 | 1; readonly times: number }
  | { readonly does: 'wait'; readonly ms: number }
  | { readonly does: 'start' | 'succeed' | 'cancel' };

/** The steps of a history in which every submission has one of the modes. */
function steps(...modes: readonly KeyMode[]) {
  const at = fc.constantFrom(0 as const, 1 as const);
  const submit = fc.record({
    ...{ does: fc.constant('submit' as const), mode: fc.constantFrom(...modes), at },
    times: fc.constantFrom(1, 1, 1, 4),
  });
  const wait = fc.record({ does: fc.constant('wait' as const), ms: fc.constantFrom(1_000, 59_000, 61_000) });
  const other = fc.record({ does: fc.constantFrom('start' as const, 'succeed' as const, 'cancel' as const) });
  return fc.array(fc.oneof({ arbitrary: submit, weight: 3 }, wait, other), { minLength: 4, maxLength: 12 });
}

/** One key, its jobs as they must be, and the real ones beside them. */
class KeyModel {
  private readonly jobs = new Map<string, ModelJob>();
  private holder: ModelJob | undefined;
  private payload = 0;

  private constructor(
    private readonly tenant: readonly [TestTenant, TestTenant],
    private readonly worker: ProtocolWorker,
  ) {}

  static async open(): Promise<KeyModel> {
    const tenant = newTenant();
    return new KeyModel(tenant, await ProtocolWorker.register(tenant[0]));
  }

  async run(step: Step): Promise<void> {
    if (step.does === 'submit') await this.submit(step.mode, step.at, step.times);
    else if (step.does === 'wait') clock.advance(step.ms);
    else if (step.does === 'start') await this.start();
    else if (step.does === 'succeed') await this.succeed();
    else await this.cancel();
  }

  /** Several at once go to both nodes. */
  private async submit(mode: KeyMode, at: 0 | 1, times: number): Promise<void> {
    const first = this.payload;
    this.payload += times;
    const answers = await Promise.all(
      Array.from({ length: times }, (_, i) =>
        this.tenant[((at + i) % 2) as 0 | 1].ask<SubmittedJob>('POST', '/v1/jobs', {
          body: submission(mode, first + i),
        }),
      ),
    );
    const before = this.holder;
    const expected = this.expected(mode);
    const ids = new Set(answers.map(({ body }) => body.id));
    expect(ids.size, JSON.stringify(answers.map(({ body }) => body))).toBe(1);
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(expected === 'new' ? 1 : 0);
    for (const answer of answers) this.check(answer, mode, expected);
    const [id] = ids as Set<string> & Iterable<string>;
    if (expected === 'new') this.take(id!, answers, mode);
    else {
      expect(id).toBe(before!.id);
      if (expected === 'replaced') {
        const job = await this.tenant[at].job(id!);
        expect(answers.map(({ body }) => body.payload)).toContain(job.payload);
        before!.payload = job.payload;
        before!.runAt = dueAt(mode);
      }
    }
    await this.compare();
  }

  private expected(mode: KeyMode): 'new' | 'replaced' | 'kept' {
    const { holder } = this;
    if (!holder) return 'new';
    const waits = holder.state === 'waiting';
    if (mode === 'replace') return waits ? 'replaced' : 'kept';
    if (mode === 'debounce') return waits ? 'replaced' : 'new';
    if (mode === 'throttle') return clock.now() - holder.createdAt < WINDOW_MS ? 'kept' : 'new';
    if (mode === 'reuse-when-ended') return holder.state === 'ended' ? 'new' : 'kept';
    return 'kept';
  }

  private check({ status, body }: Answer<SubmittedJob>, mode: KeyMode, expected: string): void {
    expect(body.repeated).toBe(status === 200);
    const mayReplace = mode === 'replace' || mode === 'debounce';
    expect(body.replaced).toBe(status === 200 && expected !== 'kept' && mayReplace);
    if (status === 200) expect(body.differs).toContain('payload');
  }

  private take(id: string, answers: readonly Answer<SubmittedJob>[], mode: KeyMode): void {
    expect(this.jobs.has(id)).toBe(false);
    const created = answers.find(({ status }) => status === 201)!.body;
    const job: ModelJob = {
      ...{ id, createdAt: clock.now(), payload: created.payload, runAt: dueAt(mode) },
      state: 'waiting',
    };
    this.jobs.set(id, job);
    this.holder = job;
    // Those that came at the same time may have replaced it.
    if (answers.length > 1 && answers.some(({ body }) => body.replaced)) job.payload = undefined;
  }

  /** What a worker gets must be due, must not have started before, and must have the newest values. */
  private async start(): Promise<void> {
    const due = [...this.jobs.values()].filter((job) => job.state === 'waiting' && job.runAt <= clock.now());
    if (due.length === 0) return;
    const { jobId, payload } = await this.worker.claimOne();
    const job = due.find(({ id }) => id === jobId);
    expect(job, `${jobId} must not start`).toBeDefined();
    expect(payload).toEqual(job!.payload);
    job!.state = 'running';
  }

  private async succeed(): Promise<void> {
    const [held] = this.worker.held.values();
    if (!held) return;
    await this.worker.succeed(held);
    this.jobs.get(held.jobId)!.state = 'ended';
  }

  private async cancel(): Promise<void> {
    if (this.holder?.state !== 'waiting') return;
    await this.tenant[1].get('POST', `/v1/jobs/${this.holder.id}/cancel`);
    this.holder.state = 'ended';
  }

  /** The job of the key, as any node tells it. */
  private async compare(): Promise<void> {
    const holder = this.holder!;
    for (const tenant of this.tenant) {
      const { data } = await tenant.get<{ data: SubmittedJob[] }>('GET', '/v1/jobs?key=k');
      expect(data).toHaveLength(1);
      holder.payload ??= data[0]!.payload;
      expect(data[0]).toMatchObject({ id: holder.id, payload: holder.payload });
      if (holder.state === 'waiting') expect(Date.parse(data[0]!.runAt)).toBe(holder.runAt);
    }
  }
}

function dueAt(mode: KeyMode): number {
  return clock.now() + (mode === 'debounce' ? WINDOW_MS : 0);
}

describe('whatever happens to a key at two nodes, its job is the one of the model', () => {
  it.each([...KEY_MODES.map((mode) => [mode, [mode]] as const), ['modes in turn', KEY_MODES] as const])(
    'with the mode %s',
    async (_, modes) => {
      await fc.assert(
        fc.asyncProperty(steps(...modes), async (history) => {
          const model = await KeyModel.open();
          for (const step of history) await model.run(step);
        }),
        { numRuns: 4, endOnFailure: true },
      );
    },
  );
});

it('a replaced job that failed and is sent round again starts again', async () => {
  const [, node] = newTenant();
  const worker = await ProtocolWorker.register(node);
  const { id } = await node.submit({ ...submission('keep', 'first'), delay: '1h' });
  await node.submit({ ...submission('replace', 'second'), priority: 8 });
  const first = await worker.claimOne();
  expect(first).toMatchObject({ jobId: id, payload: 'second', attempt: 1 });
  await worker.fail(first);
  expect(await node.job(id)).toMatchObject({ state: 'failed', priority: 8 });
  await node.get('POST', `/v1/jobs/${id}/retry`);
  expect(await worker.claimOne()).toMatchObject({ jobId: id, payload: 'second', attempt: 2 });
});

it('a job that was cancelled before its start and sent round again can be replaced, and starts', async () => {
  const [, node] = newTenant();
  const worker = await ProtocolWorker.register(node);
  const { id } = await node.submit({ ...submission('keep', 'first'), delay: '1h' });
  await node.get('POST', `/v1/jobs/${id}/cancel`);
  const kept = await node.ask('POST', '/v1/jobs', { body: submission('replace', 'second') });
  expect(kept).toMatchObject({ status: 200, body: { id, state: 'cancelled', replaced: false } });
  await node.get('POST', `/v1/jobs/${id}/retry`);
  // The worker has not asked yet, so the job waits in the live table.
  await node.submit(submission('replace', 'third'));
  expect(await worker.claimOne()).toMatchObject({ jobId: id, payload: 'third', attempt: 1 });
});

it('a replacement takes everything that it says, and moves the job to another queue and back into the far future', async () => {
  const [, node] = newTenant();
  const worker = await ProtocolWorker.register(node, { queues: ['other'], labels: { region: 'eu' } });
  const { id, createdAt } = await node.submit({ task: 'first', key: 'k', hold: true });
  clock.advance(1_000);
  const said = {
    ...{ task: 'work', payload: [1], queue: 'other', priority: 9, timeout: '3m', requires: { region: 'eu' } },
    ...{ concurrencyKey: 'c', delivery: 'at-most-once', retry: { maxAttempts: 1 } },
  };
  const replaced = await node.ask<SubmittedJob>('POST', '/v1/jobs', {
    body: { ...said, key: 'k', keyMode: 'replace' },
  });
  const { retry: _, ...fields } = said;
  expect(replaced.body).toMatchObject({ ...fields, id, createdAt, hold: true, replaced: true });
  expect(replaced.body.differs).toEqual([
    ...['task', 'payload', 'queue', 'priority', 'retry', 'timeout', 'delivery', 'concurrencyKey'],
    ...['requires', 'hold'],
  ]);
  await node.get('POST', `/v1/jobs/${id}/release`);
  await node.submit({ ...said, key: 'k', keyMode: 'replace', delay: '2h' });
  await worker.claimNothing();
  clock.advance(2 * 3_600_000);
  expect(await worker.claimOne()).toMatchObject({ jobId: id, payload: [1] });
});

it('a replaced job waits in the memory of the leader when its replacement is answered', async () => {
  const [node] = newTenant();
  const leader = nodes[0]!.node.context.shardOf(node.tenant).currentLeader() as unknown as {
    state: LeaderState;
  };
  const waiting = () => leader.state.backlog.size;
  const before = waiting();
  await node.submit({ ...submission('replace', 'new'), delay: '5m' });
  // A new job comes to its memory by a hint, which nobody waits for.
  await expect.poll(waiting).toBe(before + 1);
  for (const delay of ['6m', '7m']) {
    await node.submit({ ...submission('replace', delay), delay });
    expect(waiting()).toBe(before + 1);
  }
  await node.submit({ ...submission('replace', 'far'), delay: '1h' });
  expect(waiting()).toBe(before);
});

it('a replaced job that is not started before its new startBefore fails', async () => {
  const [, node] = newTenant();
  const { id } = await node.submit({ ...submission('keep', 1), delay: '1h' });
  const startBefore = new Date(clock.now() + 5_000).toISOString();
  await node.submit({ ...submission('replace', 2), startBefore });
  clock.advance(5_001);
  // The timer of the new moment ends it; the next look at everything that expires may be half a minute away.
  expect(await node.ended(id)).toMatchObject({ state: 'failed', error: { code: 'EXPIRED' }, payload: 2 });
}, 20_000);

it('a bulk with the same key several times counts in its order', async () => {
  const [, node] = newTenant();
  const bulk = (jobs: readonly unknown[]) =>
    node.ask<{ ids: string[]; repetitions: unknown[] }>('POST', '/v1/jobs/bulk', { body: { jobs } });
  const { id } = await node.submit({ ...submission('keep', 'old'), delay: '1h' });
  const other = (n: number, mode: KeyMode) => ({ ...submission(mode, n), key: 'other', hold: true });
  const { status, body } = await bulk([
    submission('keep', 'ignored'),
    other(1, 'replace'),
    { ...submission('replace', 'taken'), delay: '1h' },
    other(2, 'replace'),
    other(3, 'keep'),
    other(4, 'throttle'),
  ]);
  expect(status).toBe(201);
  const [, made] = body.ids;
  expect(body.ids).toEqual([id, made, id, made, made, made]);
  expect(body.repetitions).toEqual([
    { index: 0, replaced: false, differs: ['payload', 'runAt'] },
    { index: 2, replaced: true, differs: ['payload'] },
    { index: 3, replaced: true, differs: ['payload'] },
    { index: 4, replaced: false, differs: ['payload'] },
    { index: 5, replaced: false, differs: ['payload'] },
  ]);
  expect(await node.job(id)).toMatchObject({ payload: 'taken' });
  expect(await node.job(made!)).toMatchObject({ payload: 2, hold: true });
});

it.each(['default', 'other'])(
  'a job that is replaced in its own bulk starts as the last one says, in the queue %s',
  async (queue) => {
    const [node] = newTenant();
    const worker = await ProtocolWorker.register(node, { queues: ['default', 'other'] });
    const { ids } = await node.get<{ ids: string[] }>('POST', '/v1/jobs/bulk', {
      body: {
        jobs: [
          { ...submission('replace', 'first'), timeout: '1m' },
          { ...submission('replace', 'last'), queue, timeout: '2m' },
        ],
      },
    });
    expect(await worker.claimOne()).toMatchObject({
      jobId: ids[0],
      payload: 'last',
      queue,
      timeoutMs: 120_000,
    });
    await worker.claimNothing();
  },
);

it('bulks that replace the same jobs in opposite order neither wait for each other nor mix', async () => {
  const [left, right] = newTenant();
  const keys = Array.from({ length: 20 }, (_, i) => `k${i}`);
  const bulk = (node: TestTenant, order: readonly string[], payload: number) =>
    node.get<{ ids: string[] }>('POST', '/v1/jobs/bulk', {
      body: { jobs: order.map((key) => ({ ...submission('replace', payload), key, delay: '1h' })) },
    });
  const { ids } = await bulk(left, keys, 0);
  await Promise.all([1, 2, 3, 4].map((n) => bulk(n % 2 ? left : right, n % 2 ? keys : keys.toReversed(), n)));
  const payloads = await Promise.all(ids.map(async (id) => (await left.job(id)).payload));
  expect(new Set(payloads).size).toBe(1);
  expect(payloads[0]).not.toBe(0);
});

it('a program with a node inside replaces jobs, also while another node leads', async () => {
  for (const [i, node] of newTenant().entries()) {
    const caller = { tenant: node.tenant, actor: 'embedded', operator: true };
    const transport = new DirectTransport(nodes[i]!.node, caller);
    const body = { ...submission('replace', i), delay: '1h' };
    const { id, replaced } = await transport.request<SubmittedJob>('POST', '/v1/jobs', { body });
    const bulk = await transport.request('POST', '/v1/jobs/bulk', { body: { jobs: [body] } });
    expect(replaced).toBe(i === 1);
    expect(bulk).toEqual({ ids: [id], repetitions: [{ index: 0, replaced: true, differs: [] }] });
    expect(await node.job(id)).toMatchObject({ payload: i });
  }
});

it('what was answered holds when the leader goes away under a stream of replacements', async () => {
  const [, node] = newTenant();
  const punctual = node.connect();
  const options = { key: 'k', keyMode: 'replace', delay: '1h' } as const;
  const { id } = await punctual.submit('work', 0, options);
  let answered = 0;
  const stopped = nodes[0]!.stop();
  let isStopped = false;
  void stopped.then(() => {
    isStopped = true;
  });
  for (let n = 1; !isStopped || n < 20; n++) {
    const handle = await punctual.submit('work', n, options);
    expect(handle).toMatchObject({ id, repetition: { repeated: true, replaced: true } });
    answered = n;
  }
  await stopped;
  expect(await node.job(id)).toMatchObject({ payload: answered });
});
