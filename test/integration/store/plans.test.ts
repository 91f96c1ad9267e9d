import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseSubmission } from '../../../src/core/submission.js';
import {
  type Addition,
  addSteps,
  countFigures,
  findBelow,
  readAdder,
  readFigures,
  readJoiners,
  readStepsBeside,
} from '../../../src/store/add-steps.js';
import { findKeys, listKeys, useKeys } from '../../../src/store/api-keys.js';
import { resolveArtifacts } from '../../../src/store/artifact-names.js';
import { jobsOfArtifact } from '../../../src/store/artifact-uses.js';
import {
  findArtifact,
  findNewest,
  findVersion,
  listArtifacts,
  listOutputs,
} from '../../../src/store/artifacts.js';
import { listChain, listNewest } from '../../../src/store/audit.js';
import {
  findArrived,
  findOverdue,
  freeArtifactJobs,
  nextOverdue,
  walkAwaited,
} from '../../../src/store/awaited-artifacts.js';
import { readRuns, takePassedOver } from '../../../src/store/backfill.js';
import {
  BEFORE_ALL_BATCHES,
  findBatch,
  listBatches,
  readBatch,
  readEndedMembers,
  readMemberIds,
  readOpenBatches,
  readOverdueBatches,
  readWaitingMembers,
} from '../../../src/store/batch-rows.js';
import {
  findCancelled,
  forgetCancelRequests,
  readCancelRequests,
} from '../../../src/store/cancel-requests.js';
import { readAhead } from '../../../src/store/change-schedule.js';
import { claimJobs, claimKnownJobs } from '../../../src/store/claim-jobs.js';
import {
  cancelClaims,
  handOnClaims,
  readWork,
  releaseClaims,
  saveProgress,
} from '../../../src/store/claims.js';
import { countWaitingLater } from '../../../src/store/count-later.js';
import { type Pool, type Queryable, withHotPlans } from '../../../src/store/database.js';
import { deleteEndedJobs } from '../../../src/store/delete-jobs.js';
import { cancelBatch, endBatch, retryBatch } from '../../../src/store/end-batch.js';
import { endWaitingJobs, findExpired, nextExpiry } from '../../../src/store/end-waiting-jobs.js';
import { findIds } from '../../../src/store/find-ids.js';
import { findJobs, locateJobs } from '../../../src/store/find-jobs.js';
import { finishJobs, retryJobs } from '../../../src/store/finish-jobs.js';
import {
  insertScheduledJobs,
  moveSchedules,
  recordOccurrences,
} from '../../../src/store/fire-occurrences.js';
import { type Forgettable, forgetArtifact, isJobThere } from '../../../src/store/forget-artifacts.js';
import { forgetOld } from '../../../src/store/forget-old.js';
import { forgetWorkflows } from '../../../src/store/forget-workflows.js';
import { holdWorkflow, parkSteps, unparkSteps } from '../../../src/store/hold-workflow.js';
import { findAnswer } from '../../../src/store/idempotency.js';
import { readFamily, readInnerGraph, shareReach, tieInner } from '../../../src/store/inner-workflows.js';
import { addLogLines, readLogLines } from '../../../src/store/job-logs.js';
import { lookAtOutputs } from '../../../src/store/job-outputs.js';
import { Stride } from '../../../src/store/job-search.js';
import { keepJobs, readJobsOfDay, readOlderThan } from '../../../src/store/keep-history.js';
import { findHolders } from '../../../src/store/key-holders.js';
import { findJobsByKeyPrefix } from '../../../src/store/key-prefix.js';
import { findKeyHolders, lockKeys, registerKeys, renewKeys, takeOverKeys } from '../../../src/store/keys.js';
import type { TermKey } from '../../../src/store/leader-statement.js';
import { listFound } from '../../../src/store/list-jobs.js';
import { Names, requireNames } from '../../../src/store/names.js';
import { judgeOccurrences, nextJudgement, readLedger } from '../../../src/store/occurrences.js';
import { OriginBuckets } from '../../../src/store/origin-buckets.js';
import {
  findOriginLimits,
  limitOrigin,
  listOriginLimits,
  unlimitOrigin,
} from '../../../src/store/origin-limits.js';
import {
  admitJobs,
  changeLater,
  changeLive,
  measureToAdmit,
  parseLater,
  postponeJobs,
  readSubmissions,
  readToAdmit,
  redriveJobs,
  unchanged,
} from '../../../src/store/place-jobs.js';
import { readNeeds } from '../../../src/store/queues.js';
import {
  BEFORE_ALL_SEGMENTS,
  findSegments,
  lookBack,
  readPages,
  readWaiting,
} from '../../../src/store/read-backlog.js';
import { findEnded, findKey, readJob } from '../../../src/store/read-job.js';
import { readFirstWaiting, readPrevious } from '../../../src/store/read-overlap.js';
import { readSubmittedSteps } from '../../../src/store/read-submitted-steps.js';
import {
  listWorkflows,
  readGraph,
  readParents,
  readRelatives,
  readStepHold,
  readStepIds,
  readSteps,
  readStepsNamed,
  readWait,
  readWorkflow,
} from '../../../src/store/read-workflows.js';
import { countByMasterKey } from '../../../src/store/rekey-secrets.js';
import { readGraphSteps, reopenSteps } from '../../../src/store/reopen-steps.js';
import { replaceJobs } from '../../../src/store/replace-jobs.js';
import {
  countSchedules,
  findSchedule,
  findScheduleWithLedger,
  listManaged,
  listSchedules,
  nextFire,
  readDueSchedules,
  readSchedule,
} from '../../../src/store/schedules.js';
import { listSecrets, readSealedSecrets, readTarget } from '../../../src/store/secrets.js';
import { listSigningSecrets, readSealedSigningSecrets } from '../../../src/store/signing-secrets.js';
import { startBatch, voidBatch } from '../../../src/store/start-batch.js';
import { readStepAttempts } from '../../../src/store/step-attempts.js';
import {
  addEvent,
  findEvents,
  findSteps,
  nextWake,
  readPayloads,
  readResult,
  readWaitingSteps,
  readWoken,
} from '../../../src/store/step-inputs.js';
import { readUnended, readUnswept } from '../../../src/store/stop-workflow.js';
import { type NewBatch, storeBatch } from '../../../src/store/submit-batch.js';
import { type NewJob, submitJobs } from '../../../src/store/submit-jobs.js';
import { findTask, listTasks, readTaskChanges, readTasks } from '../../../src/store/tasks.js';
import {
  addUsage,
  addUsageOfOne,
  countJobs,
  forgetUsage,
  forgetUsageOfOne,
  takeRoom,
} from '../../../src/store/tenant-usage.js';
import { BEFORE_ALL_JOBS, findNamesOf } from '../../../src/store/unused-names.js';
import { findUsedNames } from '../../../src/store/used-names.js';
import {
  BEFORE_ALL_VERSIONS,
  forgetVersions,
  listDefinitions,
  listVersions,
  readDefinition,
} from '../../../src/store/workflow-definitions.js';
import {
  applyPortion,
  findOutbox,
  NO_CHANGE,
  readOutbox,
  readOutboxOf,
  readPortion,
} from '../../../src/store/workflow-portions.js';
import { JOB_OF_KEYS, recordStatements } from './statement-recorder.js';
import { nobody, SUCCEEDED, TENANT, TestShard } from './test-shard.js';

