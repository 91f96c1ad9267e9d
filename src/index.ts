export { ApiClient, type ApiClientOptions } from './client/api-client.js';
export { BulkError } from './client/bulk.js';
export { type ConnectOptions, connect } from './client/connect.js';
export { JobFailedError, JobHandle, type ResultOptions } from './client/job-handle.js';
export {
  type BulkOptions,
  type InputArguments,
  Punctual,
  type PunctualParts,
  type SubmitOneOptions,
} from './client/punctual.js';
export type { QueueLimitOptions } from './client/queues.js';
export {
  type OccurrencesOptions,
  ScheduleHandle,
  type ScheduleInputOption,
  type ScheduleOptions,
  type ScheduleTiming,
} from './client/schedule.js';
export type { SubmitOptions } from './client/submission.js';
export type { TransactionClient } from './client/transaction.js';
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
export type {
  Assignment,
  BackfillAnswer,
  OccurrenceState,
  OccurrenceView,
  QueueView,
  ScheduleView,
} from './core/wire.js';
export { PermanentError } from './worker/failure.js';
export type { JobContext, JobLog } from './worker/job-context.js';
export type { Json } from './worker/json-type.js';
export type { SchemaInput, SchemaOutput, StandardSchema } from './worker/standard-schema.js';
export {
  type AnyTask,
  type Handler,
  type SchemaTaskOptions,
  type Task,
  type TaskDefaults,
  type TaskOptions,
  task,
} from './worker/task.js';
export type { Method, RequestOptions, Transport } from './worker/transport.js';
export type { WorkerEvents, WorkerOptions } from './worker/worker-options.js';
export {
  type WorkerEnd,
  type WorkerPhase,
  WorkerRuntime,
  type WorkerStatus,
} from './worker/worker-runtime.js';
