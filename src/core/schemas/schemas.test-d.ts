import type { TSchema } from 'typebox';
import type * as access from '../access.js';
import type * as artifact from '../artifact.js';
import type * as audit from '../audit.js';
import type { Execution } from '../execution.js';
import type * as job from '../job.js';
import type { Quotas } from '../quotas.js';
import type * as rate from '../rate.js';
import type * as schedule from '../schedule.js';
import type * as secret from '../secret.js';
import type * as task from '../task-definition.js';
import type * as wire from '../wire.js';
import type * as workflow from '../workflow.js';
import type * as artifacts from './artifact.js';
import type * as attempts from './attempt.js';
import type * as audits from './audit.js';
import type * as clusters from './cluster.js';
import type * as ids from './ids.js';
import type * as jobs from './job.js';
import type * as keys from './key.js';
import type * as limits from './limits.js';
import type * as many from './many-jobs.js';
import type { Frozen, Shape } from './object.js';
import type * as origins from './origin.js';
import type * as queries from './query.js';
import type * as queues from './queue.js';
import type * as schedules from './schedule.js';
import type * as secrets from './secret.js';
import type * as submissions from './submission.js';
import type * as targets from './target.js';
import type * as tasks from './task.js';
import type * as workers from './worker.js';
import type * as workflows from './workflow.js';

/**
 * Compiles only while the schemas describe the very shapes that the code works with, in both directions. The types of
 * the public contract are written out in `core`, so that programs need not compile TypeBox; here is the proof that they
 * say the same as the schemas.
 */

/** Identity, not assignability: either side may be assigned to the other though it lacks an optional field. */
type Equal<A, B> =
  (<T>() => T extends A ? 1 : 2) extends <T>() => T extends Frozen<B> ? 1 : 2
    ? true
    : { schema: A; shape: Frozen<B> };

type Same<S extends TSchema, T> = Equal<Shape<S>, T>;

type AllTrue<T extends readonly true[]> = T;

type OrNull<T> = { [K in keyof T]: T[K] | null };