const TERM: TermKey = { shard: 0, epoch: 1, holder: 'node-a' };
const JOBS = 100_000;
const CLAIMS = 20_000;
const LATER = 20_000;
const QUEUES = 20;
const NEEDS = 5_000;
const SCHEDULES = 20_000;
const PORTION = { rows: 10, bytes: 1_000_000 };

let shard: TestShard;
let close: () => Promise<void>;

/** Tables as large as they get, filled by the database itself. */
async function fill(): Promise<void> {
  const queues = `SELECT $2, 'q' || n, 0 FROM generate_series(1, $1::int) n`;
  await shard.pool.query(`INSERT INTO punctual.queues (tenant, name, created_at) ${queues}`, [
    QUEUES,
    TENANT,
  ]);
  await shard.pool.query(
    `INSERT INTO punctual.needs (signature, tenant, target, handler, labels)
     SELECT sha256(n::text::bytea), $2, 'handler', 'h' || n, '' FROM generate_series(1, $1::int) n`,
    [NEEDS, TENANT],
  );
  const columns = `id, tenant, queue, needs, rank, run_at, max_attempts, max_losses, at_most_once, timeout_ms,
    created_at, start_before, task, created_by, key, payload`;
  const values = `gen_random_uuid(), '${TENANT}', 1 + n % ${QUEUES}, 1 + n % 3, 5, n, 4, 3, false, 1000, 0,
    CASE WHEN n % 10 = 0 THEN n END, 'greet', 'test', CASE WHEN n % 4 = 0 THEN 'key-' || n END, 'null'`;
  const numbers = (count: number) => `generate_series(1, ${count}) n`;
  await shard.pool.query(`INSERT INTO punctual.jobs (${columns}) SELECT ${values} FROM ${numbers(JOBS)}`);
  await shard.pool.query(
    `INSERT INTO punctual.later (${columns}, admit_at) SELECT ${values}, n FROM ${numbers(LATER)}`,
  );
  await shard.pool.query(
    `INSERT INTO punctual.job_history (${columns}, attempts, failures, losses, state, finished_at)
     SELECT ${values}, 1, 0, 0, CASE WHEN n % 50 = 0 THEN 'failed' ELSE 'succeeded' END,
       $1::bigint + (n % 14) * 86400000
     FROM ${numbers(JOBS)}`,
    [Date.now()],
  );
  await shard.pool.query(
    `INSERT INTO punctual.job_history_kept (${columns}, attempts, failures, losses, state, finished_at, workflow)
     SELECT ${values}, 1, 0, 0, CASE WHEN n % 50 = 0 THEN 'failed' ELSE 'succeeded' END, n, gen_random_uuid()
     FROM ${numbers(LATER)}`,
  );
  await shard.pool.query(
    `INSERT INTO punctual.claims (job, fence, worker, epoch, claimed_at)
     SELECT id, 1, id, 1, 0 FROM punctual.jobs LIMIT ${CLAIMS}`,
  );
  await fillSchedules();
  await shard.pool.query(
    `INSERT INTO punctual.tasks (tenant, name, definition, created_at, created_by, changed_at, changed_by)
     SELECT 't' || n, 'greet', '{}', 0, 'test', 0, 'test' FROM ${numbers(SCHEDULES)}`,
  );
  await shard.pool.query(
    `INSERT INTO punctual.task_tenants (tenant, version, tasks, bytes) SELECT 't' || n, n, 1, 2 FROM ${numbers(SCHEDULES)}`,
  );
  await shard.pool.query(
    `INSERT INTO punctual.artifacts (id, tenant, name, version, sha256, size, runnable, state, created_at, created_by, ready_at,
       expires_at, used_at)
     SELECT gen_random_uuid(), '${TENANT}', 'a' || n % 100, n::text, n::text, 1, true, 'ready', 0, 'test', n, 0, 0
     FROM ${numbers(LATER)}`,
  );
  await shard.pool.query(
    'INSERT INTO punctual.keys SELECT tenant, key, id FROM punctual.jobs WHERE key IS NOT NULL',
  );
}

