import { describe, expect, it } from 'vitest';
import type { Job, Progress } from '../core/job.js';
import type { PlacedRow, StoredAttempt } from '../store/job-places.js';
import { JobView } from './job-view.js';

const AT = Date.UTC(2026, 0, 1);
const WORKER = '0190f5e2-0000-7000-8000-0000000000aa';

/** The job as a client reads it. */
const toJob = (placed: PlacedRow, newest: Progress | null) =>
  JSON.parse(new JobView(placed, newest).text) as Job;

function row(change: Partial<PlacedRow> = {}): PlacedRow {
  return {
    place: 'live',
    raw: false,
    id: '0190f5e2-0000-7000-8000-000000000001',
    tenant: 'acme',
    queue: 'default',
    state: 'pending',
    held: false,
    rank: 5,
    artifact: null,
    artifact_by: null,
    run_at: AT,
    attempts: 0,
    failures: 0,
    losses: 0,
    max_attempts: 4,
    max_losses: 3,
    at_most_once: false,
    timeout_ms: 1_200_000,
    created_at: AT - 1_000,
    start_before: null,
    late_by: null,
    task: 'mail',
    created_by: 'ann',
    key: null,
    concurrency_key: null,
    target: null,
    backoff: null,
    requires: null,
    payload: '{"to":"a"}',
    earlier_attempts: null,
    earlier_count: change.earlier_attempts?.length ?? 0,
    fence: null,
    worker: null,
    epoch: null,
    cancelled_at: null,
    handed_on_at: null,
    ...{ step: null, step_inner: null, step_waits: null, step_event: null, step_until: null },
    claimed_at: null,
    started_at: null,
    finished_at: null,
    outcome: null,
    result: null,
    error: null,
    progress: null,
    execution: null,
    schedule: null,
    occurrence: null,
    workflow: null,
    batch: null,
    ...change,
  };
}

const lost: StoredAttempt = {
  fence: 1,
  epoch: 4,
  worker: WORKER,
  claimedAt: AT + 5,
  startedAt: null,
  finishedAt: AT + 9_000,
  outcome: 'lost',
  error: { message: 'the worker died' },
};