export type Inputs = AllTrue<
  [
    Same<typeof submissions.JobSubmission, job.JobSubmission>,
    Same<typeof submissions.Retry, job.RetryInput>,
    Same<typeof submissions.Delivery, job.Delivery>,
    Same<typeof submissions.BulkSubmission, { jobs: job.JobSubmission[] }>,
    Same<typeof submissions.JobChange, Pick<job.JobSubmission, 'runAt' | 'priority' | 'payload'>>,
    Same<typeof many.ManyJobs, wire.ManyJobsRequest>,
    Same<typeof many.Redrive, wire.ManyJobsRequest & { task?: string; queue?: string }>,
    Same<typeof schedules.ScheduleDefinition, schedule.ScheduleDefinition>,
    Same<typeof schedules.ScheduleInput, wire.ScheduleInput>,
    Same<typeof schedules.ScheduleChange, OrNull<schedule.ScheduleDefinition>>,
    Same<typeof schedules.ScheduleSet, wire.ScheduleSet>,
    Same<typeof schedules.PreviewRequest, wire.PreviewRequest>,
    Same<typeof schedules.BackfillRequest, wire.BackfillRequest>,
    Same<typeof tasks.TaskDefinition, task.TaskDefinition>,
    Same<typeof tasks.TaskInput, wire.TaskInput>,
    Same<typeof tasks.TaskChange, OrNull<task.TaskDefinition>>,
    Same<typeof limits.Rate, rate.RateView>,
    Same<
      typeof limits.QueueChange,
      Partial<Pick<wire.QueueView, 'weight' | 'concurrency' | 'keyConcurrency' | 'rate'>>
    >,
    Same<
      typeof limits.TenantChange,
      Partial<Pick<wire.TenantView, 'name' | 'weight' | 'rate'> & { quotas: Partial<Quotas> }>
    >,
    Same<typeof limits.Quotas, Quotas>,
    Same<typeof keys.KeyInput, access.KeyInput>,
    Same<typeof keys.KeyRotation, access.KeyRotation>,
    Same<
      typeof limits.NewTenant,
      Pick<wire.TenantView, 'id'> &
        Partial<Pick<wire.TenantView, 'name' | 'weight' | 'rate'> & { quotas: Partial<Quotas> }>
    >,
    Same<typeof targets.HandlerTarget, job.HandlerTarget>,
    Same<typeof targets.HttpTarget, job.HttpTarget>,
    Same<typeof targets.ExecTarget, job.ExecTarget>,
    Same<typeof targets.Target, job.Target>,
    Same<typeof targets.TargetType, job.TargetType>,
    Same<typeof attempts.AttemptError, job.JobError>,
    Same<typeof attempts.Execution, Execution>,
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
    Same<typeof workers.SecretsRequest, Required<wire.SecretsRequest>>,
    Same<typeof workers.ArtifactRequest, Required<wire.ArtifactRequest>>,
    Same<typeof artifacts.ArtifactInput, artifact.ArtifactInput>,
    Same<typeof secrets.SecretInput, secret.SecretInput>,
    Same<typeof secrets.SigningSecretInput, { keepOthersFor?: string }>,
    Same<
      typeof queries.JobListQuery,
      Page & Omit<wire.JobFilter, 'payload'> & { include?: string; payload?: Record<string, string> }
    >,
    Same<typeof queries.JobFilter, wire.JobFilter>,
    Same<typeof queries.ScheduleListQuery, Page & { include?: string }>,
    Same<typeof queries.LedgerQuery, Page & { from?: string; to?: string }>,
    Same<typeof workflows.RunIf, workflow.RunIf>,
    Same<typeof workflows.WorkflowStep, workflow.WorkflowStep>,
    Same<typeof workflows.WorkflowSubmission, workflow.WorkflowSubmission>,
    Same<typeof workflows.StepAddition, workflow.StepAddition>,
    Same<typeof workflows.WorkflowStart, workflow.WorkflowStart>,
    Same<typeof workflows.WorkflowDefinitionInput, workflow.WorkflowDefinitionInput>,
    Same<typeof workflows.WorkflowDefinitionView, workflow.StoredWorkflowDefinition>,
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
    Same<typeof jobs.SubmittedJob, job.SubmittedJob>,
    Same<typeof jobs.JobPage, wire.JobPage>,
    Same<typeof jobs.LogPage, wire.Page<wire.StoredLogLine>>,
    Same<typeof jobs.Why, wire.Why>,
    Same<typeof submissions.BulkAnswer, wire.BulkAnswer>,
    Same<typeof many.ManyJobsAnswer, wire.ManyJobsAnswer>,
    Same<typeof many.RedriveAnswer, wire.RedriveAnswer>,
    Same<typeof ids.MatchingIds, wire.MatchingIds>,
    Same<typeof schedules.ScheduleView, wire.ScheduleView>,
    Same<typeof schedules.SchedulePage, wire.Page<wire.ListedSchedule>>,
    Same<typeof schedules.OccurrencePage, wire.Page<wire.OccurrenceView>>,
    Same<typeof schedules.PreviewAnswer, wire.PreviewAnswer>,
    Same<typeof schedules.AppliedSchedules, wire.AppliedSchedules>,
    Same<typeof schedules.BackfillAnswer, wire.BackfillAnswer>,
    Same<typeof tasks.TaskPage, wire.Page<wire.TaskView>>,
    Same<typeof workers.WorkerWelcome, wire.WorkerWelcome>,
    Same<typeof workers.HeartbeatAnswer, wire.HeartbeatAnswer>,
    Same<typeof workers.ClaimAnswer, wire.ClaimAnswer>,
    Same<typeof workers.ReportAnswer, wire.ReportAnswer>,
    Same<typeof workers.SecretsAnswer, wire.SecretsAnswer>,
    Same<typeof workers.ArtifactAnswer, wire.ArtifactAnswer>,
    Same<typeof artifacts.ArtifactView, artifact.ArtifactView>,
    Same<typeof artifacts.AnnouncedArtifact, artifact.AnnouncedArtifact>,
    Same<typeof artifacts.ArtifactWithUses, artifact.ArtifactWithUses>,
    Same<typeof artifacts.ArtifactPage, wire.Page<artifact.ArtifactView>>,
    Same<typeof secrets.SecretPage, wire.Page<secret.SecretView>>,
    Same<typeof secrets.SigningSecretPage, wire.Page<secret.SigningSecretView>>,
    Same<typeof secrets.NewSigningSecret, secret.NewSigningSecret>,
    Same<typeof secrets.SecretKeysView, secret.SecretKeysView>,
    Same<typeof secrets.RekeyAnswer, secret.RekeyAnswer>,
    Same<typeof workers.WorkerPage, wire.Page<wire.WorkerView>>,
    Same<typeof queues.QueuePage, wire.Page<wire.QueueView>>,
    Same<typeof origins.OriginPage, wire.Page<wire.OriginView>>,
    Same<typeof limits.TenantPage, wire.Page<wire.TenantView>>,
    Same<typeof keys.NewKeyView, access.NewKeyView>,
    Same<typeof audits.AuditChains, audit.AuditChainsView>,
    Same<typeof audits.AuditPage, wire.Page<audit.AuditView>>,
    Same<typeof keys.KeyPage, wire.Page<access.KeyView>>,
    Same<typeof clusters.ClusterView, wire.ClusterView>,
    Same<typeof clusters.StatsView, wire.StatsView>,
    Same<
      typeof clusters.HealthView,
      { ok: boolean; checks?: Record<string, { ok: boolean; detail: string }> }
    >,
  ]
>;
