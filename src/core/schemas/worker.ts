import Type from 'typebox';
import { ARTIFACT_KINDS } from '../artifact.js';
import { MAX_SECRETS_OF_CALL } from '../secret.js';
import { ALL_QUEUES } from '../wire.js';
import { AttemptResult } from './attempt.js';
import { Rate, RateView } from './limits.js';
import { nullable, page, strict } from './object.js';
import { Target, TargetType } from './target.js';
import { Epoch, Fence, Id, Json, Labels, line, Name, Wait } from './text.js';

const Slots = Type.Integer({ minimum: 1, maximum: 10_000 });

/** How a worker introduces itself. */
export const WorkerRegistration = strict(
  {
    name: line(128),
    queues: Type.Array(Type.Union([Name, Type.Literal(ALL_QUEUES)]), { minItems: 1, maxItems: 1_000 }),
    slots: Slots,
    targets: Type.Array(TargetType, { minItems: 1, maxItems: 3 }),
    tasks: Type.Array(Name, { maxItems: 10_000 }),
    labels: Labels,
    rate: Type.Optional(Rate),
    shared: Type.Optional(Type.Boolean()),
    tokens: Type.Optional(
      Type.Boolean({
        description: 'False when assignments need no tokens: the worker reports under its own key.',
      }),
    ),
    replaces: Type.Optional(Id),
    version: Type.Optional(line(64)),
  },
  {
    title: 'WorkerRegistration',
    examples: [
      {
        name: 'mailer-1',
        queues: ['default'],
        slots: 10,
        targets: ['handler'],
        tasks: ['greet'],
        labels: {},
      },
    ],
  },
);

/** The session that a registration opened. */
export const WorkerWelcome = Type.Object(
  {
    workerId: Type.String(),
    shard: Type.Integer(),
    epoch: Type.Integer(),
    heartbeatInterval: Type.String(),
    workerTimeout: Type.String(),
    now: Type.String({ format: 'date-time' }),
  },
  { title: 'WorkerWelcome' },
);

const FencedJob = strict({ jobId: Id, fence: Fence }, { title: 'FencedJob' });

/** A sign of life with everything received whose report is not yet answered. */
export const Heartbeat = strict(
  {
    epoch: Epoch,
    running: Type.Array(FencedJob, { maxItems: 100_000 }),
    refused: Type.Optional(Type.Array(FencedJob, { maxItems: 100_000 })),
  },
  { title: 'Heartbeat' },
);

/** A worker's last word; nothing need be said. */
export const Leave = strict(
  {
    settled: Type.Optional(
      Type.Boolean({
        description:
          'True when everything that arrived is reported and nothing more will be started: what was handed over and never arrived then waits again. Otherwise it counts as lost, because it may be running.',
      }),
    ),
  },
  { title: 'Leave', description: 'May be left out.' },
);

/** What the leader wants of the worker. */
export const HeartbeatAnswer = Type.Object(
  {
    epoch: Type.Integer(),
    stop: Type.Array(FencedJob),
    drain: Type.Boolean(),
    now: Type.String({ format: 'date-time' }),
  },
  { title: 'HeartbeatAnswer' },
);

/** How many jobs a worker can take, and how long it waits for the first. */
export const ClaimRequest = strict({ max: Slots, wait: Wait }, { title: 'ClaimRequest' });

