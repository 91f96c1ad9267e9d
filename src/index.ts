export { ApiClient, type ApiClientOptions } from './client/api-client.js';
export {
  type ArtifactListOptions,
  Artifacts,
  type PullOptions,
  type PushOptions,
} from './client/artifacts.js';
export {
  BatchFailedError,
  BatchHandle,
  type BatchListOptions,
  type BatchOptions,
  type Member,
  type MemberOptions,
  type MemberResults,
  member,
} from './client/batch-handle.js';
export type { EventOptions, HelloEvent, ResetEvent, StreamedEvent, SumEvent } from './client/events.js';
export type { RepeatableRequest } from './client/idempotency-key.js';
export type { JobFilterOptions } from './client/job-filter.js';
export {
  type ChangeOptions,
  JobFailedError,
  JobHandle,
  type ListOptions,
  type ResultOptions,
} from './client/job-handle.js';
export type {
  JobSelection,
  ManyOptions,
  ManyProgress,
  ManyResult,
} from './client/many-jobs.js';
export type { PageOptions } from './client/pages.js';
export {
  type BatchScheduleOptions,
  scheduleBatch,
  scheduleWorkflow,
  type WorkflowScheduleOptions,
} from './client/run-schedules.js';
export {
  type BuiltSchedule,
  type OccurrencesOptions,
  type RunScheduleOptions,
  ScheduleHandle,
  type ScheduleInputOption,
  type ScheduleOptions,
  type ScheduleTiming,
} from './client/schedule-handle.js';
export {
  type RunScheduleEntry,
  type ScheduleEntry,
  type SchedulesOptions,
  type SchedulesResult,
  schedule,
  type TaskScheduleEntry,
} from './client/schedules-as-code.js';
export { Secrets, type SigningSecretOptions, SigningSecrets } from './client/secrets.js';
export { BulkError } from './client/task-submission.js';
export { type TaskChanges, Tasks } from './client/tasks.js';
export type { TransactionClient } from './client/transaction-client.js';
export {
  type RerunOptions,
  type RetryWorkflowOptions,
  type StartDefinedOptions,
  type StartOptions,
  WorkflowFailedError,
  type WorkflowGetOptions,
  WorkflowHandle,
  type WorkflowListOptions,
} from './client/workflow-handle.js';
export type {
  ArtifactKind,
  ArtifactState,
  ArtifactUse,
  ArtifactView,
  ArtifactWithUses,
} from './core/artifact.js';
export type { Batch, BatchMember, BatchState, BatchSummary, OnMemberFailure } from './core/batch.js';
export type { SubmitOptions, TaskOrName } from './core/build-submission.js';
export type { CallResult } from './core/call-result.js';
export type { Duration } from './core/duration.js';
export { type ErrorCode, type FieldError, PunctualError } from './core/errors.js';
export type { EventFilter, EventKind, EventType, PunctualEvent } from './core/events.js';
export { type ExecProgram, exec } from './core/exec-target.js';
export type { WorkerGateway } from './core/gateway.js';
export { type HttpCall, http } from './core/http-target.js';
export type {
  Attempt,
  AttemptOutcome,
  Delivery,
  EndError,
  ExecLimits,
  ExecTarget,
  HandlerTarget,
  HttpTarget,
  Isolation,
  Job,
  JobError,
  JobPart,
  JobState,
  JobSubmission,
  Labels,
  ListedJob,
  Progress,
  RelativeList,
  RetryInput,
  SecretReference,
  SubmittedJob,
  Target,
} from './core/job.js';
export type { KeyMode, Repetition } from './core/keys.js';
export type { Log } from './core/log.js';
export type { RateText as Rate, RateView } from './core/rate.js';
export type { Overlap, ScheduleDefinition } from './core/schedule.js';
export type { NewSigningSecret, SecretInput, SecretView, SigningSecretView } from './core/secret.js';
export type { SchemaInput, SchemaOutput, StandardSchema } from './core/standard-schema.js';
export {
  type AnyTask,
  type Handler,
  type JobContext,
  type JobLog,
  type Json,
  type Middleware,
  type MiddlewareContext,
  PermanentError,
  type Task,
  type TaskDefaults,
  type TaskOptions,
  task,
} from './core/task.js';
export type { KeyPath, TaskDefinition } from './core/task-definition.js';
export {
  type VerifiedWebhook,
  type VerifyWebhookOptions,
  verifyWebhook,
  WebhookError,
  type WebhookHeaders,
} from './core/webhook.js';
export type {
  Assignment,
  BackfillAnswer,
  ErrorGroupsView,
  ErrorGroupView,
  ForecastMinute,
  ForecastView,
  OccurrenceState,
  OccurrenceView,
  QueueHistoryView,
  QueueMinuteView,
  QueueView,
  RedriveAnswer,
  RefusedJob,
  ScheduleView,
  SecretsAnswer,
  SecretsRequest,
  StatsView,
  StoredLogLine,
  TaskView,
  WaitingView,
} from './core/wire.js';
export type { Given, Promised, Reference } from './core/workflow/result-reference.js';
export {
  type AddedStepOptions,
  type AddedStepPlace,
  type AnyStep,
  type BuiltWorkflow,
  type InnerArguments,
  type InnerResult,
  type ResultOf,
  type Returned,
  type Spawn,
  type SpawnOptions,
  type Step,
  type StepArguments,
  type StepOptions,
  type StepPlace,
  type StepSpawner,
  type WorkflowBuilder,
  type WorkflowDefinition,
  type WorkflowOptions,
  workflow,
} from './core/workflow/workflow-builder.js';
export type {
  AddedSteps,
  CriticalPath,
  CriticalStep,
  EventWait,
  FailurePolicy,
  InnerWorkflow,
  ListedWorkflow,
  ListedWorkflowDefinition,
  NamedWorkflow,
  RunIf,
  RunningPolicy,
  StepAddition,
  StepAttempt,
  StoredWorkflowDefinition,
  Workflow,
  WorkflowState,
  WorkflowStep,
  WorkflowSteps,
  WorkflowStepView,
  WorkflowSubmission,
} from './core/workflow.js';
export { type ConnectOptions, connect } from './sdk/connect.js';
export type { QueueLimitOptions } from './sdk/punctual.js';
export {
  type BulkOptions,
  type InputArguments,
  type InputOfDefined,
  type OutputOfDefined,
  Punctual,
  type PunctualParts,
  type RedriveOptions,
  type SubmitOneOptions,
} from './sdk/punctual.js';
export { type TestContext, type TestContextOptions, testContext } from './sdk/test-context.js';
export type { Method, RequestOptions, StreamOptions, Transport } from './transport/transport.js';
export type {
  EndedAttempt,
  WorkerEnd,
  WorkerEvents,
  WorkerOptions,
  WorkerPhase,
  WorkerStatus,
} from './worker/worker-options.js';
export { WorkerRuntime } from './worker/worker-runtime.js';
