import fc from 'fast-check';
import type { TSchema } from 'typebox';
import { Compile } from 'typebox/compile';
import { describe, expect, it } from 'vitest';
import { type FieldError, PunctualError } from '../errors.js';
import { AttemptResult, LogReport, ProgressReport } from './attempt.js';
import { explain } from './explain.js';
import { nearlyFromSchema } from './from-schema.fixture.js';
import { JobListQuery } from './query.js';
import { BackfillRequest, PreviewRequest, ScheduleChange, ScheduleInput } from './schedule.js';
import { BulkSubmission, JobChange, JobSubmission, Priority } from './submission.js';
import { Duration, line, Moment, Name, texts } from './text.js';
import { validate } from './validate.js';
import { ClaimRequest, Heartbeat, ReportRequest, WorkerRegistration } from './worker.js';

const JOB_ID = '01890a5d-ac96-774b-bcce-b302099a8057';

function errorsOf(schema: TSchema, value: unknown): readonly FieldError[] {
  try {
    validate(schema, value);
  } catch (error) {
    expect(error).toBeInstanceOf(PunctualError);
    expect((error as PunctualError).code).toBe('INVALID_REQUEST');
    return (error as PunctualError).errors;
  }
  return [];
}

describe('validate', () => {
  it('returns the very value it was given', () => {
    const value = { max: 10, wait: '20s' };
    expect(validate(ClaimRequest, value)).toBe(value);
  });

  it.each<[string, TSchema, unknown, string, string]>([
    ['an unknown field', ClaimRequest, { max: 1, wait: '1s', x: 1 }, '/x', 'is not a known field'],
    ['a missing field', ClaimRequest, { max: 1 }, '/wait', 'is required'],
    [
      'a wrong type',
      ClaimRequest,
      { max: '1', wait: '1s' },
      '/max',
      'must be a whole number from 1 to 10000',
    ],
    ['a fraction', ClaimRequest, { max: 1.5, wait: '1s' }, '/max', 'must be a whole number from 1 to 10000'],
    ['no object', ClaimRequest, [], '', 'must be an object'],
    ['no body', ClaimRequest, undefined, '', 'must be an object'],
    [
      'a bad duration',
      ClaimRequest,
      { max: 1, wait: '1 s' },
      '/wait',
      'must be a duration of at most 1m, such as 20s',
    ],
    [
      'a duration of a thousand years',
      ClaimRequest,
      { max: 1, wait: '365000d' },
      '/wait',
      'must be a duration of at most 1m, such as 20s',
    ],
    [
      'a priority out of range',
      JobSubmission,
      { task: 'a', priority: 10 },
      '/priority',
      'must be a whole number from 1 to 9',
    ],
    [
      'a bad name',
      JobSubmission,
      { task: 'a b' },
      '/task',
      'must be 1 to 128 letters, digits, ".", "_", "-" or ":"',
    ],
    [
      'NUL in a key',
      JobSubmission,
      { task: 'a', key: 'x\0' },
      '/key',
      'must be text of 1 to 512 characters without control characters',
    ],
    [
      'half a surrogate pair in a key',
      JobSubmission,
      { task: 'a', key: '\ud800' },
      '/key',
      'must be text of 1 to 512 characters without control characters',
    ],
    [
      'February 30th',
      JobSubmission,
      { task: 'a', runAt: '2026-02-30T00:00:00Z' },
      '/runAt',
      'must be an RFC 3339 time such as 2026-12-24T18:00:00Z',
    ],
    [
      'an unknown kind of target',
      JobSubmission,
      { target: { type: 'ftp' } },
      '/target/type',
      'must be one of "handler", "http", "exec"',
    ],
    [
      'a field of another target',
      JobSubmission,
      { target: { type: 'handler', name: 'a', url: 'http://a' } },
      '/target/url',
      'is not a known field',
    ],
    [
      'a URL of another scheme',
      JobSubmission,
      { target: { type: 'http', url: 'file:///etc/passwd' } },
      '/target/url',
      'must be an http or https URL',
    ],
    [
      'a label that is no text',
      JobSubmission,
      { task: 'a', requires: { 'a/b': 1 } },
      '/requires/a~1b',
      'must be text of 0 to 256 characters without control characters',
    ],
    [
      'too many labels',
      JobSubmission,
      { task: 'a', requires: Object.fromEntries(Array.from({ length: 33 }, (_, i) => [`l${i}`, ''])) },
      '/requires',
      'must have at most 32 entries',
    ],
    [
      'one bad job in a bulk',
      BulkSubmission,
      { jobs: [{ task: 'a' }, { task: 'a', hold: 1 }] },
      '/jobs/1/hold',
      'must be true or false',
    ],
    ['an empty bulk', BulkSubmission, { jobs: [] }, '/jobs', 'must have at least 1 entry'],
    [
      'a 10,001st job',
      BulkSubmission,
      { jobs: Array.from({ length: 10_001 }, () => ({ task: 'a' })) },
      '/jobs',
      'must have at most 10000 entries',
    ],
    ['an empty change', JobChange, {}, '', 'must have at least one field'],
    [
      'progress above 1',
      ProgressReport,
      { fence: 1, progress: 1.1 },
      '/progress',
      'must be a number from 0 to 1',
    ],
    [
      'a fence of zero',
      ProgressReport,
      { fence: 0, progress: 1 },
      '/fence',
      'must be a whole number from 1 to 2147483647',
    ],
    [
      'a negative epoch',
      Heartbeat,
      { epoch: -1, running: [] },
      '/epoch',
      'must be a whole number of at least 0',
    ],
    [
      'an id in a heartbeat that is none',
      Heartbeat,
      { epoch: 1, running: [{ jobId: 'x', fence: 1 }] },
      '/running/0/jobId',
      'must be a UUID in lower case',
    ],
    [
      'an unknown outcome',
      ReportRequest,
      { results: [{ jobId: JOB_ID, fence: 1, outcome: 'lost' }] },
      '/results/0/outcome',
      'must be one of "succeeded", "failed", "timed-out", "cancelled", "handed-on"',
    ],
    [
      'a failure without an error',
      ReportRequest,
      { results: [{ jobId: JOB_ID, fence: 1, outcome: 'failed' }] },
      '/results/0/error',
      'is required',
    ],
    [
      'an unknown state in a filter',
      JobListQuery,
      { state: 'done' },
      '/state',
      'must be one or more of blocked, pending, running, succeeded, failed, cancelled, skipped, with commas between them',
    ],
  ])('points at %s', (_, schema, value, pointer, detail) => {
    expect(errorsOf(schema, value)).toEqual([{ pointer, detail }]);
  });

  it('reports what is wrong, up to twenty errors, and that there are more', () => {
    const jobs = Array.from({ length: 10_000 }, () => ({ task: 'a', nope: 1, priority: 0 }));
    expect(errorsOf(BulkSubmission, { jobs })).toHaveLength(21);
  });

  it('takes any text in what a handler says, so that one character cannot hold back a report', () => {
    const result = { jobId: JOB_ID, fence: 1, outcome: 'failed', error: { message: 'a\0b\ud800' } };
    expect(errorsOf(ReportRequest, { results: [result] })).toEqual([]);
  });
});

