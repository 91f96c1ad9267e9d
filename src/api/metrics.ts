import { Counter, Gauge, Registry } from 'prom-client';
import type {
  AttemptFigures,
  Figures,
  HistogramFigures,
  QueueFigures,
  TotalFigures,
  WorkflowFigures,
} from '../core/figures.js';
import { BOUNDS, WIDE_BOUNDS } from '../core/histogram.js';
import { ATTEMPT_OUTCOMES } from '../core/job.js';
import { TimeSlice } from '../core/time-slice.js';
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
  workflowsSubmitted: ['punctual_workflows_submitted_total', 'Workflows stored.'],
  workflowsRetried: [
    'punctual_workflows_retried_total',
    'Workflows that had ended and were set going again.',
  ],
  workflowsSucceeded: ['punctual_workflows_succeeded_total', 'Workflows that succeeded.'],
  workflowsFailed: ['punctual_workflows_failed_total', 'Workflows that failed.'],
  workflowsCancelled: ['punctual_workflows_cancelled_total', 'Workflows that were cancelled.'],
  stepsSkipped: ['punctual_steps_skipped_total', 'Steps of workflows that were skipped.'],
  batchesSubmitted: ['punctual_batches_submitted_total', 'Batches stored.'],
  batchesStarted: ['punctual_batches_started_total', 'Starts of batches, also such as were taken back.'],
  batchesSucceeded: ['punctual_batches_succeeded_total', 'Batches that succeeded.'],
  batchesFailed: ['punctual_batches_failed_total', 'Batches that failed, also by not starting in time.'],
  batchesCancelled: ['punctual_batches_cancelled_total', 'Batches that were cancelled.'],
  batchesTimedOut: ['punctual_batches_timed_out_total', 'Batches that could not start in time.'],
};

const TOTALS: Record<keyof TotalFigures, [name: string, help: string]> = {
  running: ['punctual_jobs_running', 'Jobs that run.'],
  waiting: ['punctual_jobs_waiting', "Jobs that wait in the leader's memory, due or not."],
  ready: ['punctual_jobs_ready', "Due jobs that wait in the leader's memory."],
  unserved: ['punctual_jobs_unserved', 'Due jobs that no live worker has served for a while.'],
  workers: ['punctual_workers', 'Live worker sessions.'],
  slots: ['punctual_worker_slots', 'Slots of the workers that take jobs.'],
  batchesWaiting: ['punctual_batches_waiting', "Batches that wait in the leader's memory."],
  batchesRunning: ['punctual_batches_running', 'Batches that run.'],
  slotsKept: ['punctual_worker_slots_kept', 'Free slots that are kept for batches.'],
  endsPending: ['punctual_workflow_ends_pending', 'Ended steps that are not counted yet.'],
  originsOpen: ['punctual_origins_open', 'Origins of http targets whose circuit is open.'],
  originsPaused: ['punctual_origins_paused', 'Origins of http targets that have asked for a pause.'],
};

const QUEUES: readonly [name: string, help: string, of: (queue: QueueFigures) => number][] = [
  ['punctual_queue_jobs_ready', "Due jobs of a queue in the leader's memory.", ({ ready }) => ready],
  ['punctual_queue_jobs_running', 'Jobs of a queue that run.', ({ running }) => running],
  ['punctual_queue_jobs_unserved', 'Due jobs of a queue without a worker.', ({ unserved }) => unserved],
  [
    'punctual_queue_oldest_ready_seconds',
    'How long the job of a queue that starts next has been due; of several kinds of jobs, the longest.',
    ({ oldestReadyMs }) => oldestReadyMs / 1_000,
  ],
];

const ATTEMPTS: readonly [name: string, help: string, of: (attempts: AttemptFigures) => HistogramFigures][] =
  [
    [
      'punctual_attempt_wait_seconds',
      'Time between due time and claim of attempts.',
      ({ waiting }) => waiting,
    ],
    ['punctual_attempt_run_seconds', 'Time between start and end of attempts.', ({ runTime }) => runTime],
  ];

/** What only the scraped node knows about itself. */
interface NodeFigures {
  readonly leads: boolean;
  /** The epoch as the node last saw it. */
  readonly epoch: number;
  readonly loopDelay: Pick<LoopDelay, 'counts' | 'sumMs'>;
  /** How many requests were refused, by the quota that they went beyond. */
  readonly refusals?: ReadonlyMap<string, number>;
}

/**
 * Metrics in Prometheus format. Counters of the cluster come from the database, so they survive failovers. Figures come
 * from the leader, whichever node is scraped, and are missing while it does not answer; their counters begin anew with
 * every term. Both are the same on every node. Without the figures of the node, which a tenant is not shown, only counters
 * and lateness are left.
 */