/** Schedules of which one in a hundred is due, and a ledger with a bit of everything. */
async function fillSchedules(): Promise<void> {
  await shard.pool.query(
    `INSERT INTO punctual.schedules (id, tenant, name, definition, paused, watermark, fire_at, last_job, created_at,
       created_by, changed_at, changed_by)
     SELECT gen_random_uuid(), '${TENANT}', 's' || n, '{"cron":"0 0 * * *","task":"greet"}', false, 0, n,
       gen_random_uuid(), 0, 'test', 0, 'test' FROM generate_series(1, ${SCHEDULES}) n`,
  );
  await shard.pool.query(
    `INSERT INTO punctual.occurrences (schedule, tenant, at, state, job, late_after, judge_at, recorded_at)
     SELECT s.id, s.tenant, n, CASE WHEN n = 3 THEN 'waiting' ELSE 'ran' END, s.last_job, 1000,
       CASE WHEN n = 1 THEN n END, n
     FROM punctual.schedules s, generate_series(1, 10) n`,
  );
}

/** Many workflows of ten steps each, of which some have ended. */
async function fillWorkflows(): Promise<void> {
  await shard.pool.query(
    `INSERT INTO punctual.workflows (id, tenant, name, steps, steps_left, on_failure, running, swept, created_at, created_by)
     SELECT gen_random_uuid(), '${TENANT}', 'w', 10, 10, 'stop', 'finish', n % 100 > 0, 0, 'test'
     FROM generate_series(1, 2000) n`,
  );
  await shard.pool.query(
    `INSERT INTO punctual.batches (id, tenant, on_failure, members, places, due_at, created_at, created_by)
     SELECT gen_random_uuid(), $2, 'continue', '{}', '[]', 0, 0, 'test' FROM generate_series(1, $1::int)`,
    [10_000, TENANT],
  );
  await shard.pool.query(
    `INSERT INTO punctual.steps (id, workflow, tenant, name, place, run_if, parents, parents_left, released)
     SELECT gen_random_uuid(), w.id, w.tenant, 's' || n, n, 'all-succeeded', 1, 1, false
     FROM punctual.workflows w, generate_series(1, 10) n`,
  );
  await shard.pool.query(
    `INSERT INTO punctual.edges SELECT a.id, b.id FROM punctual.steps a JOIN punctual.steps b
     ON b.workflow = a.workflow AND b.place = a.place + 1`,
  );
  await shard.pool.query(
    `INSERT INTO punctual.outbox SELECT s.id, s.workflow, 'succeeded', 0 FROM punctual.steps s WHERE s.place < 5`,
  );
}

beforeAll(async () => {
  ({ shard, close } = await TestShard.open());
  await shard.lead();
  await fill();
  await fillWorkflows();
});
afterAll(() => close());

type Run = (db: Queryable & Pool) => Promise<unknown>;
const ID = nobody();
const OTHER_ID = nobody();
const RETRY = { id: ID, fence: 1, outcome: 'failed', runAt: 0, lateBy: 0, attempt: '{}' } as const;
const LATER_JOB = { ...unchanged(ID), admitAt: 0, held: false };
const BEGINNING = { operator: true, tenant: TENANT, digits: '0198c4f2', limit: 5 };
const FOUND = (['live', 'later', 'history'] as const).map((place) => ({ id: ID, place }));
const CURSOR = { queue: 1, needs: 1, lane: 0, rank: 5, runAt: 0, id: ID };
const byQueue = (): Stride => Object.assign(new Stride({}), { byQueue: true });
const CANCEL = { id: ID, state: 'cancelled', error: null } as const;

const JOB_OF_DAY = { id: ID, tenant: TENANT, finishedAt: 0, bytes: 0 };
const NO_COUNTS = { jobs: 1, lateness: [1], latenessMs: 0 };
const BATCH: NewBatch = {
  ...{ id: ID, tenant: TENANT, onFailure: 'continue', startTimeoutMs: null },
  ...{ dueAt: 0, places: '[]', createdBy: 'test', scheduled: null },
};
const END_OF_STEP = { job: ID, workflow: ID, state: 'succeeded', finishedAt: 0, place: null } as const;
const PORTION_OF_STEPS = {
  ...{ counted: [ID], partly: null, workflows: [{ id: ID, stepsEnded: 1, stepsFailed: 0, stopping: null }] },
  steps: [{ ...NO_CHANGE, id: ID, outcome: 'succeeded' as const }],
  released: [{ id: ID, runAt: 0, payload: null, parked: false }],
  ended: [{ id: ID, state: 'skipped' as const, error: null, result: null }],
};