const SCHEMAS: readonly TSchema[] = [
  JobSubmission,
  BulkSubmission,
  JobChange,
  ScheduleInput,
  ScheduleChange,
  PreviewRequest,
  BackfillRequest,
  JobListQuery,
  AttemptResult,
  LogReport,
  ProgressReport,
  WorkerRegistration,
  Heartbeat,
  ClaimRequest,
  ReportRequest,
];

describe('explain', () => {
  it.each(SCHEMAS.map((schema) => [(schema as { title?: string }).title ?? 'JobListQuery', schema] as const))(
    'finds something wrong exactly where the compiled check does: %s',
    (_, schema) => {
      const compiled = Compile(schema);
      fc.assert(
        fc.property(nearlyFromSchema(schema), (value) => {
          expect(explain(schema, value).length === 0).toBe(compiled.Check(value));
        }),
        { numRuns: 500 },
      );
    },
  );
});

/** What a kind of text, number or map takes, up to its bounds. */
describe('the schema of', () => {
  it.each<[what: string, schema: TSchema, good: readonly unknown[], bad: readonly unknown[]]>([
    [
      'a name',
      Name,
      ['a', 'A-z_0.9:', 'x'.repeat(128)],
      ['', 'x'.repeat(129), 'a b', 'a/b', 'ä', 'a\n', 'a\0', 5, ['a'], null],
    ],
    [
      'a line',
      line(20),
      ['any: ünïcode 🎉', '12345678901234567890', '🎉'.repeat(20)],
      ['', '1'.repeat(21), '🎉'.repeat(21), 'nul\0', 'tab\t', 'del\u007f', '\ud800 half', '\udc00', 5, {}],
    ],
    [
      'a duration',
      Duration,
      ['0s', '2m', '1.5h', '36600d'],
      ['', '5', '-1s', '1 s', '1e3s', '36601d', 120_000],
    ],
    [
      'a moment',
      Moment,
      ['1970-01-01T00:00:00Z', '2026-12-24T18:00:00+01:00'],
      ['tomorrow', '2026-02-30T00:00:00Z', '2026-12-24', 0],
    ],
    ['a priority', Priority, [1, 9, 5.0], [0, 10, 1.5, '5', Number.NaN, Number.POSITIVE_INFINITY, true, 5n]],
    [
      'a map',
      texts(2, 10),
      [{}, { a: '', b: 'x' }, { ['k'.repeat(128)]: '🎉'.repeat(10) }],
      [
        ...[{ a: 5 }, { a: 'x'.repeat(11) }, { a: 'a\nb' }, { a: '\ud83d' }, { '': 'x' }],
        ...[{ ['k'.repeat(129)]: '' }, { a: '', b: '', c: '' }, [], 'a', null],
      ],
    ],
  ])('%s takes what it says and nothing else', (_, schema, good, bad) => {
    for (const value of good) expect(errorsOf(schema, value), String(value)).toEqual([]);
    for (const value of bad) expect(errorsOf(schema, value), String(value)).not.toEqual([]);
  });

  it('anything names every unknown field, with its pointer escaped', () => {
    const body = JSON.parse('{"a/b":1,"c~d":2,"__proto__":3,"constructor":4,"task":"a"}');
    expect(errorsOf(JobSubmission, body).map(({ pointer }) => pointer)).toEqual([
      '/a~1b',
      '/c~0d',
      '/__proto__',
      '/constructor',
    ]);
  });

  it('a choice points into the object that is meant, and names all choices otherwise', () => {
    const catchUp = (value: unknown) => errorsOf(ScheduleInput, { name: 'a', catchUp: value });
    expect(catchUp({ within: 5 })).toEqual([
      { pointer: '/catchUp/within', detail: expect.stringContaining('must be a duration') },
    ]);
    expect(catchUp('some')).toEqual([
      { pointer: '/catchUp', detail: expect.stringMatching(/"latest", "all" or \{"within"/) },
    ]);
  });
});
