import { AsyncLocalStorage } from 'node:async_hooks';
import type * as OpenTelemetry from '@opentelemetry/api';
import type { JobError } from '../core/job.js';
import { TRACEPARENT } from '../core/trace-context.js';
import { VERSION } from '../core/version.js';
import type { Assignment } from '../core/wire.js';

/**
 * Traces: the context travels from the submission to the handler and to what the handler submits, with or without
 * OpenTelemetry. If the program has registered an SDK of it, there are also spans: `submit`, `wait` and `attempt`. Only the
 * API package is used, and only if it is installed.
 */

type Api = typeof OpenTelemetry;

/** The `traceparent` of the attempt whose handler runs. */
const handed = new AsyncLocalStorage<string>();

/** The API of OpenTelemetry; null if it is not installed, undefined before it was looked for. */
let found: { readonly api: Api; readonly noop: OpenTelemetry.TracerProvider } | null | undefined;
let looking: Promise<void> | undefined;

/** Looks for OpenTelemetry, once. */
export function lookForTracing(): Promise<void> {
  looking ??= import('@opentelemetry/api').then(
    (api) => {
      found = { api, noop: new api.ProxyTracerProvider().getDelegate() };
    },
    () => {
      found = null;
    },
  );
  return looking;
}

/** The API if an SDK is registered. Another copy of the API may have registered it: then the provider is of that copy. */
function registered(): Api | null {
  if (!found) return null;
  const { api, noop } = found;
  const provider = api.trace.getTracerProvider();
  return provider instanceof api.ProxyTracerProvider && provider.getDelegate() === noop ? null : api;
}

/** What a span says about a job. */
export type Attributes = Readonly<Record<string, string | number>>;

/** Sends a submission: as a part of the trace that this code runs in, and inside a span `submit`. */
export async function submitTraced<T>(
  attributes: Attributes,
  send: (headers: Readonly<Record<string, string>> | undefined) => Promise<T>,
  idsOf: (answer: T) => Attributes,
): Promise<T> {
  if (found === undefined) await lookForTracing();
  const api = registered();
  const own = handed.getStore();
  const begun = api && unlessBroken(() => beginSubmit(api, own, attributes));
  if (!api || !begun) return send(own === undefined ? undefined : { [TRACEPARENT]: own });
  const { span, parent } = begun;
  try {
    const answer = await api.context.with(api.trace.setSpan(parent, span), () =>
      send({ [TRACEPARENT]: traceparentOf(span) }),
    );
    unlessBroken(() => span.setAttributes(idsOf(answer)));
    return answer;
  } catch (error) {
    unlessBroken(() => {
      span.recordException(error as Error);
      span.setStatus({ code: api.SpanStatusCode.ERROR });
    });
    throw error;
  } finally {
    unlessBroken(() => span.end());
  }
}

function beginSubmit(api: Api, own: string | undefined, attributes: Attributes) {
  const active = api.context.active();
  const parent = api.trace.getSpan(active) ? active : contextOf(api, own);
  const options = { kind: api.SpanKind.PRODUCER, attributes };
  return { parent, span: tracerOf(api).startSpan('submit', options, parent) };
}

/** What an SDK or its processors do wrong costs spans, and never the work that they are about. */
function unlessBroken<T>(record: () => T): T | null {
  try {
    return record();
  } catch {
    return null;
  }
}

/** The trace of one attempt. */
export interface AttemptTrace {
  /** The context of what the handler does. */
  readonly traceparent: string;
  /** Runs the handler in the context. */
  run<T>(handler: () => T): T;
  /** Ends the span. */
  end(outcome: string, error: JobError | null): void;
}

/** Begins the trace of an attempt that starts now; null if the job is part of none and nobody records spans. */
export function traceAttempt(assignment: Assignment, now: number): AttemptTrace | null {
  const { traceparent } = assignment;
  const api = registered();
  const trace = api && unlessBroken(() => new SpanTrace(api, assignment, now));
  if (trace) return trace;
  return traceparent === undefined ? null : new HandedTrace(traceparent);
}

/** Without an SDK the context is handed on as it came. */
class HandedTrace implements AttemptTrace {
  constructor(readonly traceparent: string) {}

  run<T>(handler: () => T): T {
    return handed.run(this.traceparent, handler);
  }

  end(): void {}
}

class SpanTrace implements AttemptTrace {
  readonly traceparent: string;
  readonly #api: Api;
  readonly #context: OpenTelemetry.Context;
  readonly #span: OpenTelemetry.Span;

  constructor(api: Api, assignment: Assignment, now: number) {
    const { dueAt } = assignment;
    const parent = contextOf(api, assignment.traceparent);
    const attributes = attributesOf(assignment);
    const startTime = new Date(now);
    if (dueAt !== undefined) {
      const due = new Date(Math.min(Date.parse(dueAt), now));
      tracerOf(api).startSpan('wait', { attributes, startTime: due }, parent).end(startTime);
    }
    const options = { kind: api.SpanKind.CONSUMER, attributes, startTime };
    this.#api = api;
    this.#span = tracerOf(api).startSpan('attempt', options, parent);
    this.#context = api.trace.setSpan(parent, this.#span);
    this.traceparent = traceparentOf(this.#span);
  }

  run<T>(handler: () => T): T {
    // Also for SDKs without a manager of contexts.
    return handed.run(this.traceparent, () => this.#api.context.with(this.#context, handler));
  }

  end(outcome: string, error: JobError | null): void {
    unlessBroken(() => this.#end(outcome, error));
  }

  #end(outcome: string, error: JobError | null): void {
    this.#span.setAttribute('punctual.outcome', outcome);
    if (error !== null) {
      const { message, code, stack } = error;
      this.#span.recordException({
        message,
        ...(code !== undefined && { code }),
        ...(stack !== undefined && { stack }),
      });
      this.#span.setStatus({ code: this.#api.SpanStatusCode.ERROR, message });
    }
    this.#span.end();
  }
}

function attributesOf({ jobId, task, queue, attempt, fence, tenant }: Assignment): Attributes {
  return {
    'punctual.job.id': jobId,
    ...(task !== null && { 'punctual.task': task }),
    'punctual.queue': queue,
    'punctual.attempt': attempt,
    'punctual.fence': fence,
    'punctual.tenant': tenant,
  };
}

function tracerOf(api: Api): OpenTelemetry.Tracer {
  return api.trace.getTracer('punctual', VERSION);
}

/** A context whose span is the one that a `traceparent` names; without one, the beginning of a new trace. */
function contextOf(api: Api, traceparent: string | undefined): OpenTelemetry.Context {
  if (traceparent === undefined) return api.ROOT_CONTEXT;
  const [, traceId, spanId, flags] = traceparent.split('-');
  return api.trace.setSpanContext(api.ROOT_CONTEXT, {
    traceId: traceId!,
    spanId: spanId!,
    traceFlags: Number.parseInt(flags!, 16),
    isRemote: true,
  });
}

function traceparentOf(span: OpenTelemetry.Span): string {
  const { traceId, spanId, traceFlags } = span.spanContext();
  return `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`;
}