export async function renderMetrics(
  totals: Tally,
  figures: Figures | null,
  node: NodeFigures | null,
): Promise<string> {
  const registry = new Registry();
  const registers = [registry];
  for (const counter of COUNTERS) {
    const [name, help] = HELP[counter];
    new Counter({ name, help, registers }).inc(totals[counter]);
  }
  for (const [key, [name, help]] of Object.entries(TOTALS)) {
    if (figures) new Gauge({ name, help, registers }).set(figures.totals[key as keyof TotalFigures] ?? 0);
  }
  const going = 'Workflows that have not ended.';
  new Gauge({ name: 'punctual_workflows_running', help: going, registers }).set(workflowsRunning(totals));
  if (node) {
    const seen = 'The epoch of the shard as this node last saw it.';
    new Gauge({ name: 'punctual_epoch', help: seen, registers }).set(node.epoch);
    const leads = 'Whether this node leads.';
    new Gauge({ name: 'punctual_leader', help: leads, registers }).set(node.leads ? 1 : 0);
  }
  const lateness = { counts: totals.lateness, sumMs: totals.latenessMs };
  const families = [
    family(
      'punctual_job_lateness_seconds',
      'histogram',
      'Time between due time and claim of first attempts.',
      [histogramLines('punctual_job_lateness_seconds', '', BOUNDS, lateness)],
    ),
    ...(node ? [loopDelayFamily(node.loopDelay), refusalFamily(node.refusals)] : []),
    ...(figures ? await labelled(figures) : []),
  ];
  return (await registry.metrics()) + families.join('');
}

function loopDelayFamily(loopDelay: NodeFigures['loopDelay']): string {
  const name = 'punctual_event_loop_delay_seconds';
  const help = 'By how much timers of this node came too late, because its thread was busy.';
  return family(name, 'histogram', help, [histogramLines(name, '', BOUNDS, loopDelay)]);
}

function refusalFamily(refusals: ReadonlyMap<string, number> = new Map()): string {
  const name = 'punctual_quota_refusals_total';
  const help = 'Requests that this node has refused because of a quota, or of the rate of a key.';
  const lines = Array.from(refusals, ([quota, count]) => `${name}{${labels({ quota })}} ${count}`);
  return family(name, 'counter', help, lines);
}

/** Counted in the transactions that store and end them, so that nobody has to count the rows. */
function workflowsRunning(totals: Tally): number {
  const { workflowsSubmitted, workflowsRetried, workflowsSucceeded, workflowsFailed, workflowsCancelled } =
    totals;
  const ended = workflowsSucceeded + workflowsFailed + workflowsCancelled;
  return Math.max(0, workflowsSubmitted + workflowsRetried - ended);
}

const WORKFLOWS: readonly [
  name: string,
  help: string,
  of: (workflows: WorkflowFigures) => HistogramFigures,
][] = [
  ['punctual_workflow_seconds', 'Time between submission and end of workflows.', ({ time }) => time],
  [
    'punctual_step_release_seconds',
    'Time between the end of a step and the release of one that waited for it.',
    ({ release }) => release,
  ],
];

/** The figures by queue and by task, written in time slices: there may be tens of thousands of lines. */
async function labelled({ queues, attempts, workflows }: Figures): Promise<string[]> {
  const slice = new TimeSlice();
  // A leader of an older version has no figures of workflows.
  const families = WORKFLOWS.flatMap(([name, help, of]) =>
    workflows
      ? [family(name, 'histogram', help, [histogramLines(name, '', WIDE_BOUNDS, of(workflows))])]
      : [],
  );
  for (const [name, help, of] of QUEUES) {
    const lines = queues.map((each) => `${name}{${labels({ queue: each.queue })}} ${of(each)}`);
    families.push(family(name, 'gauge', help, lines));
    if (slice.isOver) await slice.next();
  }
  const ended: string[] = [];
  for (const { queue, task, outcomes } of attempts) {
    for (const outcome of ATTEMPT_OUTCOMES)
      ended.push(`punctual_attempts_ended_total{${labels({ queue, task, outcome })}} ${outcomes[outcome]}`);
    if (slice.isOver) await slice.next();
  }
  families.push(family('punctual_attempts_ended_total', 'counter', 'Attempts that ended.', ended));
  for (const [name, help, of] of ATTEMPTS) {
    const lines: string[] = [];
    for (const each of attempts) {
      const { queue, task } = each;
      lines.push(histogramLines(name, labels({ queue, task }), WIDE_BOUNDS, of(each)));
      if (slice.isOver) await slice.next();
    }
    families.push(family(name, 'histogram', help, lines));
  }
  return families;
}

/** A family of metrics with its description; nothing if it has no samples. */
function family(name: string, type: string, help: string, lines: readonly string[]): string {
  if (lines.length === 0) return '';
  return `\n# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${lines.join('\n')}\n`;
}

/** JSON escapes what Prometheus wants to be escaped. */
function labels(values: Readonly<Record<string, string>>): string {
  return Object.entries(values)
    .map(([name, value]) => `${name}=${JSON.stringify(value)}`)
    .join(',');
}

/** The samples of a histogram of milliseconds. */
function histogramLines(
  name: string,
  inner: string,
  bounds: readonly number[],
  { counts, sumMs }: HistogramFigures,
): string {
  const [before, own] = inner === '' ? ['', ''] : [`${inner},`, `{${inner}}`];
  const lines: string[] = [];
  let seen = 0;
  bounds.forEach((bound, i) => {
    seen += counts[i] ?? 0;
    lines.push(`${name}_bucket{${before}le="${bound / 1_000}"} ${seen}`);
  });
  seen += counts[bounds.length] ?? 0;
  lines.push(`${name}_bucket{${before}le="+Inf"} ${seen}`);
  lines.push(`${name}_sum${own} ${sumMs / 1_000}`, `${name}_count${own} ${seen}`);
  return lines.join('\n');
}
