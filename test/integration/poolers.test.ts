import { expect, inject, it, onTestFinished } from 'vitest';
import { checkDatabase } from '../../src/cli/doctor.js';
import { resolveConfig } from '../../src/core/config.js';
import { SILENT_LOG } from '../../src/core/log.js';
import { task } from '../../src/core/task.js';
import { startNode } from '../../src/node/start-node.js';
import { migrate, settingsThrough } from '../../src/store/migrate.js';
import { createOperatorKey, verifyOperatorKey } from '../../src/store/operator-key.js';
import { pauseBeforeStart } from '../../src/store/pause-before-start.js';
import { findSettingsBy } from '../../src/store/pooler.js';
import { readAuditChain } from '../../src/store/read-audit-chain.js';
import { createTestDatabase } from '../database.js';
import { nodeForTest } from '../node-for-tests.js';
import { type Pooler, startSessionPooler, startTransactionPooler } from '../pooler-stand-in.js';

async function behind(start: (databaseUrl: string) => Promise<Pooler>) {
  const database = await createTestDatabase();
  const pooler = await start(database.url);
  onTestFinished(async () => {
    await pooler.close();
    await database.drop();
  });
  return { url: pooler.url, prepared: pooler.prepared, drop: async () => undefined };
}

it('a node refuses a pooler in transaction mode with the reason and the remedy, and doctor knows', async () => {
  const database = await behind(startTransactionPooler);
  const expected = expect.stringMatching(
    /pool_mode = transaction.*Give nodes and commands the address of Postgres itself/,
  );
  const { config } = resolveConfig({ databaseUrl: database.url, port: 0 }, {}, () => '');
  await expect(startNode({ config, log: SILENT_LOG })).rejects.toMatchObject({
    code: 'DATABASE_POOLED',
    message: expected,
  });
  expect(await checkDatabase(database.url)).toMatchObject([
    { name: 'database', status: 'fail', detail: expected },
  ]);
});

it('a pooler in transaction mode is found out although it gives sessions in turn', async () => {
  const database = await behind((url) => startTransactionPooler(url, 2));
  await expect(findSettingsBy(database.url)).rejects.toMatchObject({ code: 'DATABASE_POOLED' });
});

it('looking for a pooler reads the address as every connection does', async () => {
  const warnings: string[] = [];
  const note = (warning: Error) => void warnings.push(warning.message);
  process.on('warning', note);
  onTestFinished(() => void process.off('warning', note));
  await expect(findSettingsBy('postgres://localhost:port/b')).rejects.toMatchObject({
    code: 'CONFIGURATION',
    message: expect.stringContaining('The database URL is not valid'),
  });
  await expect(findSettingsBy(`${inject('serverUrl')}?sslmode=require`)).rejects.toThrow(
    'does not support SSL',
  );
  expect(warnings).toEqual([]);
});

it('a node starts paused behind a pooler in session mode, and works once resumed, with its settings', async () => {
  const database = await behind(startSessionPooler);
  expect(await checkDatabase(database.url)).toMatchObject([
    { status: 'ok', detail: expect.stringContaining('pooler in session mode') },
    { name: 'schema', status: 'ok' },
    { name: 'row-level security', status: 'ok' },
  ]);
  const node = await nodeForTest({ database, paused: true });
  expect(await node.get('GET', '/v1/cluster')).toMatchObject({ paused: true });
  await node.get('POST', '/v1/cluster/resume');
  await node.work([task('double', (n: number) => n * 2)]);
  const job = await node.connect().submit('double', 21);
  expect(await job.result()).toBe(42);
  const { hot } = node.node.context.shards[0]!;
  const { rows } = await hot.query(
    `SELECT current_setting('plan_cache_mode') AS plans, current_setting('statement_timeout') AS deadline`,
  );
  expect(rows).toEqual([{ plans: 'force_generic_plan', deadline: '4s' }]);
});

/** What needs sessions of its own, although it is no node. */
const WAYS: Readonly<Record<string, (url: string) => Promise<unknown>>> = {
  'up --paused': async (url) => pauseBeforeStart(url, await settingsThrough(url)),
  'audit verify': (url) => readAuditChain(url, 0, noted, noted),
};
const noted = () => undefined;

it('commands that need sessions refuse a pooler in transaction mode as nodes do, each time', async () => {
  const database = await behind((url) => startTransactionPooler(url, 2));
  for (const [name, way] of Object.entries(WAYS)) {
    for (const time of ['first', 'second'])
      await expect(way(database.url), `${name}, ${time} time`).rejects.toMatchObject({
        code: 'DATABASE_POOLED',
      });
  }
});

it('commands work behind a pooler in session mode', async () => {
  const database = await behind(startSessionPooler);
  await migrate(database.url);
  await WAYS['up --paused']!(database.url);
  expect(await readAuditChain(database.url, 0, noted, noted)).toHaveProperty('head');
});

it('operator keys are made without named statements, which a pooler in transaction mode would keep for others', async () => {
  const database = await behind(startSessionPooler);
  await migrate(database.url);
  const { key } = await createOperatorKey(database.url, 'test');
  expect(await verifyOperatorKey(database.url, key)).toBe(true);
  expect(database.prepared).toEqual([]);
  await readAuditChain(database.url, 0, noted, noted);
  expect(database.prepared).not.toEqual([]);
});

it('reading the audit of a database that does not answer says so', async () => {
  const nobody = 'postgres://postgres@127.0.0.1:1/postgres';
  await expect(WAYS['audit verify']!(nobody)).rejects.toMatchObject({ code: 'DATABASE_UNAVAILABLE' });
});
