import { NO_QUOTAS } from '../../../src/core/quotas.js';
import { uuidv7 } from '../../../src/core/uuid.js';
import { deleteSchedule } from '../../../src/store/change-schedule.js';
import { endWaitingJobs } from '../../../src/store/end-waiting-jobs.js';
import { recordOccurrences } from '../../../src/store/fire-occurrences.js';
import type { TermKey } from '../../../src/store/leader-statement.js';
import { readWaiting } from '../../../src/store/read-backlog.js';
import { createSchedule } from '../../../src/store/schedules.js';
import { addStale, foldTallies } from '../../../src/store/tallies.js';
import { addTenant } from '../../../src/store/tenants.js';
import { addWorker } from '../../../src/store/workers.js';
import { TENANT, type TestShard, WORKER } from './test-shard.js';

/** One job in every situation that a leader's statement can change, and what else its statements touch. */
export interface Population {
  readonly waiting: string;
  readonly running: string;
  readonly held: string;
  readonly unread: string;
  readonly failed: string;
  /** When that one ended. */
  readonly failedAt: number;
  /** A step that has ended, one that waits for it, and their workflow. */
  readonly endedStep: string;
  readonly blocked: string;
  readonly workflow: string;
  /** A batch that waits, one that runs, one whose members have ended, and one that has failed; each with its one member. */
  readonly batches: Readonly<Record<'waiting' | 'running' | 'over' | 'failed', StoredBatch>>;
  /** A job whose artifact has arrived, and an artifact that nobody has uploaded. */
  readonly awaiting: string;
  readonly unused: string;
  /** The queue and the needs of all of them. */
  readonly queue: number;
  readonly needs: number;
  readonly now: number;
}

interface StoredBatch {
  readonly id: string;
  readonly members: readonly string[];
}

/** Fills every table that leaders write to. */
export async function populate(shard: TestShard, term: TermKey): Promise<Population> {
  const [waiting, running, failed] = await shard.submitMany(3);
  // Not before the jobs are due.
  const now = Date.now();
  await shard.claim(term, [running!, failed!]);
  await shard.fail(term, failed!);
  const held = await shard.submit({}, { held: true });
  const expired = await shard.submit({}, { held: true });
  await endWaitingJobs(shard.hot, term, 'later', [{ id: expired, state: 'failed', error: null }], now);
  const { rows } = await shard.pool.query(`SELECT punctual.submit_job($1, '{"task":"greet"}') AS id`, [
    TENANT,
  ]);
  await shard.pool.query('SELECT punctual.cancel_job($1, $2)', [TENANT, waiting]);
  await addWorker(shard.hot, term, { id: WORKER, tenant: TENANT, name: 'w', registration: '{}' }, now);
  await shard.pool.query(
    `INSERT INTO punctual.workers SELECT $1, tenant, name, 'dead', registration, 0, 0 FROM punctual.workers`,
    [uuidv7(now)],
  );
  await foldTallies(shard.hot, term, now + 60_000);
  await addStale(shard.hot, term, [{ tenant: TENANT, completions: 1, failures: 0 }], now);
  await addTenant(
    shard.hot,
    term,
    { id: 'limited', name: 'Limited' },
    { weight: 1, rate: null, quotas: { ...NO_QUOTAS, liveJobs: 1_000 } },
    now,
  );
  await shard.pool.query(
    `INSERT INTO punctual.tenants (id, name, created_at, quota_live_jobs) VALUES ($1, 'T', $2, 1000)`,
    [TENANT, now],
  );
  await shard.pool.query('UPDATE punctual.tenant_usage SET live = 10, later = 10');
  await populateSchedules(shard, term, now);
  const workflow = await populateWorkflow(shard, now);
  const artifacts = await populateArtifacts(shard, now);
  const batches = await populateBatches(shard, term, failed!, now);
  const { queue, needs } = (await readWaiting(shard.hot, [waiting!]))[0]!;
  const names = { queue, needs };
  const ended = await shard.pool.query('SELECT finished_at AS at FROM punctual.job_history WHERE id = $1', [
    failed,
  ]);
  return {
    waiting: waiting!,
    running: running!,
    held,
    unread: rows[0].id,
    failed: failed!,
    failedAt: ended.rows[0].at,
    ...names,
    ...workflow,
    ...artifacts,
    batches,
    now,
  };
}

async function populateArtifacts(
  shard: TestShard,
  now: number,
): Promise<Pick<Population, 'awaiting' | 'unused'>> {
  const awaiting = await shard.submit({}, { admitAt: now + 3_600_000 });
  const [arrived, unused] = [uuidv7(now), uuidv7(now)];
  await shard.pool.query(
    `INSERT INTO punctual.artifacts (id, tenant, sha256, size, runnable, state, created_at, created_by, expires_at, used_at)
     VALUES ($1, $3, 'a', 1, true, 'ready', 0, 'test', 1, 0), ($2, $3, 'b', 1, true, 'pending', 0, 'test', 1, 0)`,
    [arrived, unused, TENANT],
  );
  await shard.pool.query(
    'UPDATE punctual.later SET blocked = true, artifact = $2, artifact_by = $3 WHERE id = $1',
    [awaiting, arrived, now + 3_600_000],
  );
  return { awaiting, unused };
}

