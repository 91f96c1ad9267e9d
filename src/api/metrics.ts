import { Counter, Gauge, Registry } from 'prom-client';
import { BOUNDS } from '../core/histogram.js';
import { COUNTERS } from '../core/wire.js';
import type { LoopDelay } from '../host/loop-delay.js';
import type { Tally } from '../store/tallies.js';

const HELP: Record<(typeof COUNTERS)[number], [name: string, help: string]> = {
  leaderElections: ['punctual_leader_elections_total', 'Terms taken so far.'],
  jobsSubmitted: ['punctual_jobs_submitted_total', 'Jobs stored.'],
  jobsAssigned: ['punctual_jobs_assigned_total', 'Attempts claimed for a worker.'],
  jobsCompleted: ['punctual_jobs_completed_total', 'Jobs that succeeded.'],
  jobsFailed: ['punctual_jobs_failed_total', 'Jobs that failed for good.'],
  jobsCancelled: ['punctual_jobs_cancelled_total', 'Jobs that were cancelled.'],
  jobsRetried: ['punctual_jobs_retried_total', 'Failed attempts that are followed by another.'],
  jobsRequeued: ['punctual_jobs_requeued_total', 'Lost attempts that are followed by another.'],
  staleCompletions: ['punctual_stale_completions_total', 'Successes refused because of an old fence.'],
  staleFailures: ['punctual_stale_failures_total', 'Failures refused because of an old fence.'],
  occurrencesLate: [
    'punctual_occurrences_late_total',
    'Occurrences of schedules that did not start in time.',
  ],
  occurrencesMissed: ['punctual_occurrences_missed_total', 'Occurrences of schedules that never ran.'],
};

const GAUGES: Record<string, [name: string, help: string]> = {
  running: ['punctual_jobs_running', 'Jobs that run, as the leader knows.'],
  waiting: ['punctual_jobs_waiting', "Jobs that wait in the leader's memory."],
  workers: ['punctual_workers', 'Live worker sessions.'],
  epoch: ['punctual_epoch', 'The epoch of the shard as this node last saw it.'],
};

/**
 * Metrics in Prometheus format. Counters are the cluster's totals from the database, so they survive failovers and are
 * the same on every node. Gauges of dispatch exist on the leader only; the delay of the event loop is that of the
 * scraped node.
 */
export async function renderMetrics(
  totals: Tally,
  gauges: Readonly<Record<string, number>>,
  leads: boolean,
  loopDelay: Pick<LoopDelay, 'counts' | 'sumMs'>,
): Promise<string> {
  const registry = new Registry();
  for (const counter of COUNTERS) {
    const [name, help] = HELP[counter];
    new Counter({ name, help, registers: [registry] }).inc(totals[counter]);
  }
  for (const [key, value] of Object.entries(gauges)) {
    const [name, help] = GAUGES[key]!;
    new Gauge({ name, help, registers: [registry] }).set(value);
  }
  new Gauge({ name: 'punctual_leader', help: 'Whether this node leads.', registers: [registry] }).set(
    leads ? 1 : 0,
  );
  const histograms = [
    renderHistogram(
      'punctual_job_lateness_seconds',
      'Time between due time and claim of first attempts.',
      totals.lateness,
    ),
    renderHistogram(
      'punctual_event_loop_delay_seconds',
      'By how much timers of this node came too late, because its thread was busy.',
      loopDelay.counts,
      loopDelay.sumMs,
    ),
  ];
  return (await registry.metrics()) + histograms.join('');
}

/** A histogram of milliseconds in Prometheus format; without a sum if none was recorded. */
function renderHistogram(name: string, help: string, counts: readonly number[], sumMs?: number): string {
  const lines = [`# HELP ${name} ${help}`, `# TYPE ${name} histogram`];
  let seen = 0;
  BOUNDS.forEach((bound, i) => {
    seen += counts[i] ?? 0;
    lines.push(`${name}_bucket{le="${bound / 1_000}"} ${seen}`);
  });
  seen += counts[BOUNDS.length] ?? 0;
  lines.push(`${name}_bucket{le="+Inf"} ${seen}`, `${name}_count ${seen}`);
  if (sumMs !== undefined) lines.push(`${name}_sum ${sumMs / 1_000}`);
  return `\n${lines.join('\n')}\n`;
}
