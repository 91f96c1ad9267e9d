import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import {
  explainDatabaseError,
  inTransaction,
  isCertainFailure,
  isDataError,
  NotConnectedError,
  openAll,
  openPool,
  type Pool,
} from '../../../src/store/database.js';
import { InDoubtError, leaderTransaction, type TermKey } from '../../../src/store/leader-statement.js';
import { addStale } from '../../../src/store/tallies.js';
import { Door } from '../../happening.js';
import { TENANT, TestShard } from './test-shard.js';

let shard: TestShard;
let term: TermKey;
let close: () => Promise<void>;

beforeAll(async () => {
  ({ shard, close } = await TestShard.open());
  term = await shard.lead();
});
afterAll(() => close());

/** A pool with the deadlines of a leader, only shorter. */
function openLeaderPool(): Pool {
  const pool = openPool(shard.url, {
    max: 2,
    applicationName: 'punctual test leader',
    hot: true,
    statementTimeoutMs: 300,
    lockTimeoutMs: 150,
    idleInTransactionTimeoutMs: 200,
  });
  onTestFinished(() => pool.end());
  return pool;
}

const failureOf = (work: Promise<unknown>) =>
  work.then(
    () => undefined,
    (error: unknown) => error,
  );

describe("a leader's connections", () => {
  it('survive a server that says goodbye more than once', async () => {
    const pool = openPool(shard.url, {
      ...{ max: 1, applicationName: 'punctual test goodbye', hot: true },
      ...{ statementTimeoutMs: 300, lockTimeoutMs: 150, idleInTransactionTimeoutMs: 200 },
    });
    const client = await pool.connect();
    client.release();
    // What the driver does when the last words of a server arrive after the query they ended was answered.
    await pool.end();
    expect(() => client.emit('error', new Error('terminating connection'))).not.toThrow();
  });

  it('carry deadlines on the server, each for a hang that the others do not cover', async () => {
    const { rows } = await openLeaderPool().query(
      `SELECT name, setting FROM pg_settings WHERE name IN ('statement_timeout', 'lock_timeout',
       'idle_in_transaction_session_timeout', 'tcp_user_timeout', 'plan_cache_mode') ORDER BY name`,
    );
    expect(rows.map((row) => [row.name, row.setting])).toEqual([
      ['idle_in_transaction_session_timeout', '200'],
      ['lock_timeout', '150'],
      ['plan_cache_mode', 'force_generic_plan'],
      ['statement_timeout', '300'],
      ['tcp_user_timeout', '300'],
    ]);
  });

  it('are opened ahead of time, whatever some of them do meanwhile', async () => {
    const pool = openLeaderPool();
    const busy = await pool.connect();
    const opened = openAll(pool);
    // Nobody who needs one in the meantime waits for all of them.
    await pool.query('SELECT 1');
    busy.release();
    await opened;
    expect([pool.totalCount, pool.idleCount]).toEqual([2, 2]);
  });

  it('that cannot be opened ahead of time say so, and are opened when they are needed', async () => {
    const url = new URL(shard.url);
    url.port = '1';
    const pool = openPool(url.href, {
      ...{ max: 2, applicationName: 'punctual test nowhere', hot: true },
      ...{ statementTimeoutMs: 300, lockTimeoutMs: 150, idleInTransactionTimeoutMs: 200 },
    });
    onTestFinished(() => pool.end());
    await expect(openAll(pool)).rejects.toThrow(/ECONNREFUSED/);
    expect(pool.totalCount).toBe(0);
  });

  it('do not keep the fence when the process stops answering inside a transaction', async () => {
    const pool = openLeaderPool();
    const [held, door] = [new Door(), new Door()];
    const hung = failureOf(
      leaderTransaction(pool, term, async () => {
        held.open();
        await door.opened;
      }),
    );
    await held.opened;
    const startedAt = performance.now();
    await inTransaction(shard.pool, (db) => db.query('LOCK TABLE punctual.leases IN EXCLUSIVE MODE'));
    expect(performance.now() - startedAt).toBeLessThan(5_000);
    door.open();
    expect(await hung).toBeInstanceOf(InDoubtError);
    // The pool throws the lost connection away and goes on with another.
    await addStale(pool, term, [{ tenant: TENANT, completions: 0, failures: 0 }], 0);
  });
});

