import { trace } from '@opentelemetry/api';
import { BasicTracerProvider } from '@opentelemetry/sdk-trace-base';
import { afterEach, expect, it } from 'vitest';
import type { Assignment } from '../core/wire.js';
import { lookForTracing, submitTraced, traceAttempt } from './tracing.js';

const PARENT = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
const ASSIGNMENT = {
  ...{ jobId: 'j', task: 't', queue: 'q', attempt: 1, fence: 1, tenant: 'acme', traceparent: PARENT },
  dueAt: '2026-11-17T22:00:00.000Z',
} as unknown as Assignment;

/** An SDK whose processor of spans fails, as those that people write do. */
function registerFailing(when: 'onStart' | 'onEnd'): void {
  const processor = {
    ...{ onStart: () => undefined, onEnd: () => undefined },
    ...{ forceFlush: async () => undefined, shutdown: async () => undefined },
    [when]: () => {
      throw new Error('the processor is broken');
    },
  };
  trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [processor] }));
}

afterEach(() => trace.disable());

it.each(['onStart', 'onEnd'] as const)('an SDK that fails %s changes nothing but the spans', async (when) => {
  await lookForTracing();
  registerFailing(when);
  const send = async () => 'sent';
  expect(await submitTraced({}, send, () => ({}))).toBe('sent');
  const attempt = traceAttempt(ASSIGNMENT, Date.now());
  expect(attempt?.run(() => 'done')).toBe('done');
  attempt?.end('failed', { message: 'no' });
  const refuse = async () => {
    throw new Error('refused');
  };
  await expect(submitTraced({}, refuse, () => ({}))).rejects.toThrow('refused');
});
