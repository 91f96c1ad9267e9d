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
  /** The queue and the needs of all of them. */
  readonly queue: number;
  readonly needs: number;
  readonly now: number;
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
  const { queue, needs } = (await readWaiting(shard.hot, [waiting!]))[0]!;
  const names = { queue, needs };
  return { waiting: waiting!, running: running!, held, unread: rows[0].id, failed: failed!, ...names, now };
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
  const run = { reason: null, job: null, lateAfter: 1_000, until: null, count: 1, judgeAt: now };
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