describe('a job as the API shows it', () => {
  it('that waits has started nothing yet', () => {
    expect(toJob(row(), null)).toEqual({
      id: '0190f5e2-0000-7000-8000-000000000001',
      tenant: 'acme',
      task: 'mail',
      target: { type: 'handler', name: 'mail' },
      queue: 'default',
      state: 'pending',
      priority: 5,
      payload: { to: 'a' },
      result: null,
      error: null,
      key: null,
      hold: false,
      runAt: '2026-01-01T00:00:00.000Z',
      startBefore: null,
      createdAt: '2025-12-31T23:59:59.000Z',
      createdBy: 'ann',
      scheduledAt: null,
      scheduledBy: null,
      schedule: null,
      workflow: null,
      step: null,
      waitsFor: null,
      batch: null,
      attempt: 0,
      failures: 0,
      maxAttempts: 4,
      retry: {
        maxAttempts: 4,
        backoff: { base: '2s', factor: 2, max: '10m', jitter: 0.1 },
        onWorkerLost: { maxAttempts: 3 },
      },
      timeout: '20m',
      delivery: 'at-least-once',
      concurrencyKey: null,
      requires: {},
      fence: 0,
      worker: null,
      startedAt: null,
      handedOnAt: null,
      cancelRequestedAt: null,
      finishedAt: null,
      lateBy: null,
      progress: null,
      dependsOn: [],
      dependents: [],
      ancestors: [],
      descendants: [],
      attempts: [],
    });
  });

  it('shows what was asked for, in the words of the submission', () => {
    const job = toJob(
      row({
        task: null,
        target: '{"type":"http","url":"https://example.com"}',
        rank: 1,
        held: true,
        key: 'k',
        concurrency_key: 'c',
        requires: '{"region":"eu"}',
        at_most_once: true,
        start_before: AT + 1_000,
        backoff: '{"baseMs":500,"factor":3,"maxMs":60000,"jitter":0}',
        timeout_ms: 90_000,
      }),
      null,
    );
    expect(job).toMatchObject({
      task: null,
      target: { type: 'http', url: 'https://example.com' },
      priority: 9,
      hold: true,
      key: 'k',
      concurrencyKey: 'c',
      requires: { region: 'eu' },
      delivery: 'at-most-once',
      startBefore: '2026-01-01T00:00:01.000Z',
      retry: { backoff: { base: '500ms', factor: 3, max: '1m', jitter: 0 } },
      timeout: '90s',
    });
  });

  it('that runs shows its attempt, its worker and its newest progress', () => {
    const stored = { progress: 0.1, at: '2026-01-01T00:00:01.000Z' };
    const newest = { progress: 0.5, at: '2026-01-01T00:00:02.000Z' };
    const running = row({
      state: 'running',
      attempts: 1,
      earlier_attempts: [lost],
      fence: 2,
      worker: WORKER,
      epoch: 5,
      claimed_at: AT + 40,
      progress: JSON.stringify(stored),
    });
    const job = toJob(running, newest);
    expect(job).toMatchObject({
      state: 'running',
      attempt: 2,
      fence: 2,
      worker: WORKER,
      startedAt: '2026-01-01T00:00:00.040Z',
      finishedAt: null,
      lateBy: 40,
      progress: newest,
    });
    expect(
      job.attempts.map(({ fence, epoch, outcome, finishedAt }) => [fence, epoch, outcome, finishedAt]),
    ).toEqual([
      [1, 4, 'lost', '2026-01-01T00:00:09.000Z'],
      [2, 5, null, null],
    ]);
    expect(toJob(running, null).progress).toEqual(stored);
  });

  it('that waits for a retry shows its earlier attempts and the fence so far', () => {
    const job = toJob(row({ attempts: 1, losses: 1, earlier_attempts: [lost], late_by: 5 }), null);
    expect(job).toMatchObject({ attempt: 1, fence: 1, worker: null, lateBy: 5 });
    expect(job.attempts[0]).toMatchObject({ attempt: 1, error: { message: 'the worker died' } });
  });

  it('that ended shows when and how, with the outcome of its last attempt', () => {
    const ended = {
      place: 'history' as const,
      attempts: 1,
      fence: 1,
      worker: WORKER,
      epoch: 5,
      claimed_at: AT + 3,
      started_at: AT + 4,
      finished_at: AT + 50,
      late_by: 4,
    };
    expect(
      toJob(row({ ...ended, state: 'succeeded', outcome: 'succeeded', result: '[1]' }), null),
    ).toMatchObject({
      result: [1],
      startedAt: '2026-01-01T00:00:00.004Z',
      finishedAt: '2026-01-01T00:00:00.050Z',
      lateBy: 4,
      attempts: [{ outcome: 'succeeded', error: null }],
    });
    const error = { message: 'no', code: 'E' };
    expect(
      toJob(row({ ...ended, state: 'failed', outcome: 'timed-out', error: JSON.stringify(error) }), null),
    ).toMatchObject({ state: 'failed', error, attempts: [{ outcome: 'timed-out', error }] });
  });

  it('that ended without a start has no attempt', () => {
    const cancelled = toJob(row({ place: 'history', state: 'cancelled', finished_at: AT + 50 }), null);
    expect(cancelled).toMatchObject({ attempt: 0, attempts: [], startedAt: null, lateBy: null });
  });

  it('says what is not there', () => {
    const job = toJob(
      { ...row({ earlier_attempts: [lost], earlier_count: 3 }), without_payload: true, without_stack: true },
      null,
    );
    expect(job).toMatchObject({ attempt: 3, omitted: ['payload', 'stack', 'attempts'], result: null });
    expect(job).not.toHaveProperty('payload');
    expect(job.attempts).toHaveLength(1);
    expect(toJob(row(), null)).not.toHaveProperty('omitted');
  });

  it('keeps what JSON texts say, whatever that is', () => {
    expect(toJob(row({ payload: '"\\u0000\\ud800"' }), null).payload).toBe('\u0000\ud800');
    expect(toJob(row({ payload: 'null' }), null).payload).toBeNull();
    const { text } = new JobView(row({ payload: '[1e999, 12345678901234567890]' }), null);
    expect(text).toContain('"payload":[1e999, 12345678901234567890],');
  });
});