const REOPENED = {
  id: ID,
  finishedAt: 1,
  parents: 1,
  parentsLeft: 0,
  ok: 0,
  bad: 0,
  released: true,
  blocked: false,
  parked: false,
};
const REOPENING = {
  ...{ workflow: ID, tenant: TENANT, steps: [{ ...REOPENED, wakeAt: null }], stepsLeft: 1, failed: 0 },
  anew: false,
  held: false,
  removed: [ID],
};

async function additionOfOne(): Promise<Addition> {
  const { row } = await shard.newJob({});
  const counts = { parents: 1, parentsLeft: 1, ok: 0, bad: 0, released: false, place: 1, delayMs: 0 };
  const rest = {
    name: 'new',
    runIf: 'all-succeeded',
    wait: null,
    inner: null,
    innerSteps: 0,
    wakeAt: null,
    refers: false,
    held: false,
  } as const;
  return {
    ...{ workflow: ID, tenant: TENANT, job: ID, fence: 1, joiners: [ID], queues: [], tasks: [] },
    steps: [{ row: { ...row, id: OTHER_ID }, ...counts, ...rest, admitAt: 1, blocked: true }],
    edges: { parents: [ID], children: [OTHER_ID] },
    ...{ edgesInAll: 1, lastPlace: 1 },
  };
}

const NAMED = {
  tenant: TENANT,
  queue: 'q1',
  needs: { target: 'handler', handler: 'greet', labels: {} },
} as const;

const { definition: RUNS_PROGRAM } = parseSubmission(
  { target: { type: 'exec', artifact: 'packer' } },
  { now: 0, maxPayload: 1024, maxDepth: 8, jobTimeout: 1, maxJobTimeout: 1, allowCommands: false },
);
const FORGETTABLE = { id: ID, state: 'pending', used_at: 0, expires_at: 0 } as Forgettable;
const NO_FILTER = { name: null, version: null, job: null, state: null };

const ORIGIN = { tenant: TENANT, origin: 'https://example.com' };
const CALLED = { ...NAMED, needs: { target: 'http', handler: 'https://example.com', labels: {} } } as const;

async function keyed(id = JOB_OF_KEYS): Promise<NewJob> {
  const job = await shard.newJob({ key: 'key-4' });
  return { ...job, row: { ...job.row, id } };
}

