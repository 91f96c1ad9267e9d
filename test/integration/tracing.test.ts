import { context, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PermanentError, task } from '../../src/core/task.js';
import { TestNode } from '../node-for-tests.js';
import { withClient } from '../postgres-client.js';
import { ProtocolWorker } from '../protocol-worker.js';

/** One node for all; each test has a tenant of its own. */
let shared: TestNode;

beforeAll(async () => {
  shared = await TestNode.start();
});
afterAll(() => shared.stop());

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const PARENT = `00-${TRACE}-b7ad6b7169203331-01`;

const QUICK = { maxAttempts: 2, backoff: { base: '1ms', jitter: 0 } } as const;

describe('without an SDK of OpenTelemetry', () => {
  it('the context of a submission is handed over with every attempt, and nothing else is', async () => {
    const node = shared.newTenant();
    const worker = await ProtocolWorker.register(node);
    const submit = (path: string, body: unknown, traceparent: string) =>
      node.get('POST', path, { body, headers: { traceparent } });
    await submit('/v1/jobs', { task: 'work', retry: QUICK }, PARENT);
    const first = await worker.claimOne();
    expect(first).toMatchObject({ attempt: 1, traceparent: PARENT });
    expect(Math.abs(Date.parse(first.dueAt!) - Date.now())).toBeLessThan(60_000);
    const { jobId, fence } = first;
    await worker.report({ jobId, fence, outcome: 'failed', error: { message: 'again' } });
    expect(await worker.claimOne()).toMatchObject({ jobId, attempt: 2, traceparent: PARENT });
    await submit('/v1/jobs/bulk', { jobs: [{ task: 'work' }, { task: 'work', hold: false }] }, PARENT);
    for (const each of [await worker.claimOne(), await worker.claimOne()])
      expect(each.traceparent).toBe(PARENT);
    await submit('/v1/jobs', { task: 'work' }, '00-zz-zz-zz');
    const plain = await worker.claimOne();
    expect(plain).not.toHaveProperty('traceparent');
    expect(plain).not.toHaveProperty('dueAt');
  });

  it('it is kept while a job is on hold, and after its end and a retry', async () => {
    const node = shared.newTenant();
    const worker = await ProtocolWorker.register(node);
    const body = { task: 'work', hold: true, retry: { maxAttempts: 1 } };
    const { id } = await node.get<{ id: string }>('POST', '/v1/jobs', {
      body,
      headers: { traceparent: PARENT },
    });
    await node.get('POST', `/v1/jobs/${id}/release`);
    expect(await worker.claimOne()).toMatchObject({ traceparent: PARENT });
    await worker.report({ jobId: id, fence: 1, outcome: 'failed', error: { message: 'no' } });
    await node.get('POST', `/v1/jobs/${id}/retry`);
    expect(await worker.claimOne()).toMatchObject({ jobId: id, fence: 2, traceparent: PARENT });
  });

  it('handlers have it, and what they submit carries it on', async () => {
    const node = shared.newTenant();
    const seen: (string | undefined)[] = [];
    const child = task('child', (_: null, ctx) => {
      seen.push(ctx.traceparent);
    });
    const parent = task('parent', async (_: null, ctx) => {
      seen.push(ctx.traceparent);
      await (await punctual.submit(child, null)).result();
      const [one] = await punctual.submitMany(child, [null]);
      await one!.result();
    });
    const punctual = node.connect();
    await shared.work([parent, child], { tenant: node.tenant });
    const submit = (headers: Record<string, string>) =>
      node.get<{ id: string }>('POST', '/v1/jobs', { body: { task: 'parent' }, headers });
    const { id } = await submit({ traceparent: PARENT });
    await node.get('GET', `/v1/jobs/${id}?wait=20s`);
    expect(seen).toEqual([PARENT, PARENT, PARENT]);
    seen.length = 0;
    const plain = await submit({});
    await node.get('GET', `/v1/jobs/${plain.id}?wait=20s`);
    expect(seen).toEqual([undefined, undefined, undefined]);
  });

  it('jobs without a trace store nothing', async () => {
    const node = shared.newTenant();
    await node.submit({ task: 'nobody' });
    const { rows } = await withClient(shared.database.url, (client) =>
      client.query('SELECT traceparent FROM punctual.jobs WHERE tenant = $1', [node.tenant]),
    );
    expect(rows).toEqual([{ traceparent: null }]);
  });
});