const Assignment = Type.Object(
  {
    jobId: Type.String(),
    tenant: Type.String(),
    task: Type.Union([Type.String(), Type.Null()]),
    queue: Type.String(),
    target: Target,
    payload: Json,
    payloadText: Type.Optional(
      Type.String({
        description:
          'Only for http targets, and only if the payload holds numbers that a program may not read exactly: its JSON as it was submitted, which is the body of a call whose target has none.',
      }),
    ),
    attempt: Type.Integer(),
    fence: Type.Integer(),
    epoch: Type.Integer(),
    timeoutMs: Type.Integer(),
    token: Type.Optional(
      Type.String({
        description:
          'Allows to report about this job and to add steps to its workflow, and nothing else; left out if the worker wants none.',
      }),
    ),
    workflow: Type.Optional(
      Type.String({ description: 'The workflow that the job is a step of; missing for other jobs.' }),
    ),
    traceparent: Type.Optional(
      Type.String({ description: 'The context of the trace that the submission was part of.' }),
    ),
    dueAt: Type.Optional(
      Type.String({
        format: 'date-time',
        description: 'When the attempt was due; only with `traceparent` and for http targets.',
      }),
    ),
    receiverToken: Type.Optional(
      Type.String({
        description:
          'For the receiver of an http call: opens the routes that report about this attempt, nothing else.',
      }),
    ),
    delivery: Type.Optional(
      Type.Literal('at-most-once', {
        description: 'Only for http targets that must be called at most once.',
      }),
    ),
  },
  { title: 'Assignment' },
);

/** The attempts handed over. */
export const ClaimAnswer = Type.Object(
  { epoch: Type.Integer(), jobs: Type.Array(Assignment), stop: Type.Optional(Type.Array(FencedJob)) },
  { title: 'ClaimAnswer' },
);

/** Results of attempts, at most one per job. */
export const ReportRequest = strict(
  { results: Type.Array(AttemptResult, { maxItems: 10_000 }) },
  { title: 'ReportRequest' },
);

/** Which results count, and which came from an attempt that no longer owns its job. */
export const ReportAnswer = Type.Object(
  { epoch: Type.Integer(), accepted: Type.Array(Type.String()), stale: Type.Array(Type.String()) },
  { title: 'ReportAnswer' },
);

/** Which secrets a worker needs for the call of an attempt. Over the network, the attempt's own token must be there. */
export const SecretsRequest = strict(
  {
    jobId: Id,
    fence: Fence,
    token: line(12_288),
    names: Type.Array(Name, { maxItems: MAX_SECRETS_OF_CALL, uniqueItems: true }),
  },
  { title: 'SecretsRequest' },
);

/** Secrets for one call. */
export const SecretsAnswer = Type.Object(
  {
    values: Type.Record(Type.String(), Type.String()),
    signing: Type.Array(
      Type.String({ description: 'A secret with which to sign the call; all of them do, the newest first.' }),
    ),
  },
  { title: 'SecretsAnswer' },
);

/** Asks for the artifact that an attempt runs. */
export const ArtifactRequest = strict(
  { jobId: Id, fence: Fence, token: line(12_288) },
  { title: 'ArtifactRequest' },
);

/** What a worker is given to run. */
export const ArtifactAnswer = Type.Object(
  {
    id: Type.String(),
    sha256: Type.String(),
    size: Type.Integer(),
    kind: Type.Enum([...ARTIFACT_KINDS], { type: 'string' }),
    machine: nullable(Type.String({ description: 'The processor that a program is made for.' })),
    url: Type.String({ description: 'Where the bytes, or a range of them, can be read without a key.' }),
    headers: Type.Record(Type.String(), Type.String()),
    expiresAt: Type.String({ format: 'date-time' }),
  },
  { title: 'ArtifactAnswer' },
);

/** A worker as the API shows it. */
export const WorkerView = Type.Object(
  {
    id: Type.String(),
    tenant: Type.String(),
    name: Type.String(),
    state: Type.Enum(['alive', 'draining', 'dead'], { type: 'string' }),
    queues: Type.Array(Type.String()),
    targets: Type.Array(TargetType),
    tasks: Type.Array(Type.String()),
    labels: Labels,
    slots: Type.Integer(),
    rate: nullable(RateView),
    shared: Type.Boolean(),
    running: Type.Integer(),
    version: nullable(Type.String({ description: 'Null if the worker has not said it.' })),
    registeredAt: Type.String({ format: 'date-time' }),
    lastSeen: Type.String({ format: 'date-time' }),
  },
  { title: 'Worker' },
);

/** The workers of a tenant. */
export const WorkerPage = page('WorkerPage', WorkerView);