/** Every statement that runs once per batch of jobs, per request about one job, or per second. */
const HOT: Readonly<Record<string, Run>> = {
  'add-queues, find-queues, add-needs, find-needs': (db) => new Names(db).resolve([NAMED], 0),
  'read-target': (db) => readTarget(db, TENANT, ID),
  'read-sealed-secrets': (db) => readSealedSecrets(db, TENANT, ['a', 'b']),
  'read-sealed-signing-secrets': (db) => readSealedSigningSecrets(db, TENANT, 0),
  'count-secrets-by-key, count-signing-secrets-by-key': (db) => countByMasterKey(db),
  'count-origins': (db) => new OriginBuckets(db, 10, async () => []).assign([CALLED]),
  'find-origin-limits': (db) => findOriginLimits(db, TENANT, 'https://example.com'),
  'limit-origin': (db) => limitOrigin(db, TERM, ORIGIN, { concurrency: 1, rate: null }, 0),
  'unlimit-origin': (db) => unlimitOrigin(db, TERM, TENANT, 'https://example.com'),
  'resolve-artifacts': (db) =>
    resolveArtifacts(db, [{ tenant: TENANT, definition: RUNS_PROGRAM }], 0, 0).catch(() => undefined),
  'walk-awaited-artifacts': (db) => walkAwaited(db, ID, 10),
  'jobs-of-artifact': (db) => jobsOfArtifact(db, TENANT, ID, 10),
  'find-arrived-artifacts': (db) => findArrived(db, 10, [ID], [ID]),
  'find-overdue-artifacts': (db) => findOverdue(db, 10, [ID], 0),
  'next-overdue-artifact': (db) => nextOverdue(db),
  'free-artifact-jobs': (db) => freeArtifactJobs(db, TERM, [ID], 0, 0),
  'forget-artifact': (db) => forgetArtifact(db, TERM, FORGETTABLE),
  'find-artifact-version': (db) => findVersion(db, TENANT, 'a', '1'),
  'find-newest-artifact': (db) => findNewest(db, TENANT, 'a'),
  'find-job-of-output': (db) => isJobThere(db, TENANT, ID),
  'look-at-job-outputs': (db) => lookAtOutputs(db, { tenant: TENANT, job: ID, fence: 1, output: 'a' }, false),
  'read-needs': (db) => readNeeds(db, [1]),
  'take-room': (db) => takeRoom(db, TENANT, { live: 1, later: 0 }),
  'add-usage': (db) => addUsage(db, [{ tenant: TENANT, live: 1, later: 0 }]),
  'add-usage-of-one': (db) => addUsageOfOne(db, { tenant: TENANT, live: 1, later: 0 }),
  'forget-usage': (db) => forgetUsage(db, [TENANT]),
  'forget-usage-of-one': (db) => forgetUsageOfOne(db, TENANT),
  'count-usage': (db) => countJobs(db, TENANT, { liveJobs: 100, laterJobs: 100 }, 0),
  'count-schedules': (db) => countSchedules(db, TENANT, 100),
  'insert-jobs': async (db) => submitJobs(db, [await shard.newJob()], shard.made(), 0),
  'insert-varied-jobs': async (db) =>
    submitJobs(db, [await shard.newJob(), await shard.newJob()], shard.made(), 0),
  'insert-keys, find-keys': async (db) => registerKeys(db, [await keyed()], 0),
  'find-holders': async (db) => findHolders(db, [{ job: await keyed(), holder: ID }]),
  'take-over-keys': async (db) => takeOverKeys(db, [{ job: await keyed(), holder: ID }]),
  'lock-keys': async (db) => lockKeys(db, [{ job: await keyed(), holder: ID }]),
  'renew-keys': async (db) => renewKeys(db, [{ id: ID, isNew: false, by: await keyed(), held: false }]),
  'find-keys': async (db) => findKeyHolders(db, [await keyed()]),
  'read-task-changes': (db) => readTaskChanges(db, 0, 1_000),
  'read-tasks': (db) => readTasks(db, TENANT, ['greet', 'other']),
  'names-hold': (db) => requireNames(db, shard.made().names),
  'replace-later, replace-live': async (db) => {
    const job = { ...toParsed(await shard.newJob()), held: true };
    // Nothing is found, so the job is missed.
    await replaceJobs(db, TERM, [job], 0).catch(() => undefined);
  },
  'claim-jobs': (db) => claimJobs(db, TERM, [{ id: ID, fence: 1, worker: ID }], 0, new Map()),
  'claim-known-jobs': (db) =>
    claimKnownJobs(db, TERM, [{ id: ID, fence: 1, worker: ID }], 0, new Map(), [ID]),
  'finish-jobs': (db) => finishJobs(db, TERM, [{ ...SUCCEEDED, id: ID }], 0),
  'retry-jobs': (db) => retryJobs(db, TERM, [RETRY], 0),
  'release-claims': (db) => releaseClaims(db, TERM, [{ id: ID, fence: 1, attempt: null }]),
  'hand-on-claims': (db) => handOnClaims(db, TERM, [{ id: ID, fence: 1, startedAt: null }], 0),
  'save-progress': (db) => saveProgress(db, TERM, [{ id: ID, fence: 1, progress: '1' }]),
  'add-log-lines': (db) => addLogLines(db, { tenant: TENANT, job: ID, fence: 1 }, ['1'], 10, 0),
  'read-pages': (db) => readPages(db, [CURSOR], 100),
  'look-back': (db) => lookBack(db, ID, ID, 100, 0),
  'find-segments': (db) => findSegments(db, BEFORE_ALL_SEGMENTS, 10),
  'read-waiting': (db) => readWaiting(db, [ID]),
  'read-work': (db) => readWork(db, [ID]),
  'read-job': (db) => readJob(db, TENANT, ID),
  'find-ended': (db) => findEnded(db, [{ tenant: TENANT, id: ID }]),
  'find-job-ids': (db) => findIds(db, 'job', BEGINNING),
  'find-worker-ids': (db) => findIds(db, 'worker', BEGINNING),
  'find-api-keys': (db) => findKeys(db, [Buffer.from('a'), Buffer.from('b')]),
  'use-api-keys': (db) => useKeys(db, [ID], 1),
  'list-api-keys-of-tenant': (db) => listKeys(db, TENANT, null, 10),
  'find-key': (db) => findKey(db, TENANT, 'key-4'),
  'find-answer': (db) => findAnswer(db, TENANT, 'key-4', 0),
  'read-edges, read-sources, read-workflows-of-ends': (db) =>
    readPortion(db, [{ ...END_OF_STEP, state: 'failed' }], 100),
  'apply-portion': (db) => applyPortion(db, TERM, PORTION_OF_STEPS, 0, 0),
  'hold-workflow': (db) => holdWorkflow(db, TERM, TENANT, ID, true),
  'park-steps': (db) => parkSteps(db, TERM, [ID]),
  'unpark-steps': (db) => unparkSteps(db, TERM, [ID], 0, 0),
  'read-step-hold': (db) => readStepHold(db, ID),
  'forget-workflows': (db) => forgetWorkflows(db, TERM, 0),
  'read-inner-graph': (db) => readInnerGraph(db, ID),
  'tie-inner-workflow': (db) => tieInner(db, TERM, ID, ID, 1),
  'read-workflow-family': (db) => readFamily(db, ID),
  'share-reach': (db) => shareReach(db, TERM, [ID], { queues: ['mail'], tasks: ['send'] }),
  'read-adder': (db) => readAdder(db, TENANT, ID, ID),
  'read-figures-beside': (db) => readFigures(db, ID),
  'read-steps-beside': (db) => readStepsBeside(db, ID, ['a']),
  'count-figures-beside': (db) => countFigures(db, ID),
  'read-joiners': (db) => readJoiners(db, ID),
  'find-steps-below': (db) => findBelow(db, [ID], [ID]),
  'read-steps-named': (db) => readStepsNamed(db, TENANT, ID, ['a']),
  'add-steps': async (db) =>
    addSteps(db, TERM, await additionOfOne(), shard.made().names, 0).catch(() => undefined),
  'forget-definition-versions': (db) => forgetVersions(db, TERM, BEFORE_ALL_VERSIONS, 0),
  'forget-old': (db) => forgetOld(db, TERM, { minutes: 0, answers: 0 }),
  'read-older-workflows': (db) => readOlderThan(db, 'workflows', ID, ID, 100),
  'read-older-batches': (db) => readOlderThan(db, 'batches', ID, ID, 100),
  'read-steps-of-day': (db) => readJobsOfDay(db, 'workflows', [ID], { from: 0, to: 1 }),
  'read-members-of-day': (db) => readJobsOfDay(db, 'batches', [ID], { from: 0, to: 1 }),
  'keep-jobs': (db) => keepJobs(db, TERM, [JOB_OF_DAY], { from: 0, to: 1 }),
  'find-kept-names': (db) => findNamesOf(db, 'kept', BEFORE_ALL_JOBS, 100),
  'reopen-steps': (db) => reopenSteps(db, TERM, REOPENING, 0),
  'read-graph-steps': (db) => readGraphSteps(db, ID),
  'read-step-payloads': (db) => readPayloads(db, [ID]),
  'find-steps': (db) => findSteps(db, ID, ['a']),
  'read-step-result': (db) => readResult(db, TENANT, { id: ID, finishedAt: 1 }),
  'find-workflow-events': (db) => findEvents(db, [{ workflow: ID, name: 'paid' }]),
  'add-workflow-event': (db) => addEvent(db, TERM, { workflow: ID, name: 'paid', payload: 'null' }, 0),
  'read-woken-steps': (db) => readWoken(db, 0, 100),
  'read-waiting-steps': (db) => readWaitingSteps(db, ID),
  'next-wake': (db) => nextWake(db, 0),
  'find-used-names': (db) => findUsedNames(db),
  'read-wait': (db) => readWait(db, ID),
  'read-outbox': (db) => readOutbox(db, ID, 100),
  'read-outbox-of': (db) => readOutboxOf(db, ID, 100),
  'find-outbox': (db) => findOutbox(db, [ID]),
  'read-unended-steps': (db) => readUnended(db, ID, ID, 100),
  'read-unswept': (db) => readUnswept(db, 10),
  'read-workflow': (db) => readWorkflow(db, TENANT, ID),
  'read-steps': (db) => readSteps(db, TENANT, ID, ID, 100),
  'read-step-attempts': (db) => readStepAttempts(db, TENANT, [{ id: ID, finishedAt: 1, from: 0 }]),
  'read-submitted-steps': (db) => readSubmittedSteps(db, TENANT, ID, ID, 100, 1_000),
  'read-graph': (db) => readGraph(db, TENANT, ID),
  'read-relatives': (db) => readRelatives(db, ID),
  'read-parents': (db) => readParents(db, ID),
  'store-batch': async (db) => {
    const { row } = await shard.newJob();
    // Nothing is stored for a term that is not there.
    await storeBatch(db, TERM, BATCH, [row], shard.made().names, 0).catch(() => undefined);
  },
  'start-batch': (db) =>
    startBatch(
      db,
      TERM,
      { id: ID, tenant: TENANT, counts: NO_COUNTS },
      [{ id: ID, fence: 1, worker: ID }],
      0,
    ),
  'void-batch': (db) => voidBatch(db, TERM, ID, [{ id: ID, fence: 1, attempt: null }]),
  'end-batch': (db) => endBatch(db, TERM, ID, 'failed', null, 0),
  'cancel-batch': (db) => cancelBatch(db, TERM, ID, 0),
  'retry-batch': (db) => retryBatch(db, TERM, { id: ID, tenant: TENANT, members: [ID] }, 0),
  'read-open-batches': (db) => readOpenBatches(db, 'pending', BEFORE_ALL_BATCHES, 100),
  'read-overdue-batches': (db) => readOverdueBatches(db, BEFORE_ALL_BATCHES, 0, 100),
  'read-open-batch': (db) => findBatch(db, TENANT, ID),
  'read-waiting-members': (db) => readWaitingMembers(db, [ID]),
  'read-ended-members': (db) => readEndedMembers(db, { id: ID, tenant: TENANT, members: [ID] }),
  'read-batch': (db) => readBatch(db, TENANT, ID),
  'end-waiting-live': (db) => endWaitingJobs(db, TERM, 'live', [CANCEL], 0),
  'end-waiting-later': (db) => endWaitingJobs(db, TERM, 'later', [CANCEL], 0),
  'find-expired': (db) => findExpired(db, 0, 100, [ID]),
  'next-expiry': (db) => nextExpiry(db),
  'read-to-admit': (db) => readToAdmit(db, 0, 100, [ID]),
  'measure-to-admit': (db) => measureToAdmit(db, 0, [ID]),
  'read-submissions': (db) => readSubmissions(db, [ID]),
  'find-cancelled': (db) => findCancelled(db, [{ tenant: TENANT, id: ID }]),
  'read-cancel-requests': (db) => readCancelRequests(db, 0, 10),
  'forget-cancel-requests': (db) => forgetCancelRequests(db, TERM, [1]),
  'find-jobs': (db) => findJobs(db, TENANT, {}, ID, 100),
  'find-jobs-by-queue': (db) => findJobs(db, TENANT, {}, ID, 100, byQueue()),
  'find-jobs-of-schedule': (db) => findJobs(db, TENANT, { schedule: 's1' }, ID, 100),
  'find-failed-jobs': (db) => findJobs(db, TENANT, { states: ['failed'] }, ID, 100),
  'find-running-jobs': (db) => findJobs(db, TENANT, { states: ['running'] }, ID, 100),
  'find-named-jobs': (db) => findJobs(db, TENANT, { ids: [ID] }, ID, 100),
  'find-keys-by-prefix': (db) => findJobsByKeyPrefix(db, TENANT, 'key-4'),
  'list-found-jobs': (db) => listFound(db, TENANT, FOUND, PORTION, []),
  'locate-jobs': (db) => locateJobs(db, TENANT, [ID]),
  'delete-ended-jobs': (db) => deleteEndedJobs(db, TERM, TENANT, [ID]),
  'cancel-claims': (db) => cancelClaims(db, TERM, [{ id: ID, fence: 1 }], 0),
  'admit-jobs': (db) => admitJobs(db, TERM, [unchanged(ID)]),
  'parse-later': async (db) => parseLater(db, TERM, [await shard.newJob().then(toParsed)]),
  'postpone-jobs': (db) => postponeJobs(db, TERM, [LATER_JOB]),
  'change-later': (db) => changeLater(db, TERM, [LATER_JOB]),
  'change-live': (db) => changeLive(db, TERM, unchanged(ID)),
  'redrive-jobs': (db) => redriveJobs(db, TERM, TENANT, [ID], 0),
};

