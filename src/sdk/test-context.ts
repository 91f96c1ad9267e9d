import { inspect } from 'node:util';
import { PunctualError } from '../core/errors.js';
import { checkOptions, type OptionNames } from '../core/known-options.js';
import type { MiddlewareContext } from '../core/task.js';
import type { LogLevel } from '../core/wire.js';
import { buildAddition, type Spawn } from '../core/workflow/workflow-builder.js';
import {
  type StepAddition,
  WORKFLOW_DEFAULTS,
  type WorkflowStep,
  type WorkflowStepView,
} from '../core/workflow.js';

/** What a test may set; the rest has defaults. */
export interface TestContextOptions {
  readonly jobId?: string;
  readonly tenant?: string;
  readonly task?: string | null;
  readonly queue?: string;
  /** Default 1. */
  readonly attempt?: number;
  /** Default: the attempt. */
  readonly fence?: number;
  /** Default: none, which means that the job is no step and can add none. */
  readonly workflow?: string;
  /** Default: none. */
  readonly traceparent?: string;
  /** For tests of middleware; default null. */
  readonly payload?: unknown;
  /** Aborts the context's signal, too. */
  readonly signal?: AbortSignal;
}

const OPTIONS: OptionNames<TestContextOptions> = {
  jobId: true,
  tenant: true,
  task: true,
  queue: true,
  attempt: true,
  fence: true,
  workflow: true,
  traceparent: true,
  payload: true,
  signal: true,
};

/** A context for handlers and middleware in unit tests, which remembers what was reported to it. */
export interface TestContext extends MiddlewareContext {
  /** Every report of progress, in order; fractions are from 0 to 1, as a worker would send them. */
  readonly progressReports: readonly { readonly progress: number; readonly message?: string }[];
  /** Every line of the log, in order. */
  readonly logLines: readonly { readonly level: LogLevel; readonly message: string }[];
  /** What was added with each call of `spawn`, in order. */
  readonly additions: readonly StepAddition[];
  /** Aborts the signal, as a cancel or a timeout would. */
  abort(reason?: unknown): void;
}

/** Makes a context for a unit test: `await greet.run(input, testContext())` runs a handler without any node. */
export function testContext(options: TestContextOptions = {}): TestContext {
  checkOptions('testContext()', options, OPTIONS);
  const { attempt = 1, signal } = options;
  const aborting = new AbortController();
  const progressReports: { progress: number; message?: string }[] = [];
  const logLines: { level: LogLevel; message: string }[] = [];
  const additions: StepAddition[] = [];
  const spawn: Spawn = async (build, given) => {
    if (options.workflow === undefined)
      throw new PunctualError('INVALID_REQUEST', 'The context is of no step; give testContext() a workflow.');
    const addition = await buildAddition(build, given);
    additions.push(addition);
    return Object.fromEntries(Object.entries(addition.jobs).map(addedView));
  };
  const add = (level: LogLevel) => (message: unknown) => {
    logLines.push({ level, message: typeof message === 'string' ? message : inspect(message) });
  };
  return {
    jobId: options.jobId ?? '00000000-0000-7000-8000-000000000001',
    tenant: options.tenant ?? 'default',
    task: options.task ?? null,
    queue: options.queue ?? 'default',
    attempt,
    fence: options.fence ?? attempt,
    workflow: options.workflow,
    spawn,
    additions,
    traceparent: options.traceparent,
    payload: options.payload ?? null,
    signal: signal ? AbortSignal.any([signal, aborting.signal]) : aborting.signal,
    progress: async (fraction, message) => {
      const progress = Number.isNaN(fraction) ? 0 : Math.min(Math.max(fraction, 0), 1);
      progressReports.push(message === undefined ? { progress } : { progress, message });
    },
    log: Object.assign(add('info'), {
      debug: add('debug'),
      info: add('info'),
      warn: add('warn'),
      error: add('error'),
    }),
    progressReports,
    logLines,
    abort: (reason) => aborting.abort(reason),
  };
}

/** A step as it would be when it was just added. */
function addedView(
  [name, { after = [], runIf = WORKFLOW_DEFAULTS.runIf }]: [string, WorkflowStep],
  i: number,
) {
  const id = `00000000-0000-7000-8000-${String(i + 1).padStart(12, '0')}`;
  const state = after.length > 0 ? 'blocked' : 'pending';
  const view: WorkflowStepView = {
    id,
    state,
    after,
    runIf,
    addedBy: 'test',
    workflow: null,
    waitsFor: null,
    finishedAt: null,
  };
  return [name, view] as const;
}
