import { expect, it, onTestFinished } from 'vitest';
import { Term } from '../../src/cluster/term.js';
import { TimerClock } from '../../src/core/clock.js';
import { resolveConfig } from '../../src/core/config.js';
import { SILENT_LOG } from '../../src/core/log.js';
import { uuidv7 } from '../../src/core/uuid.js';
import { AuditChain } from '../../src/dispatch/audit-chain.js';
import { LeaderState } from '../../src/dispatch/leader-state.js';
import { Upkeep } from '../../src/dispatch/upkeep.js';
import { seeNode } from '../../src/store/cluster-state.js';
import { partitionName } from '../../src/store/partitions.js';
import { readTotals } from '../../src/store/tallies.js';
import { addWorker } from '../../src/store/workers.js';
import { Happening } from '../happening.js';
import { TENANT, TestShard, until, WORKER } from './store/test-shard.js';

const DAY_MS = 86_400_000;

/** The upkeep of a leader of the shard, not started; `failed` names the passes that failed. */
async function upkeepOf(shard: TestShard, clock = new TimerClock(() => Date.now())) {
  const { shard: number, epoch, holder } = await shard.lead();
  const failed = new Happening<string>();
  const state = new LeaderState({
    term: new Term(number, epoch, holder, Number.POSITIVE_INFINITY),
    ...{ hot: shard.hot, pool: shard.pool, patient: shard.pool, clock },
    config: resolveConfig({}, {}, () => '').config,
    log: { ...SILENT_LOG, warn: (fields) => failed.happen(String(fields.loop)) },
    secret: Buffer.alloc(32),
    renounce: () => undefined,
  });
  const upkeep = new Upkeep(state, new AuditChain(state), (work) => work());
  onTestFinished(() => upkeep.stop());
  return { upkeep, failed, state };
}

it('a part of the upkeep that fails keeps no other from its work', async () => {
  const shard = await TestShard.forTest();
  const later = Date.now() + 2 * DAY_MS;
  const { upkeep, failed, state } = await upkeepOf(shard, new TimerClock(() => later));
  await seeNode(shard.pool, { id: 'silent', url: '', version: '' }, 0);
  await addWorker(shard.hot, state.term, { id: WORKER, tenant: TENANT, name: 'w', registration: '{}' }, 0);
  await shard.pool.query(`UPDATE punctual.workers SET state = 'dead'`);
  await shard.pool.query('ALTER TABLE punctual.tally_totals RENAME TO hidden');
  upkeep.start();
  await failed.times(2);
  await until(async () => (await shard.count('nodes')) + (await shard.count('workers')) === 0);
  const lastDay = partitionName('job_history', later + 14 * DAY_MS);
  await until(async () => {
    const { rows } = await shard.pool.query(`SELECT to_regclass('punctual.' || $1) AS made`, [lastDay]);
    return rows[0].made !== null;
  });
  expect(new Set(failed.all)).toEqual(new Set(['fold counts']));
  await shard.pool.query('ALTER TABLE punctual.hidden RENAME TO tally_totals');
  await until(async () => (await shard.count('tallies')) === 0);
});

it('counts of refused reports that could not be saved are saved later', async () => {
  const shard = await TestShard.forTest();
  const { upkeep, failed } = await upkeepOf(shard);
  await shard.pool.query('ALTER TABLE punctual.tallies RENAME COLUMN stale_failures TO hidden');
  upkeep.countStale(TENANT, true);
  upkeep.countStale(TENANT, false);
  upkeep.start();
  await until(() => failed.all.includes('save stale counts'));
  upkeep.countStale(TENANT, false);
  await shard.pool.query('ALTER TABLE punctual.tallies RENAME COLUMN hidden TO stale_failures');
  await until(async () => (await readTotals(shard.pool, TENANT)).staleFailures > 0);
  expect(await readTotals(shard.pool, TENANT)).toMatchObject({ staleCompletions: 1, staleFailures: 2 });
});

it('of dead workers the newest of each tenant are kept, however many there were', async () => {
  const shard = await TestShard.forTest();
  const { upkeep } = await upkeepOf(shard);
  const now = Date.now();
  const ids = Array.from({ length: 3_500 }, (_, n) => uuidv7(now - 10_000 + n));
  for (const tenant of [TENANT, 'globex']) {
    const mine = tenant === TENANT ? ids : [uuidv7(now)];
    await shard.pool.query(
      `INSERT INTO punctual.workers SELECT id, $2, 'w', 'dead', '{}', $3, $3 FROM unnest($1::uuid[]) u(id)`,
      [mine, tenant, now],
    );
  }
  upkeep.start();
  await until(async () => (await shard.count('workers')) === 1_001);
  const { rows } = await shard.pool.query(
    'SELECT min(id::text) AS id FROM punctual.workers WHERE tenant = $1',
    [TENANT],
  );
  expect(rows[0].id).toBe(ids[2_500]);
});