/** The statements about schedules that run while they are fired, or for one of them. */
const MOVE = { id: ID, version: 1, from: 0, watermark: 1, fireAt: 2, lastRun: null };
const OCCURRENCE = {
  ...{ schedule: ID, at: 1, byHand: false, tenant: TENANT, state: 'ran' as const, reason: null, job: ID },
  ...{ workflow: null, batch: null, lateAfter: 1, until: null, count: 1, judgeAt: 1 },
};
const LEDGER = { from: 0, to: 10, before: { at: 10, byHand: false }, limit: 10 };

const SCHEDULED: Readonly<Record<string, Run>> = {
  'read-due-schedules': (db) => readDueSchedules(db, 100, 1_000, 1_000_000),
  'next-fire': (db) => nextFire(db),
  'move-schedules': (db) => moveSchedules(db, [MOVE]),
  'record-occurrences': (db) => recordOccurrences(db, [OCCURRENCE], 0),
  'insert-scheduled-jobs': async (db) =>
    insertScheduledJobs(db, [{ row: (await shard.newJob()).row, schedule: 's1', occurrence: 1 }], 0),
  'read-previous': (db) => readPrevious(db, [ID]),
  'read-ready-occurrences': (db) => readFirstWaiting(db),
  'judge-occurrences': (db) => judgeOccurrences(db, TERM, 100, 100),
  'next-judgement': (db) => nextJudgement(db),
  'read-ledger': (db) => readLedger(db, ID, LEDGER, 0),
  'find-schedule': (db) => findSchedule(db, TENANT, 's1'),
  'list-managed-schedules': (db) => listManaged(db, TENANT, 'program', '', 1_000),
  'read-schedule': (db) => readSchedule(db, TENANT, 's1', 0),
  'list-schedules': (db) => listSchedules(db, TENANT, { after: '', withPayloads: false }, PORTION, 0),
  'read-ahead': (db) => readAhead(db, ID, 0),
  'read-runs': (db) => readRuns(db, ID, 0, 1),
  'take-passed-over': (db) => takePassedOver(db, ID, 0, 1),
};