async function populateBatches(
  shard: TestShard,
  term: TermKey,
  failed: string,
  now: number,
): Promise<Population['batches']> {
  const waiting = await shard.submitBatch(term, 1);
  const running = await shard.submitBatch(term, 1);
  await shard.startBatch(term, running);
  const over = await shard.submitBatch(term, 0, [failed]);
  const ended = await shard.submitBatch(term, 0, [failed]);
  await shard.pool.query(`UPDATE punctual.batches SET state = 'failed', ended_at = $2 WHERE id = $1`, [
    ended.id,
    now,
  ]);
  return { waiting, running, over, failed: ended };
}

/** A workflow that stops, with a step that has ended and one that waits for it. */
async function populateWorkflow(
  shard: TestShard,
  now: number,
): Promise<Pick<Population, 'endedStep' | 'blocked' | 'workflow'>> {
  const blocked = await shard.submit({}, { admitAt: now + 3_600_000 });
  const [workflow, endedStep] = [uuidv7(now), uuidv7(now)];
  await shard.pool.query('UPDATE punctual.later SET blocked = true, workflow = $2 WHERE id = $1', [
    blocked,
    workflow,
  ]);
  await shard.pool.query(
    `INSERT INTO punctual.workflows (id, tenant, name, steps, steps_left, on_failure, running, swept, created_at, created_by)
     VALUES ($1, $2, 'w', 2, 2, 'stop', 'finish', false, $3, 'test')`,
    [workflow, TENANT, now],
  );
  await shard.pool.query(
    `INSERT INTO punctual.steps (id, workflow, tenant, name, place, run_if, parents, parents_left, released, parked)
     VALUES ($1, $3, $4, 'a', 0, 'all-succeeded', 0, 0, true, false),
       ($2, $3, $4, 'b', 1, 'all-succeeded', 1, 1, false, true)`,
    [endedStep, blocked, workflow, TENANT],
  );
  await shard.pool.query('INSERT INTO punctual.edges VALUES ($1, $2)', [endedStep, blocked]);
  await shard.pool.query(
    `INSERT INTO punctual.outbox (job, workflow, state, finished_at) VALUES ($1, $2, 'succeeded', $3)`,
    [endedStep, workflow, now],
  );
  await shard.pool.query(
    `INSERT INTO punctual.workflows
       (id, tenant, name, state, steps, steps_left, on_failure, running, created_at, created_by, ended_at)
     VALUES ($1, $2, 'w', 'succeeded', 1, 0, 'stop', 'finish', $3, 'test', $3)`,
    [uuidv7(now), TENANT, now],
  );
  await shard.pool.query(
    `INSERT INTO punctual.origin_limits (tenant, origin, concurrency, changed_at)
     VALUES ($1, 'https://example.com', 1, 0)`,
    [TENANT],
  );
  await shard.pool.query(
    `INSERT INTO punctual.workflow_definitions (tenant, name, version, jobs, on_failure, running, digest, bytes, steps,
       created_at, created_by, replaced_at)
     VALUES ($1, 'd', 1, '{}', 'stop', 'finish', '', 2, 1, 0, 'test', 0)`,
    [TENANT],
  );
  return { endedStep, blocked, workflow };
}

/** A schedule with an occurrence that is to be judged, and one that was deleted. */
async function populateSchedules(shard: TestShard, term: TermKey, now: number): Promise<void> {
  const schedules = ['nightly', 'gone'].map((name) => ({ id: uuidv7(now), name }));
  const rest = { tenant: TENANT, definition: '{}', paused: false, fireAt: null, createdAt: now };
  for (const each of schedules) {
    await createSchedule(shard.hot, term, { ...each, ...rest, createdBy: 'test', managedBy: null });
  }
  await deleteSchedule(shard.hot, { id: schedules[1]!.id, version: 1 }, 'test', 0);
  const occurrence = {
    schedule: schedules[0]!.id,
    at: now,
    byHand: false,
    tenant: TENANT,
    state: 'ran',
  } as const;
  const run = {
    reason: null,
    job: null,
    workflow: null,
    batch: null,
    lateAfter: 1_000,
    until: null,
    count: 1,
    judgeAt: now,
  };
  await recordOccurrences(shard.hot, [{ ...occurrence, ...run }], 0);
}

const TABLES = `
  SELECT relname AS name FROM pg_class
  WHERE relnamespace = 'punctual'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition ORDER BY relname`;

/** Every row of every table of a shard, as text. */
export async function snapshot(db: {
  query(text: string): Promise<{ rows: Record<string, string>[] }>;
}): Promise<Record<string, string>> {
  const { rows: tables } = await db.query(TABLES);
  const rows: Record<string, string> = {};
  for (const { name } of tables) {
    const all = await db.query(
      `SELECT coalesce(string_agg(t::text, E'\\n' ORDER BY t::text), '') AS rows FROM punctual.${name} t`,
    );
    rows[name!] = all.rows[0]!.rows!;
  }
  return rows;
}
