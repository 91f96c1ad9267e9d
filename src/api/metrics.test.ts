import { describe, expect, it } from 'vitest';
import type { AttemptFigures, Figures } from '../core/figures.js';
import { BOUNDS, bucketOf, emptyHistogram, WideHistogram } from '../core/histogram.js';
import { COUNTERS } from '../core/wire.js';
import type { Tally } from '../store/tallies.js';
import { renderMetrics } from './metrics.js';

const FOLLOWER = { leads: false, epoch: 9, loopDelay: { counts: emptyHistogram(), sumMs: 0 } };
const LEADER = { ...FOLLOWER, leads: true };

const OUTCOMES = { succeeded: 0, failed: 0, 'timed-out': 0, lost: 0, cancelled: 0 };

function attempts(queue: string, task: string, values: readonly number[]): AttemptFigures {
  const [waiting, runTime] = [new WideHistogram(), new WideHistogram()];
  for (const value of values) {
    waiting.add(value);
    runTime.add(2 * value);
  }
  return { queue, task, waiting, runTime, outcomes: { ...OUTCOMES, succeeded: values.length } };
}

function figures(change: Partial<Figures> = {}): Figures {
  const batches = {
    batchesWaiting: 6,
    batchesRunning: 7,
    slotsKept: 8,
    endsPending: 9,
    originsOpen: 10,
    originsPaused: 11,
  };
  const totals = { running: 3, waiting: 4, ready: 2, unserved: 1, workers: 5, slots: 50, ...batches };
  return { totals, queues: [], attempts: [], ...change };
}

function tally(change: Partial<Tally> = {}): Tally {
  const counts = Object.fromEntries(COUNTERS.map((name) => [name, 0]));
  return { ...counts, lateness: emptyHistogram(), latenessMs: 0, ...change } as Tally;
}

/** The samples of a Prometheus text, by name and labels. */
function samples(text: string): Map<string, number> {
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return new Map(
    lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ')))]),
  );
}

