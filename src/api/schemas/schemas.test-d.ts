import type { Static, TSchema } from 'typebox';
import type * as job from '../../core/job.js';
import type * as wire from '../../core/wire.js';
import type { AttemptError, AttemptResult, LogReport, ProgressReport } from './attempt.js';
import type { ClusterView, StatsView } from './cluster.js';
import type { Job, JobPage, LogPage, Why } from './job.js';
import type { QueuePage } from './queue.js';
import type { JobSubmission, RedriveAnswer, Retry } from './submission.js';
import type { Target } from './target.js';
import type {
  ClaimAnswer,
  ClaimRequest,
  Heartbeat,
  HeartbeatAnswer,
  Leave,
  ReportAnswer,
  ReportRequest,
  WorkerPage,
  WorkerRegistration,
  WorkerWelcome,
} from './worker.js';

/** Compiles only while the schemas describe the very shapes that the code works with, in both directions. */

type Frozen<T> = T extends readonly (infer Item)[]
  ? readonly Frozen<Item>[]
  : T extends object
    ? { readonly [K in keyof T]: Frozen<T[K]> }
    : T;

type Same<S extends TSchema, Shape> = [Frozen<Static<S>>] extends [Frozen<Shape>]
  ? [Frozen<Shape>] extends [Frozen<Static<S>>]
    ? true
    : 'the schema asks for more than the shape has'
  : 'the schema lacks something of the shape';

type AllTrue<T extends readonly true[]> = T;

export type Inputs = AllTrue<
  [
    Same<typeof JobSubmission, job.JobSubmission>,
    Same<typeof Target, job.Target>,
    Same<typeof Retry, job.RetryInput>,
    Same<typeof AttemptError, job.JobError>,
    Same<typeof AttemptResult, wire.AttemptResult>,
    Same<typeof ProgressReport, wire.ProgressReport>,
    Same<typeof LogReport, wire.LogReport>,
    Same<typeof WorkerRegistration, wire.WorkerRegistration>,
    Same<typeof Heartbeat, wire.Heartbeat>,
    Same<typeof Leave, wire.Leave>,
    Same<typeof ClaimRequest, wire.ClaimRequest>,
    Same<typeof ReportRequest, wire.ReportRequest>,
  ]
>;

export type Answers = AllTrue<
  [
    Same<typeof Job, job.Job>,
    Same<typeof JobPage, wire.Page<job.ListedJob>>,
    Same<typeof LogPage, wire.Page<wire.StoredLogLine>>,
    Same<typeof Why, wire.Why>,
    Same<typeof RedriveAnswer, wire.RedriveAnswer>,
    Same<typeof WorkerWelcome, wire.WorkerWelcome>,
    Same<typeof HeartbeatAnswer, wire.HeartbeatAnswer>,
    Same<typeof ClaimAnswer, wire.ClaimAnswer>,
    Same<typeof ReportAnswer, wire.ReportAnswer>,
    Same<typeof WorkerPage, wire.Page<wire.WorkerView>>,
    Same<typeof QueuePage, wire.Page<wire.QueueView>>,
    Same<typeof ClusterView, wire.ClusterView>,
    Same<typeof StatsView, wire.StatsView>,
  ]
>;
