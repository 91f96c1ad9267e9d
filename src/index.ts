export { ApiClient, type ApiClientOptions } from './client/api-client.js';
export { JobFailedError, JobHandle, type ResultOptions } from './client/job-handle.js';
export {
  type OccurrencesOptions,
  ScheduleHandle,
  type ScheduleInputOption,
  type ScheduleOptions,
  type ScheduleTiming,
} from './client/schedule-handle.js';
export type { SubmitOptions, TransactionClient } from './client/task-submission.js';
export { BulkError } from './client/task-submission.js';
export { type ErrorCode, type FieldError, PunctualError } from './core/errors.js';
export type { WorkerGateway } from './core/gateway.js';
export type {
  Attempt,
  AttemptOutcome,
  Delivery,
  ExecTarget,
  HandlerTarget,
  HttpTarget,
  Job,
  JobError,
  JobState,
  JobSubmission,
  Labels,
  Progress,
  RetryInput,
  Target,
} from './core/job.js';
export type { RateView } from './core/rate.js';
export type { Overlap, ScheduleDefinition } from './core/schedule.js';
export type { SchemaInput, SchemaOutput, StandardSchema } from './core/standard-schema.js';
export {
  type AnyTask,
  type Handler,
  type JobContext,
  type JobLog,
  type Json,
  PermanentError,
  type SchemaTaskOptions,
  type Task,
  type TaskDefaults,
  type TaskOptions,
  task,
} from './core/task.js';
export type {
  Assignment,
  BackfillAnswer,
  OccurrenceState,
  OccurrenceView,
  QueueView,
  ScheduleView,
} from './core/wire.js';
export { type ConnectOptions, connect } from './sdk/connect.js';
export type { QueueLimitOptions } from './sdk/punctual.js';
export {
  type BulkOptions,
  type InputArguments,
  Punctual,
  type PunctualParts,
  type SubmitOneOptions,
} from './sdk/punctual.js';
export type { Method, RequestOptions, Transport } from './transport/transport.js';
export type {
  WorkerEnd,
  WorkerEvents,
  WorkerOptions,
  WorkerPhase,
  WorkerStatus,
} from './worker/worker-options.js';
export { WorkerRuntime } from './worker/worker-runtime.js';