describe('the metrics', () => {
  it('hold every counter under a name of its own, in base units', async () => {
    const totals = tally(Object.fromEntries(COUNTERS.map((name, i) => [name, i + 1])));
    const read = samples(await renderMetrics(totals, null, FOLLOWER));
    const counters = [...read].filter(([name]) => name.endsWith('_total'));
    expect(counters.map(([, value]) => value)).toEqual(COUNTERS.map((_, i) => i + 1));
    expect(read.get('punctual_jobs_submitted_total')).toBe(totals.jobsSubmitted);
    for (const name of read.keys()) expect(name).toMatch(/^punctual_[a-z_]+(\{le="[^"]+"\})?$/);
  });

  it('tell who leads, and hold what the leader knows on every node that can ask it', async () => {
    for (const [node, leads] of [
      [LEADER, 1],
      [FOLLOWER, 0],
    ] as const) {
      const read = samples(await renderMetrics(tally(), figures(), node));
      expect([
        read.get('punctual_leader'),
        read.get('punctual_epoch'),
        read.get('punctual_jobs_running'),
        read.get('punctual_jobs_waiting'),
        read.get('punctual_jobs_ready'),
        read.get('punctual_jobs_unserved'),
        read.get('punctual_workers'),
        read.get('punctual_worker_slots'),
      ]).toEqual([leads, 9, 3, 4, 2, 1, 5, 50]);
    }
    const alone = samples(await renderMetrics(tally(), null, FOLLOWER));
    expect(alone.get('punctual_leader')).toBe(0);
    expect(alone.has('punctual_jobs_running')).toBe(false);
  });

  it('hold queues and attempts by name, each series once', async () => {
    const queue = { queue: 'mail', ready: 7, running: 2, unserved: 3, oldestReadyMs: 1_500 };
    const text = await renderMetrics(
      tally(),
      figures({
        queues: [queue, { ...queue, queue: 'other', ready: 1 }],
        attempts: [attempts('mail', 'send', [4, 40, 5_000_000]), attempts('other', 'other', [])],
      }),
      FOLLOWER,
    );
    const read = samples(text);
    expect(read.size).toBe(text.split('\n').filter((line) => line !== '' && !line.startsWith('#')).length);
    expect(read.get('punctual_queue_jobs_ready{queue="mail"}')).toBe(7);
    expect(read.get('punctual_queue_jobs_ready{queue="other"}')).toBe(1);
    expect(read.get('punctual_queue_jobs_running{queue="mail"}')).toBe(2);
    expect(read.get('punctual_queue_jobs_unserved{queue="mail"}')).toBe(3);
    expect(read.get('punctual_queue_oldest_ready_seconds{queue="mail"}')).toBe(1.5);
    const pair = 'queue="mail",task="send"';
    expect(read.get(`punctual_attempts_ended_total{${pair},outcome="succeeded"}`)).toBe(3);
    expect(read.get(`punctual_attempts_ended_total{${pair},outcome="timed-out"}`)).toBe(0);
    const wait = 'punctual_attempt_wait_seconds';
    expect(
      ['0.005', '0.05', '3600', '+Inf'].map((le) => read.get(`${wait}_bucket{${pair},le="${le}"}`)),
    ).toEqual([1, 2, 2, 3]);
    expect(read.get(`${wait}_sum{${pair}}`)).toBe(5_000.044);
    expect(read.get(`${wait}_count{${pair}}`)).toBe(3);
    expect(read.get(`punctual_attempt_run_seconds_sum{${pair}}`)).toBe(10_000.088);
    expect(read.get('punctual_attempt_run_seconds_count{queue="other",task="other"}')).toBe(0);
  });

  it('hold lateness as a histogram whose buckets add up', async () => {
    const lateness = emptyHistogram();
    for (const ms of [0, 0, 4, 40, 900, 10_000_000]) lateness[bucketOf(ms)]! += 1;
    const read = samples(await renderMetrics(tally({ lateness, latenessMs: 10_000_944 }), null, LEADER));
    const bucket = (le: string) => read.get(`punctual_job_lateness_seconds_bucket{le="${le}"}`);
    expect([bucket('0.001'), bucket('0.005'), bucket('0.05'), bucket('1'), bucket('3600')]).toEqual([
      2, 3, 4, 5, 5,
    ]);
    expect(bucket('+Inf')).toBe(6);
    expect(read.get('punctual_job_lateness_seconds_count')).toBe(6);
    expect(read.get('punctual_job_lateness_seconds_sum')).toBe(10_000.944);
    const buckets = [...read]
      .filter(([name]) => name.startsWith('punctual_job_lateness_seconds_bucket'))
      .map(([, count]) => count);
    expect(buckets).toHaveLength(BOUNDS.length + 1);
    expect(buckets).toEqual([...buckets].sort((a, b) => a - b));
  });

  it("hold the delay of the node's event loop, in seconds, with its sum", async () => {
    const counts = emptyHistogram();
    for (const ms of [0, 0, 120]) counts[bucketOf(ms)]! += 1;
    const read = samples(
      await renderMetrics(tally(), null, { ...FOLLOWER, loopDelay: { counts, sumMs: 120.5 } }),
    );
    const bucket = (le: string) => read.get(`punctual_event_loop_delay_seconds_bucket{le="${le}"}`);
    expect([bucket('0.001'), bucket('0.1'), bucket('0.15'), bucket('+Inf')]).toEqual([2, 2, 3, 3]);
    expect(read.get('punctual_event_loop_delay_seconds_count')).toBe(3);
    expect(read.get('punctual_event_loop_delay_seconds_sum')).toBe(0.1205);
  });

  it('are described line by line', async () => {
    const text = await renderMetrics(tally(), figures({ attempts: [attempts('q', 't', [1])] }), LEADER);
    const named = (kind: string) =>
      new Set([...text.matchAll(new RegExp(`^# ${kind} (\\S+)`, 'gm'))].map((m) => m[1]));
    expect(named('HELP')).toEqual(named('TYPE'));
    expect(text.endsWith('\n')).toBe(true);
  });
});
