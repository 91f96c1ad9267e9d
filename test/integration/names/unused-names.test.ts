import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Config } from '../../../src/core/config.js';
import type { LeaderState } from '../../../src/dispatch/leader-state.js';
import { forgetNames } from '../../../src/dispatch/name-cleanup.js';
import type { TermKey } from '../../../src/store/leader-statement.js';
import { Names } from '../../../src/store/names.js';
import { makePartition } from '../../../src/store/partitions.js';
import { readJob } from '../../../src/store/read-job.js';
import { removeOldDays } from '../../../src/store/retention.js';
import {
  BEFORE_ALL_JOBS,
  findNamesOf,
  type JobPosition,
  type LaterNames,
  type NamePair,
} from '../../../src/store/unused-names.js';
import { TENANT, TestShard } from '../store/test-shard.js';

const DAY_MS = 86_400_000;
const RETENTION_MS = 30 * DAY_MS;

let shard: TestShard;
let close: () => Promise<void>;
let term: TermKey;

beforeAll(async () => {
  ({ shard, close } = await TestShard.open());
  term = await shard.lead();
});
afterAll(() => close());

/** Removes old days of history and forgets names as a leader would at that moment. */
async function forgetAt(now: number): Promise<number> {
  await removeOldDays(shard.hot, term, now - RETENTION_MS);
  return forgetNamesAt(now);
}

async function forgetNamesAt(now: number, historyRetention = RETENTION_MS): Promise<number> {
  // A leader's writes have short deadlines, so none of them may use the connections of long reads.
  const reader = await shard.connect();
  await reader.query('SET default_transaction_read_only = on');
  return forgetNames({
    clock: { now: () => now },
    config: { historyRetention } as Config,
    hot: shard.hot,
    pool: reader,
    term,
    write: <T>(work: () => Promise<T>) => work(),
  } as unknown as LeaderState);
}

const needs = (handler: string) => ({ target: 'handler', handler, labels: {} }) as const;

async function queueNames(): Promise<string[]> {
  const { rows } = await shard.pool.query('SELECT name FROM punctual.queues ORDER BY name');
  return rows.map((row) => row.name);
}

it('names go when no job can use them any more, and come back under other ids', async () => {
  const now = Date.now();
  const names = new Names(shard.hot);
  const idleName = { tenant: TENANT, queue: 'idle', needs: needs('idle') };
  const [idle] = await names.resolve([idleName], now);
  await shard.submit({ queue: 'due-in-a-year', task: 'c' }, { admitAt: now + 365 * DAY_MS });
  await shard.submit({ queue: 'waits', task: 'a' });
  await shard.submit({ queue: 'held', task: 'b' }, { held: true });
  await shard.pool.query(
    `INSERT INTO punctual.queues (tenant, name, created_at, used_at, weight) VALUES ($1, 'limited', 0, 0, 5), ($1, 'plain', 0, 0, 1)`,
    [TENANT],
  );
  expect(await forgetAt(now + RETENTION_MS)).toBe(1);
  expect(await queueNames()).toEqual(['due-in-a-year', 'held', 'idle', 'limited', 'waits']);
  expect(await forgetAt(now + RETENTION_MS + 8 * DAY_MS)).toBe(2);
  expect(await queueNames()).toEqual(['due-in-a-year', 'held', 'limited', 'waits']);
  const [again] = await new Names(shard.hot).resolve([idleName], now);
  expect(again!.queue).not.toBe(idle!.queue);
  expect(again!.needs).not.toBe(idle!.needs);
});

it('a node that has not used a name for days puts down that it does before it relies on it', async () => {
  const now = Date.now();
  const names = new Names(shard.hot);
  const named = { tenant: TENANT, queue: 'rare', needs: needs('rare') };
  const [first] = await names.resolve([named], now);
  const later = now + RETENTION_MS + 8 * DAY_MS;
  expect(await names.resolve([named], later)).toEqual([
    {
      ...first,
      queueName: { ...first!.queueName, usedAt: later },
      needsName: { ...first!.needsName, usedAt: later },
    },
  ]);
  await forgetAt(later);
  expect(await queueNames()).toContain('rare');
  // Another node finds out that it has gone, however long it has known it.
  const muchLater = later + RETENTION_MS + 8 * DAY_MS;
  await forgetAt(muchLater);
  expect(await queueNames()).not.toContain('rare');
  const [anew] = await names.resolve([named], muchLater);
  expect(anew!.queue).not.toBe(first!.queue);
});

it('the names of jobs outside the live table are read in pages', async () => {
  const { rows } = await shard.pool.query(
    'SELECT count(DISTINCT (queue, needs)) AS names FROM punctual.later',
  );
  const found: NamePair[] = [];
  let pages = 0;
  for (let after: JobPosition | null = BEFORE_ALL_JOBS; after !== null; pages += 1) {
    const page: LaterNames = await findNamesOf(shard.pool, 'later', after, 1);
    found.push(...page.names);
    after = page.last;
  }
  expect(new Set(found.map(({ queue, needs }) => `${queue} ${needs}`)).size).toBe(rows[0].names);
  expect(pages).toBeGreaterThan(rows[0].names);
});

it('a name stays while there is a day of history that may use it, whatever the setting says by then', async () => {
  const now = Date.now();
  await makePartition(shard.hot, 'job_history', now);
  const id = await shard.submit({ queue: 'ended', task: 'e' });
  await shard.claim(term, [id]);
  await shard.finish(term, [{ id }]);
  const later = now + 400 * DAY_MS;
  await forgetNamesAt(later, DAY_MS);
  expect(await readJob(shard.hot, TENANT, id)).toMatchObject({ id, queue: 'ended' });
  await forgetAt(later);
  expect(await queueNames()).not.toContain('ended');
});