function toParsed({ row }: Awaited<ReturnType<TestShard['newJob']>>) {
  return { row, admitAt: 0, held: false };
}

interface PlanNode {
  readonly 'Node Type': string;
  readonly Schema?: string;
  readonly 'Relation Name'?: string;
  readonly 'Index Cond'?: string;
  readonly Plans?: readonly PlanNode[];
}

/** Nodes that hand each row on as it comes, so that a LIMIT above them stops the scan below. */
const STREAMING = ['Limit', 'Nested Loop', 'Result', 'Subquery Scan'];

/** What a plan does that grows with the tables, each as one line. */
function costly(node: PlanNode, limited = false): string[] {
  const kind = node['Node Type'];
  const table = node['Relation Name'] ?? '';
  const stops = kind === 'Limit' || (limited && STREAMING.includes(kind));
  const found = (node.Plans ?? []).flatMap((child, i) => costly(child, stops && i === 0));
  if (kind === 'Seq Scan' || kind === 'Bitmap Heap Scan') found.push(`${kind} of ${table}`);
  if (kind === 'Hash Join' || kind === 'Merge Join') found.push(kind);
  // With sequential scans ruled out the planner may walk a whole index instead, unless a LIMIT stops it.
  const walks = kind.startsWith('Index') && node['Index Cond'] === undefined;
  if (walks && !limited) found.push(`${kind} of all of ${table}`);
  return found;
}

async function explain(text: string, db: Queryable = shard.hot): Promise<PlanNode> {
  const { rows } = await db.query(`EXPLAIN (GENERIC_PLAN, VERBOSE, COSTS OFF, FORMAT JSON) ${text}`);
  return JSON.parse(rows[0]['QUERY PLAN'])[0].Plan;
}

describe.each(['before the tables were ever analysed', 'after they were'])('%s', (when) => {
  beforeAll(async () => {
    if (when === 'after they were') await shard.pool.query('ANALYZE');
  });

  it.each(Object.entries({ ...HOT, ...SCHEDULED }))('%s finds its rows by index', async (name, run) => {
    const statements = await recordStatements(run);
    expect(statements.map((statement) => statement.name).join(', ')).toBe(name);
    for (const { text } of statements) expect(costly(await explain(text))).toEqual([]);
  });
});

