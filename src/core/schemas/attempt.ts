import Type from 'typebox';
import { ISOLATION_LEVELS } from '../execution.js';
import { LOG_LEVELS, MAX_ORIGIN_PAUSE_MS, MAX_RETRY_AFTER_MS } from '../wire.js';
import { strict } from './object.js';
import { Fence, Id, Json, Moment, Name, Words } from './text.js';

/** What went wrong in an attempt; longer than the operator allows, it is cut, never refused. */
export const AttemptError = strict(
  { message: Words, code: Type.Optional(Words), stack: Type.Optional(Words) },
  { title: 'AttemptError' },
);

const RetryAfterMs = Type.Integer({
  minimum: 0,
  maximum: MAX_RETRY_AFTER_MS,
  description: 'The next attempt starts no sooner than after this time, nor before the backoff is over.',
});

const OriginReport = strict(
  {
    pauseMs: Type.Optional(Type.Integer({ minimum: 0, maximum: MAX_ORIGIN_PAUSE_MS })),
    isDown: Type.Optional(Type.Boolean()),
    isGone: Type.Optional(Type.Boolean()),
  },
  { title: 'OriginReport', description: 'What a failed call says about the origin that it went to.' },
);

const LimitReport = strict(
  {
    value: Type.Union([Type.Number(), Words]),
    how: Type.Enum(['enforced', 'approximated', 'absent'], { type: 'string' }),
  },
  { title: 'LimitReport' },
);

/** How an attempt ran a program. */
export const Execution = strict(
  {
    isolation: Type.Enum([...ISOLATION_LEVELS], { type: 'string' }),
    notIsolated: Type.Optional(Words),
    limits: strict({
      cpuTime: Type.Optional(LimitReport),
      cpus: Type.Optional(LimitReport),
      memory: Type.Optional(LimitReport),
      files: Type.Optional(LimitReport),
      processes: Type.Optional(LimitReport),
      output: Type.Optional(LimitReport),
      disk: Type.Optional(LimitReport),
    }),
    exitCode: Type.Optional(Type.Integer()),
    signal: Type.Optional(Words),
    outOfMemory: Type.Optional(Type.Boolean()),
    stdout: Type.Optional(Words),
    stderr: Type.Optional(Words),
    cut: Type.Optional(Type.Boolean()),
  },
  {
    title: 'Execution',
    description: 'How an attempt ran a program: its isolation, its limits and how it ended. At most 16 KiB.',
  },
);

const times = { startedAt: Type.Optional(Moment) };
const facts = { tenant: Type.Optional(Name), ...times, execution: Type.Optional(Execution) };
const attempt = { jobId: Id, fence: Fence, ...facts };

/** One result in a worker's report. */
export const AttemptResult = Type.Union(
  [
    strict({ ...attempt, outcome: Type.Literal('succeeded'), result: Type.Optional(Json) }),
    strict({
      ...attempt,
      outcome: Type.Literal('failed'),
      error: AttemptError,
      retryable: Type.Optional(Type.Boolean()),
      retryAfterMs: Type.Optional(RetryAfterMs),
      origin: Type.Optional(OriginReport),
    }),
    strict({ ...attempt, outcome: Type.Literal('timed-out'), error: Type.Optional(AttemptError) }),
    strict({ ...attempt, outcome: Type.Literal('cancelled'), error: Type.Optional(AttemptError) }),
    strict(
      { ...attempt, outcome: Type.Literal('handed-on') },
      {
        description:
          'The attempt goes on without the worker: whoever has its token, or a key, reports its end. It takes no slot, is never lost, and is timed out like any other.',
      },
    ),
  ],
  { title: 'AttemptResult' },
);

/** An attempt succeeded. */
export const Completion = strict(
  { fence: Fence, ...times, result: Type.Optional(Json) },
  { title: 'Completion' },
);

/** An attempt failed; `retryable: false` rules out another one. */
export const Failure = strict(
  {
    fence: Fence,
    ...times,
    error: AttemptError,
    retryable: Type.Optional(Type.Boolean()),
    retryAfterMs: Type.Optional(RetryAfterMs),
  },
  { title: 'Failure' },
);

/** How far an attempt has come. */
export const ProgressReport = strict(
  {
    fence: Fence,
    progress: Type.Number({ minimum: 0, maximum: 1 }),
    message: Type.Optional(Words),
  },
  { title: 'ProgressReport' },
);

/** Lines of an attempt's log. */
export const LogReport = strict(
  {
    fence: Fence,
    lines: Type.Array(
      strict(
        { at: Moment, level: Type.Enum(LOG_LEVELS, { type: 'string' }), message: Words },
        { title: 'LogLine' },
      ),
      { maxItems: 10_000 },
    ),
  },
  { title: 'LogReport' },
);
