import { describe, expect, it } from 'vitest';
import { BOUNDS, bucketOf, emptyHistogram } from '../core/histogram.js';
import { COUNTERS } from '../core/wire.js';
import type { Tally } from '../store/tallies.js';
import { renderMetrics } from './metrics.js';

const CALM = { counts: emptyHistogram(), sumMs: 0 };

function tally(change: Partial<Tally> = {}): Tally {
  const counts = Object.fromEntries(COUNTERS.map((name) => [name, 0]));
  return { ...counts, lateness: emptyHistogram(), ...change } as Tally;
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
    const read = samples(await renderMetrics(totals, {}, false, CALM));
    const counters = [...read].filter(([name]) => name.endsWith('_total'));
    expect(counters.map(([, value]) => value)).toEqual(COUNTERS.map((_, i) => i + 1));
    expect(read.get('punctual_jobs_submitted_total')).toBe(totals.jobsSubmitted);
    for (const name of read.keys()) expect(name).toMatch(/^punctual_[a-z_]+(\{le="[^"]+"\})?$/);
  });

  it('tell who leads, and hold the figures of dispatch where they are known', async () => {
    const leader = samples(
      await renderMetrics(tally(), { running: 3, waiting: 4, workers: 2, epoch: 9 }, true, CALM),
    );
    expect([
      leader.get('punctual_leader'),
      leader.get('punctual_jobs_running'),
      leader.get('punctual_jobs_waiting'),
      leader.get('punctual_workers'),
      leader.get('punctual_epoch'),
    ]).toEqual([1, 3, 4, 2, 9]);
    const other = samples(await renderMetrics(tally(), {}, false, CALM));
    expect(other.get('punctual_leader')).toBe(0);
    expect(other.has('punctual_jobs_running')).toBe(false);
  });

  it('hold lateness as a histogram whose buckets add up', async () => {
    const lateness = emptyHistogram();
    for (const ms of [0, 0, 4, 40, 900, 10_000_000]) lateness[bucketOf(ms)]! += 1;
    const read = samples(await renderMetrics(tally({ lateness }), {}, true, CALM));
    const bucket = (le: string) => read.get(`punctual_job_lateness_seconds_bucket{le="${le}"}`);
    expect([bucket('0.001'), bucket('0.005'), bucket('0.05'), bucket('1'), bucket('3600')]).toEqual([
      2, 3, 4, 5, 5,
    ]);
    expect(bucket('+Inf')).toBe(6);
    expect(read.get('punctual_job_lateness_seconds_count')).toBe(6);
    const buckets = [...read]
      .filter(([name]) => name.startsWith('punctual_job_lateness_seconds_bucket'))
      .map(([, count]) => count);
    expect(buckets).toHaveLength(BOUNDS.length + 1);
    expect(buckets).toEqual([...buckets].sort((a, b) => a - b));
  });

  it("hold the delay of the node's event loop, in seconds, with its sum", async () => {
    const counts = emptyHistogram();
    for (const ms of [0, 0, 120]) counts[bucketOf(ms)]! += 1;
    const read = samples(await renderMetrics(tally(), {}, false, { counts, sumMs: 120.5 }));
    const bucket = (le: string) => read.get(`punctual_event_loop_delay_seconds_bucket{le="${le}"}`);
    expect([bucket('0.001'), bucket('0.1'), bucket('0.15'), bucket('+Inf')]).toEqual([2, 2, 3, 3]);
    expect(read.get('punctual_event_loop_delay_seconds_count')).toBe(3);
    expect(read.get('punctual_event_loop_delay_seconds_sum')).toBe(0.1205);
  });

  it('are described line by line', async () => {
    const text = await renderMetrics(tally(), { running: 0 }, true, CALM);
    const named = (kind: string) =>
      new Set([...text.matchAll(new RegExp(`^# ${kind} (\\S+)`, 'gm'))].map((m) => m[1]));
    expect(named('HELP')).toEqual(named('TYPE'));
    expect(text.endsWith('\n')).toBe(true);
  });
});
