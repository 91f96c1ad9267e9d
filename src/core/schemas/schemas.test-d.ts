import type { TSchema } from 'typebox';
import type * as job from '../job.js';
import type * as rate from '../rate.js';
import type * as schedule from '../schedule.js';
import type * as wire from '../wire.js';
import type * as attempts from './attempt.js';
import type * as clusters from './cluster.js';
import type * as jobs from './job.js';
import type * as limits from './limits.js';
import type { Frozen, Shape } from './object.js';
import type * as queries from './query.js';
import type * as queues from './queue.js';
import type * as schedules from './schedule.js';
import type * as submissions from './submission.js';
import type * as targets from './target.js';
import type * as workers from './worker.js';

/** Compiles only while the schemas describe the very shapes that the code works with, in both directions. */

/** Identity, not assignability: either side may be assigned to the other though it lacks an optional field. */
type Equal<A, B> =
  (<T>() => T extends A ? 1 : 2) extends <T>() => T extends Frozen<B> ? 1 : 2
    ? true
    : { schema: A; shape: Frozen<B> };

type Same<S extends TSchema, T> = Equal<Shape<S>, T>;

type AllTrue<T extends readonly true[]> = T;

/** The public contract, written out: what the schemas give to the code must not change by accident. */
interface Retry {
  maxAttempts?: number;
  backoff?: { base?: string; factor?: number; max?: string; jitter?: number };
  onWorkerLost?: { maxAttempts?: number };
}

type Target =
  | { type: 'handler'; name: string }
  | { type: 'http'; url: string; method?: string; headers?: Record<string, string>; body?: unknown }
  | { type: 'exec'; artifact?: string; command?: string; args?: string[]; env?: Record<string, string> };

interface OfEveryJob {
  task?: string;
  target?: Target;
  payload?: unknown;
  queue?: string;
  priority?: number;
  retry?: Retry;
  timeout?: string;
  delivery?: 'at-least-once' | 'at-most-once';
  concurrencyKey?: string;
  requires?: Record<string, string>;
}

interface Submission extends OfEveryJob {
  runAt?: string;
  delay?: string;
  key?: string;
  startBefore?: string;
  hold?: boolean;
}

interface When {
  cron?: string;
  every?: string;
  at?: string;
  timezone?: string;
  dst?: { gap?: 'shift' | 'skip'; overlap?: 'first' | 'last' | 'both' };
  startAt?: string;
  endAt?: string;
}

interface Definition extends When, OfEveryJob {
  jitter?: string;
  catchUp?: 'none' | 'latest' | 'all' | { within: string };
  overlap?: 'allow' | 'skip' | 'queue' | 'cancel-previous';
  lateAfter?: string;
}

export type Contract = AllTrue<
  [
    Equal<job.JobSubmission, Submission>,
    Equal<job.Target, Target>,
    Equal<job.RetryInput, Retry>,
    Equal<schedule.ScheduleDefinition, Definition>,
    Equal<wire.ScheduleInput, Definition & { name: string; paused?: boolean }>,
    Equal<wire.PreviewRequest, When & { from?: string; count?: number }>,
    Equal<wire.BackfillRequest, { from: string; to: string; dryRun?: boolean }>,
  ]
>;

type OrNull<T> = { [K in keyof T]: T[K] | null };

export type Inputs = AllTrue<
  [
    Same<typeof submissions.BulkSubmission, { jobs: Submission[] }>,
    Same<typeof submissions.JobChange, Pick<Submission, 'runAt' | 'priority' | 'payload'>>,
    Same<typeof submissions.Redrive, { task?: string; queue?: string; all?: boolean; dryRun?: boolean }>,
    Same<typeof schedules.ScheduleChange, OrNull<Definition>>,
    Same<typeof limits.Rate, rate.RateView>,
    Same<
      typeof limits.QueueChange,
      Partial<Pick<wire.QueueView, 'weight' | 'concurrency' | 'keyConcurrency' | 'rate'>>
    >,
    Same<typeof limits.TenantChange, Partial<Pick<wire.TenantView, 'name' | 'weight' | 'rate'>>>,
    Same<
      typeof limits.NewTenant,
      Pick<wire.TenantView, 'id'> & Partial<Pick<wire.TenantView, 'name' | 'weight' | 'rate'>>
    >,
    Same<typeof targets.TargetType, job.TargetType>,
    Same<typeof attempts.AttemptError, job.JobError>,
    Same<typeof attempts.AttemptResult, wire.AttemptResult>,
    Same<typeof attempts.ProgressReport, wire.ProgressReport>,
    Same<typeof attempts.LogReport, wire.LogReport>,
    Same<typeof attempts.Completion, { fence: number; startedAt?: string; result?: unknown }>,
    Same<
      typeof attempts.Failure,
      {
        fence: number;
        startedAt?: string;
        error: job.JobError;
        retryable?: boolean;
        retryAfterMs?: number;
      }
    >,
    Same<typeof workers.WorkerRegistration, wire.WorkerRegistration>,
    Same<typeof workers.Heartbeat, wire.Heartbeat>,
    Same<typeof workers.Leave, wire.Leave>,
    Same<typeof workers.ClaimRequest, wire.ClaimRequest>,
    Same<typeof workers.ReportRequest, wire.ReportRequest>,
    Same<
      typeof queries.JobListQuery,
      Page & {
        include?: string;
        state?: job.JobState;
        task?: string;
        queue?: string;
        key?: string;
        worker?: string;
        schedule?: string;
      }
    >,
    Same<typeof queries.ScheduleListQuery, Page & { include?: string }>,
    Same<typeof queries.LedgerQuery, Page & { from?: string; to?: string }>,
  ]
>;

/** Which part of a list to read. */
interface Page {
  limit?: number;
  after?: string;
}

export type Answers = AllTrue<
  [
    Same<typeof jobs.Job, job.Job>,
    Same<typeof jobs.JobPage, wire.Page<job.ListedJob>>,
    Same<typeof jobs.LogPage, wire.Page<wire.StoredLogLine>>,
    Same<typeof jobs.Why, wire.Why>,
    Same<typeof submissions.BulkAnswer, { ids: string[] }>,
    Same<typeof submissions.RedriveAnswer, wire.RedriveAnswer>,
    Same<typeof schedules.ScheduleView, wire.ScheduleView>,
    Same<typeof schedules.SchedulePage, wire.Page<wire.ListedSchedule>>,
    Same<typeof schedules.OccurrencePage, wire.Page<wire.OccurrenceView>>,
    Same<typeof schedules.PreviewAnswer, wire.PreviewAnswer>,
    Same<typeof schedules.BackfillAnswer, wire.BackfillAnswer>,
    Same<typeof workers.WorkerWelcome, wire.WorkerWelcome>,
    Same<typeof workers.HeartbeatAnswer, wire.HeartbeatAnswer>,
    Same<typeof workers.ClaimAnswer, wire.ClaimAnswer>,
    Same<typeof workers.ReportAnswer, wire.ReportAnswer>,
    Same<typeof workers.WorkerPage, wire.Page<wire.WorkerView>>,
    Same<typeof queues.QueuePage, wire.Page<wire.QueueView>>,
    Same<typeof limits.TenantPage, wire.Page<wire.TenantView>>,
    Same<typeof clusters.ClusterView, wire.ClusterView>,
    Same<typeof clusters.StatsView, wire.StatsView>,
    Same<
      typeof clusters.HealthView,
      { ok: boolean; checks?: Record<string, { ok: boolean; detail: string }> }
    >,
  ]
>;