describe('a failure', () => {
  it('that the server answered with is certain: the statement had no effect', async () => {
    const pool = openLeaderPool();
    const slow = await failureOf(pool.query('SELECT pg_sleep(5)'));
    expect([isCertainFailure(slow), isDataError(slow)]).toEqual([true, false]);
    const broken = await failureOf(pool.query(`SELECT '{'::json`));
    expect([isCertainFailure(broken), isDataError(broken)]).toEqual([true, true]);
    await inTransaction(shard.pool, async (db) => {
      await db.query('LOCK TABLE punctual.leases IN EXCLUSIVE MODE');
      const blocked = await failureOf(addStale(pool, term, [], 0));
      expect(blocked).not.toBeInstanceOf(InDoubtError);
      expect([isCertainFailure(blocked), isDataError(blocked)]).toEqual([true, false]);
    });
  });

  it('of the connection leaves the outcome of a write in doubt', async () => {
    const pool = openLeaderPool();
    const ended = leaderTransaction(pool, term, async (db) => {
      await db.query('SELECT pg_terminate_backend(pg_backend_pid())');
    });
    const error = (await failureOf(ended)) as InDoubtError;
    expect(error).toBeInstanceOf(InDoubtError);
    expect(isCertainFailure(error.cause)).toBe(false);
  });

  it('to get a connection is certain too: nothing was sent', async () => {
    const nowhere = new URL(shard.url);
    nowhere.port = '1';
    const unreachable = openPool(nowhere.href, {
      max: 1,
      applicationName: 'punctual test',
      hot: false,
      statementTimeoutMs: 500,
      lockTimeoutMs: 500,
      idleInTransactionTimeoutMs: 500,
    });
    onTestFinished(() => unreachable.end());
    const full = openLeaderPool();
    const taken = await Promise.all([full.connect(), full.connect()]);
    onTestFinished(() => {
      for (const connection of taken) connection.release();
    });
    for (const pool of [unreachable, full]) {
      const failures = await Promise.all([
        failureOf(addStale(pool, term, [], 0)),
        failureOf(leaderTransaction(pool, term, async () => undefined)),
      ]);
      for (const failure of failures) {
        expect(failure).toBeInstanceOf(NotConnectedError);
        expect(isCertainFailure(failure)).toBe(true);
        expect(explainDatabaseError(failure)).toMatchObject({ code: 'DATABASE_UNAVAILABLE', retryAfter: 1 });
      }
    }
  });

  it('for lack of time or because of others is told to users as one that passes', async () => {
    const pool = openLeaderPool();
    const slow = await failureOf(pool.query('SELECT pg_sleep(5)'));
    expect(explainDatabaseError(slow)).toMatchObject({ code: 'DATABASE_UNAVAILABLE', retryAfter: 1 });
    await inTransaction(shard.pool, async (db) => {
      await db.query('LOCK TABLE punctual.keys');
      const blocked = await failureOf(pool.query('SELECT 1 FROM punctual.keys'));
      expect(explainDatabaseError(blocked)).toMatchObject({ code: 'DATABASE_UNAVAILABLE' });
    });
    const broken = await failureOf(pool.query(`SELECT '{'::json`));
    expect(explainDatabaseError(broken)).toBe(broken);
  });
});

describe('a transaction', () => {
  it('that fails changes nothing and gives its connection back', async () => {
    const pool = openLeaderPool();
    for (let i = 0; i < 5; i++) {
      const failed = await failureOf(
        inTransaction(pool, async (db) => {
          await db.query(`INSERT INTO punctual.tallies (at, tenant) VALUES (0, 'undone')`);
          throw new Error('half way');
        }),
      );
      expect(failed).toMatchObject({ message: 'half way' });
    }
    const { rows } = await pool.query(`SELECT 1 FROM punctual.tallies WHERE tenant = 'undone'`);
    expect(rows).toEqual([]);
    expect(pool.totalCount).toBe(1);
  });
});