describe('with an SDK of OpenTelemetry', () => {
  const exporter = new InMemorySpanExporter();
  const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });

  beforeAll(() => {
    context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
    trace.setGlobalTracerProvider(provider);
  });
  afterAll(async () => {
    trace.disable();
    context.disable();
    await provider.shutdown();
  });

  /** The finished spans of a trace; an attempt's ends after its result was reported. */
  async function spansOf(traceId: string, count: number): Promise<ReadableSpan[]> {
    const ofTrace = () =>
      exporter.getFinishedSpans().filter((span) => span.spanContext().traceId === traceId);
    await expect.poll(() => ofTrace().map(({ name }) => name)).toHaveLength(count);
    return ofTrace();
  }

  const idOf = (span: ReadableSpan) => span.spanContext().spanId;
  const msOf = ([seconds, nanos]: readonly [number, number]) => seconds * 1_000 + nanos / 1e6;

  it('submission, wait and attempts are spans of one trace, through what handlers submit', async () => {
    const node = shared.newTenant();
    const inner = task('inner', () => 'done');
    const outer = task('outer', { retry: QUICK }, async (_: null, ctx) => {
      if (ctx.attempt === 1) throw Object.assign(new Error('not yet'), { code: 'EARLY' });
      await (await punctual.submit(inner, undefined)).result();
    });
    const punctual = node.connect();
    await shared.work([outer, inner], { tenant: node.tenant });
    const root = trace.getTracer('test').startSpan('request');
    const job = await context.with(trace.setSpan(context.active(), root), () => punctual.submit(outer, null));
    await job.result();
    root.end();

    const spans = await spansOf(root.spanContext().traceId, 9);
    const named = (name: string) => spans.filter((span) => span.name === name);
    const about = (name: string, of: string) =>
      named(name).filter(({ attributes }) => attributes['punctual.task'] === of);
    const [submitted] = about('submit', 'outer');
    expect(submitted).toMatchObject({
      kind: SpanKind.PRODUCER,
      parentSpanContext: { spanId: root.spanContext().spanId },
      attributes: { 'punctual.job.id': job.id, 'punctual.queue': 'default', 'punctual.tenant': node.tenant },
    });
    const attempts = about('attempt', 'outer');
    expect(attempts).toHaveLength(2);
    expect(attempts).toMatchObject([
      {
        kind: SpanKind.CONSUMER,
        parentSpanContext: { spanId: idOf(submitted!) },
        attributes: {
          'punctual.job.id': job.id,
          'punctual.attempt': 1,
          'punctual.fence': 1,
          'punctual.tenant': node.tenant,
          'punctual.outcome': 'failed',
        },
        status: { code: SpanStatusCode.ERROR, message: 'not yet' },
        events: [{ name: 'exception', attributes: { 'exception.message': 'not yet' } }],
      },
      {
        attributes: { 'punctual.attempt': 2, 'punctual.outcome': 'succeeded' },
        status: { code: SpanStatusCode.UNSET },
      },
    ]);
    for (const [i, wait] of about('wait', 'outer').entries()) {
      expect(wait.parentSpanContext?.spanId).toBe(idOf(submitted!));
      expect(msOf(wait.endTime)).toBe(msOf(attempts[i]!.startTime));
      expect(msOf(wait.startTime)).toBeLessThanOrEqual(msOf(wait.endTime));
    }
    // The handler's submission is a child of its attempt.
    expect(about('submit', 'inner')[0]!.parentSpanContext?.spanId).toBe(idOf(attempts[1]!));
    expect(about('attempt', 'inner')[0]!.parentSpanContext?.spanId).toBe(idOf(about('submit', 'inner')[0]!));
  });

  it('a submission that is refused is a span with its error', async () => {
    const punctual = shared.newTenant().connect();
    await expect(punctual.submit('no name', null)).rejects.toThrow();
    const failed = exporter
      .getFinishedSpans()
      .find(({ attributes }) => attributes['punctual.task'] === 'no name');
    expect(failed).toMatchObject({ name: 'submit', status: { code: SpanStatusCode.ERROR } });
    expect(failed!.events).toHaveLength(1);
  });

  it('an attempt that never settles ends with its timeout', async () => {
    const node = shared.newTenant();
    const stuck = task(
      'stuck',
      { timeout: '50ms', retry: { maxAttempts: 1 } },
      () => new Promise<void>(() => {}),
    );
    const wrong = task('wrong', { retry: { maxAttempts: 1 } }, () => {
      throw new PermanentError('never', { code: 'NEVER' });
    });
    await shared.work([stuck, wrong], { tenant: node.tenant });
    const punctual = node.connect();
    for (const each of [stuck, wrong]) {
      const job = await punctual.submit(each as never, null as never);
      await expect(job.result()).rejects.toThrow();
    }
    const outcomes = () =>
      exporter
        .getFinishedSpans()
        .filter(({ name, attributes }) => name === 'attempt' && attributes['punctual.tenant'] === node.tenant)
        .map(({ attributes }) => attributes['punctual.outcome']);
    await expect.poll(outcomes).toEqual(['timed-out', 'failed']);
  });
});