/** Every statement that is read for people behind row-level security, where filters that are not leakproof lose their index. */
const WALLED: Readonly<Record<string, Run>> = {
  'list-found-jobs': (db) => listFound(db, TENANT, FOUND, PORTION, []),
  'read-log-lines': (db) => readLogLines(db, TENANT, ID, 0, PORTION),
  'find-key': (db) => findKey(db, TENANT, 'key-4'),
  'find-keys-by-prefix': (db) => findJobsByKeyPrefix(db, TENANT, 'key-4'),
  'list-schedules': (db) => listSchedules(db, TENANT, { after: '', withPayloads: false }, PORTION, 0),
  'read-schedule': (db) => readSchedule(db, TENANT, 's1', 0),
  'find-schedule-with-ledger': (db) => findScheduleWithLedger(db, TENANT, 's1'),
  'read-ledger': (db) => readLedger(db, ID, LEDGER, 0),
  'read-member-ids': (db) => readMemberIds(db, TENANT, ID),
  'list-batches': (db) => listBatches(db, TENANT, ID, { states: null }, PORTION),
  'list-origin-limits': (db) => listOriginLimits(db, TENANT, '', 10),
  'list-workflows': (db) => listWorkflows(db, TENANT, ID, 10),
  'list-workflow-definitions': (db) => listDefinitions(db, TENANT, '', PORTION),
  'list-definition-versions': (db) => listVersions(db, TENANT, 'd'),
  'read-workflow-definition': (db) => readDefinition(db, TENANT, 'd'),
  'count-later-of-tenant': (db) => countWaitingLater(db, TENANT),
  'read-step-ids': (db) => readStepIds(db, TENANT, ID),
  'find-artifact': (db) => findArtifact(db, TENANT, ID),
  'list-artifacts': (db) => listArtifacts(db, TENANT, ID, NO_FILTER, PORTION),
  'list-job-outputs': (db) => listOutputs(db, TENANT, ID, ID, PORTION),
  'list-secrets': (db) => listSecrets(db, TENANT, '', PORTION),
  'list-signing-secrets': (db) => listSigningSecrets(db, TENANT, 0),
  'list-tasks': (db) => listTasks(db, TENANT, '', PORTION),
  'find-task': (db) => findTask(db, TENANT, 'greet'),
  'list-audit-of-one': (db) => listNewest(db, { tenant: TENANT }, ID, PORTION),
  'list-audit-chain-of-one': (db) => listChain(db, { tenant: TENANT }, 0, PORTION),
};

/** Each look-up by index of a plan: the table, and the columns that the index finds rows by. */
function lookUps(node: PlanNode): string[] {
  const columns = new Set(node['Index Cond']?.match(/\b\w+\.\w+(?= (=|>|<|>=|<=) )/g));
  const found = (node.Plans ?? []).flatMap(lookUps);
  return columns.size === 0
    ? found
    : [...found, `${node['Relation Name']}: ${[...columns].sort().join(', ')}`];
}

describe('behind row-level security', () => {
  it.each(Object.entries(WALLED))('%s finds its rows by the same indexes', async (name, run) => {
    const statements = await recordStatements(run);
    expect(statements.map((statement) => statement.name).join(', ')).toBe(name);
    for (const { text } of statements) {
      const exempt = await explain(text);
      const walled = await shard.reads.readFound(
        TENANT,
        async () => null,
        (db) => explain(text, db),
      );
      expect(JSON.stringify(walled)).toContain('punctual.tenant');
      expect(costly(walled)).toEqual([]);
      expect(lookUps(walled)).toEqual(expect.arrayContaining(lookUps(exempt)));
    }
  });
});

describe('after a vacuum that found no live jobs, as between two bursts', () => {
  beforeAll(async () => {
    const tables = ['claims', 'jobs', 'later', 'edges'].map((table) => `punctual.${table}`);
    for (const table of tables) await shard.pool.query(`DELETE FROM ${table}`);
    await shard.pool.query(`VACUUM ANALYZE ${tables.join(', ')}`);
  });

  it('the edges of an end are found by the end', async () => {
    const recorded = await recordStatements((db) => readPortion(db, [END_OF_STEP], 100));
    const { text } = recorded.find(({ name }) => name === 'read-edges')!;
    const scans: PlanNode[] = [];
    const look = (node: PlanNode): void => {
      if (node['Relation Name'] === 'edges') scans.push(node);
      for (const below of node.Plans ?? []) look(below);
    };
    look(await explain(text));
    expect(scans).toHaveLength(1);
    expect(scans[0]!['Index Cond']).toMatch(/ROW\((e\.)?parent, (e\.)?child\)/);
  });

  it.each(Object.entries({ ...HOT, ...SCHEDULED }))('%s finds its rows by index', async (_, run) => {
    for (const { text } of await recordStatements(run)) expect(costly(await explain(text))).toEqual([]);
  });
});

it('hot plans can be had on any connection, for one transaction', async () => {
  const reading = `SELECT name, setting FROM pg_settings
    WHERE name LIKE 'enable\\_%' OR name IN ('plan_cache_mode', 'jit', 'random_page_cost') ORDER BY name`;
  const before = (await shard.pool.query(reading)).rows;
  const hot = (await shard.hot.query(reading)).rows;
  expect(before).not.toEqual(hot);
  await withHotPlans(shard.pool, async (db) => expect((await db.query(reading)).rows).toEqual(hot));
  expect((await shard.pool.query(reading)).rows).toEqual(before);
});

it('this test notices a plan that reads whole tables', async () => {
  expect(costly(await explain('SELECT * FROM punctual.jobs WHERE task = task || task'))).not.toEqual([]);
  expect(costly(await explain('SELECT count(*) FROM punctual.claims'))).not.toEqual([]);
});
