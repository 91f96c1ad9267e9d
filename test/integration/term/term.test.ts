import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { readClaims } from '../../../src/store/claims.js';
import type { Queryable } from '../../../src/store/database.js';
import { inTransaction } from '../../../src/store/database.js';
import { leaderTransaction, type TermKey, TermOverError } from '../../../src/store/leader-statement.js';
import {
  type Candidate,
  endLeaseBlockers,
  lockLeasesNow,
  lookAtLease,
  releaseTerm,
  renewTerm,
  takeTerm,
} from '../../../src/store/lease.js';
import { addStale } from '../../../src/store/tallies.js';
import { Door } from '../../happening.js';
import { candidateOf, pidOf, SHARD, TENANT, TestShard, until, waitsForLock } from '../store/test-shard.js';

const TTL_MS = 600_000;

let shard: TestShard;
let close: () => Promise<void>;

beforeAll(async () => {
  ({ shard, close } = await TestShard.open());
});
beforeEach(() => shard.forgetTerms());
afterAll(() => close());

/** A fenced transaction that stays open until its door is opened. */
function openWrite(term: TermKey, work: (db: Queryable) => Promise<unknown> = nothing, at = shard) {
  const held = new Door();
  const door = new Door();
  const committed = leaderTransaction(at.pool, term, async (db) => {
    await work(db);
    held.open();
    await door.opened;
  });
  // Looked at in the end; a write that is ended from outside must not count as forgotten until then.
  committed.catch(() => undefined);
  return { held: held.opened, commit: () => door.open(), committed };
}

async function nothing(): Promise<void> {}

/** A short fenced write that leaves one row with the epoch. */
function shortWrite(term: TermKey): Promise<void> {
  return addStale(shard.hot, term, [{ tenant: TENANT, completions: 1, failures: 0 }], term.epoch);
}

/** A takeover on a connection of its own, so that a test can see it wait. */
async function takeover(candidate: Partial<Candidate>) {
  const client = await shard.connect();
  const pid = await pidOf(client);
  const epoch = (async () => {
    await client.query('BEGIN');
    const taken = await takeTerm(client, candidateOf(candidate));
    await client.query('COMMIT');
    return taken;
  })();
  return { pid, client, epoch };
}

describe('renewals and fenced writes', () => {
  it('a renewal does not wait for a write in flight', async () => {
    const term = await shard.lead();
    const write = openWrite(term);
    await write.held;
    expect(await renewTerm(shard.pool, term, TTL_MS)).not.toBeNull();
    write.commit();
    await write.committed;
  });

  it('a write does not wait for a renewal in flight', async () => {
    const term = await shard.lead();
    await inTransaction(shard.pool, async (db) => {
      await renewTerm(db, term, TTL_MS);
      await shortWrite(term);
    });
  });

  it('a renewal prolongs the lease from the moment it runs', async () => {
    const term = await shard.lead({ ttlMs: 5_000 });
    const renewal = await renewTerm(shard.pool, term, TTL_MS);
    const view = await lookAtLease(shard.pool, SHARD);
    expect(view.expiresAt! - renewal!.now).toBeGreaterThanOrEqual(TTL_MS - 5);
    expect(view.expired).toBe(false);
  });

  it('an expired term is not prolonged, even if nobody took it', async () => {
    const term = await shard.lead();
    await shard.expireLease();
    expect(await renewTerm(shard.pool, term, TTL_MS)).toBeNull();
  });
});

describe('a takeover', () => {
  it('waits for a fenced write in flight, and later writes of the old term match nothing', async () => {
    const term = await shard.lead();
    const write = openWrite(term);
    await write.held;
    await shard.expireLease();
    const taking = await takeover({ holder: 'node-b' });
    await waitsForLock(shard.pool, taking.pid);
    const late = shortWrite(term).catch((error: unknown) => error);
    write.commit();
    await write.committed;
    expect(await taking.epoch).toBe(term.epoch + 1);
    expect(await late).toBeInstanceOf(TermOverError);
    await expect(shortWrite(term)).rejects.toThrow(TermOverError);
    await shortWrite({ ...term, epoch: term.epoch + 1, holder: 'node-b' });
  });

  it('sees the claims that were committed just before it, in a read after its commit', async () => {
    const term = await shard.lead();
    const id = await shard.submit();
    const claim = `INSERT INTO punctual.claims (job, fence, worker, epoch, claimed_at) VALUES ($1, 1, $1, 1, 0)`;
    const write = openWrite(term, (db) => db.query(claim, [id]));
    await write.held;
    await shard.expireLease();
    const taking = await takeover({ holder: 'node-b' });
    await waitsForLock(shard.pool, taking.pid);
    write.commit();
    await taking.epoch;
    expect((await readClaims(taking.client)).map((row) => row.id)).toEqual([id]);
  });

  it('that finds a write in its way can step back without holding up another', async () => {
    const term = await shard.lead();
    const write = openWrite(term);
    await write.held;
    const client = await shard.connect();
    await client.query('BEGIN');
    expect(await lockLeasesNow(client)).toBe(false);
    await shortWrite(term);
    await client.query('ROLLBACK');
    write.commit();
    await write.committed;
    await client.query('BEGIN');
    expect(await lockLeasesNow(client)).toBe(true);
    await client.query('ROLLBACK');
  });

  it('is not starved by writes that overlap without a gap', async () => {
    const term = await shard.lead();
    const writers = Array.from({ length: 6 }, async () => {
      for (;;) await leaderTransaction(shard.pool, term, (db) => db.query('SELECT pg_sleep(0.03)'));
    });
    const ends = Promise.allSettled(writers);
    await until(async () => {
      const { rows } = await shard.hot.query(
        `SELECT count(*) AS n FROM pg_locks WHERE relation = 'punctual.leases'::regclass AND database =
         (SELECT oid FROM pg_database WHERE datname = current_database()) AND mode = 'RowShareLock'`,
      );
      return rows[0].n >= 4;
    });
    await shard.expireLease();
    const startedAt = performance.now();
    expect(await (await takeover({ holder: 'node-b' })).epoch).toBe(term.epoch + 1);
    expect(performance.now() - startedAt).toBeLessThan(10_000);
    for (const end of await ends) {
      expect(end).toMatchObject({ status: 'rejected', reason: expect.any(TermOverError) });
    }
  });

  it('looks again inside its lock: a renewal that committed while it waited keeps the term', async () => {
    const term = await shard.lead({ ttlMs: 200 });
    const door = new Door();
    const renewal = inTransaction(shard.pool, async (db) => {
      expect(await renewTerm(db, term, TTL_MS)).not.toBeNull();
      await door.opened;
    });
    await until(async () => (await lookAtLease(shard.pool, SHARD)).expired);
    const taking = await takeover({ holder: 'node-b' });
    await waitsForLock(shard.pool, taking.pid);
    door.open();
    await renewal;
    expect(await taking.epoch).toBeNull();
    await shortWrite(term);
  });

  it('happens when the lease has expired, not before', async () => {
    const term = await shard.lead();
    expect(await (await takeover({ holder: 'node-b' })).epoch).toBeNull();
    await shard.expireLease();
    expect(await (await takeover({ holder: 'node-b' })).epoch).toBe(term.epoch + 1);
  });

  it('happens long before expiry when the session of the holder is gone', async () => {
    const holder = await shard.connect();
    const term = await shard.lead({ sessionPid: await pidOf(holder) });
    expect((await lookAtLease(shard.pool, SHARD)).sessionGone).toBe(false);
    expect(await (await takeover({ holder: 'node-b' })).epoch).toBeNull();
    await holder.end();
    await until(async () => (await lookAtLease(shard.pool, SHARD)).sessionGone);
    expect(await (await takeover({ holder: 'node-b' })).epoch).toBe(term.epoch + 1);
  });

  it('is not fooled by another session that got the process id of the old one', async () => {
    await shard.lead({ sessionPid: await pidOf(await shard.connect()) });
    await shard.pool.query(`UPDATE punctual.leases SET session_start = session_start - interval '1 s'`);
    expect((await lookAtLease(shard.pool, SHARD)).sessionGone).toBe(true);
  });

  it('waits for expiry when the role may not see whether the session is the one that it was', async () => {
    const role = `stranger_${process.pid}_${Math.trunc(performance.now() * 1_000)}`;
    const stranger = await shard.connectAsAdministrator();
    await stranger.query(`CREATE ROLE ${role}`);
    onTestFinished(async () => {
      await stranger.query('RESET ROLE');
      await stranger.query(`DROP OWNED BY ${role}`);
      await stranger.query(`DROP ROLE ${role}`);
    });
    await stranger.query(`GRANT USAGE ON SCHEMA punctual TO ${role}`);
    await stranger.query(`GRANT ALL ON ALL TABLES IN SCHEMA punctual TO ${role}`);
    const holder = await shard.connect();
    await shard.lead({ sessionPid: await pidOf(holder) });
    await stranger.query(`SET ROLE ${role}`);
    const take = async () => {
      await stranger.query('BEGIN');
      const epoch = await takeTerm(stranger, candidateOf({ holder: 'node-b' }));
      await stranger.query('COMMIT');
      return epoch;
    };
    expect((await lookAtLease(stranger, SHARD)).sessionGone).toBe(false);
    expect(await take()).toBeNull();
    // That a session is not there at all can be seen by everybody.
    await holder.end();
    await until(async () => (await lookAtLease(stranger, SHARD)).sessionGone);
    expect(await take()).toBe(2);
  });

  it('raises the epoch by one each time, and above what anybody has seen', async () => {
    const first = await shard.lead();
    expect((await shard.lead()).epoch).toBe(first.epoch + 1);
    await shard.expireLease();
    expect((await shard.lead({ holder: 'node-b' })).epoch).toBe(first.epoch + 2);
    expect((await shard.lead({ holder: 'node-b', aboveEpoch: 40 })).epoch).toBe(41);
    const { rows } = await shard.pool.query('SELECT epoch, holder FROM punctual.terms ORDER BY epoch');
    expect(rows.map((row) => row.epoch)).toEqual([first.epoch, first.epoch + 1, first.epoch + 2, 41]);
    expect(rows.map((row) => row.holder)).toEqual(['node-a', 'node-a', 'node-b', 'node-b']);
  });

  it('leaves nothing to the old leader: neither renewal nor release', async () => {
    const old = await shard.lead();
    await shard.expireLease();
    const next = await shard.lead({ holder: 'node-b' });
    expect(await renewTerm(shard.pool, old, TTL_MS)).toBeNull();
    await releaseTerm(shard.pool, old);
    expect(await lookAtLease(shard.pool, SHARD)).toMatchObject({ holder: 'node-b', expired: false });
    // A promoted replica may repeat an epoch: it is another term when another node holds it.
    expect(await renewTerm(shard.pool, { ...next, holder: 'node-a' }, TTL_MS)).toBeNull();
    expect(await renewTerm(shard.pool, next, TTL_MS)).not.toBeNull();
  });

  it('comes at once after a release', async () => {
    const term = await shard.lead();
    await releaseTerm(shard.pool, term);
    await expect(shard.lead({ holder: 'node-b' })).resolves.toMatchObject({ epoch: term.epoch + 1 });
  });
});

describe('a standby that looks', () => {
  it('takes no lock that a write or a renewal would wait for', async () => {
    const term = await shard.lead();
    await inTransaction(shard.pool, async (db) => {
      await lookAtLease(db, SHARD);
      await shortWrite(term);
      expect(await renewTerm(shard.pool, term, TTL_MS)).not.toBeNull();
    });
  });
});

describe('ending those who block a takeover', () => {
  it('ends a session that holds the fence', async () => {
    const term = await shard.lead();
    const hung = openWrite(term);
    await hung.held;
    await shard.expireLease();
    const taking = await takeover({ holder: 'node-b' });
    await waitsForLock(shard.pool, taking.pid);
    await endLeaseBlockers(shard.pool, taking.pid);
    expect(await taking.epoch).toBe(term.epoch + 1);
    hung.commit();
    await expect(hung.committed).rejects.toThrow('unknown');
  });

  it('ends nobody once the takeover has what it waited for', async () => {
    const term = await shard.lead();
    const write = openWrite(term);
    await write.held;
    await endLeaseBlockers(shard.pool, await pidOf(await shard.connect()));
    write.commit();
    await write.committed;
  });

  it('spares other standbys: one that looks, one that waits before it, one that has the lock', async () => {
    await shard.lead();
    const looking = await shard.connect();
    await looking.query('BEGIN');
    await lookAtLease(looking, SHARD);
    const taking = await shard.connect();
    await taking.query('BEGIN');
    await takeTerm(taking, candidateOf({}));
    const before = await takeover({ holder: 'node-b' });
    await waitsForLock(shard.pool, before.pid);
    const last = await takeover({ holder: 'node-c' });
    await waitsForLock(shard.pool, last.pid);
    await endLeaseBlockers(shard.pool, last.pid);
    await looking.query('COMMIT');
    await taking.query('COMMIT');
    expect(await Promise.all([before.epoch, last.epoch])).toEqual([null, null]);
  });

  it('spares the sessions of another shard on the same server', async () => {
    const other = await TestShard.forTest();
    const elsewhere = openWrite(await other.lead(), nothing, other);
    const hung = openWrite(await shard.lead());
    await Promise.all([elsewhere.held, hung.held]);
    await shard.expireLease();
    const taking = await takeover({ holder: 'node-b' });
    await waitsForLock(shard.pool, taking.pid);
    // Both databases were cloned from one, so their tables have the same numbers in the server's list of locks.
    await endLeaseBlockers(shard.pool, taking.pid);
    expect(await taking.epoch).not.toBeNull();
    elsewhere.commit();
    hung.commit();
    await elsewhere.committed;
    await expect(hung.committed).rejects.toThrow('unknown');
  });
});

it('no row of an older epoch appears after a takeover, however renewals, writes and takeovers cross', async () => {
  let newest = await shard.lead({ ttlMs: 5 });
  const until = performance.now() + 1_500;
  const going = () => performance.now() < until;
  const countBelow = async (epoch: number) =>
    (
      await shard.pool.query('SELECT count(*) AS n FROM punctual.tallies WHERE at < $1 AND tenant = $2', [
        epoch,
        TENANT,
      ])
    ).rows[0].n;
  let writes = 0;
  let refused = 0;
  const writer = async () => {
    let term = newest;
    while (going()) {
      if (Math.random() < 0.1) term = newest;
      const long = (db: Queryable) =>
        db.query(`SELECT pg_sleep(random() * 0.006)`).then(() => insert(db, term));
      await (Math.random() < 0.3 ? leaderTransaction(shard.pool, term, long) : shortWrite(term)).then(
        () => (writes += 1),
        (error: unknown) => {
          expect(error).toBeInstanceOf(TermOverError);
          refused += 1;
        },
      );
    }
  };
  const insert = (db: Queryable, term: TermKey) =>
    db.query('INSERT INTO punctual.tallies (at, tenant) VALUES ($1, $2)', [term.epoch, TENANT]);
  const renewer = async () => {
    while (going()) await renewTerm(shard.pool, newest, 4);
  };
  const taker = async (holder: string) => {
    while (going()) {
      if (!(await lookAtLease(shard.pool, SHARD)).expired) continue;
      const taken = await inTransaction(shard.pool, (db) => takeTerm(db, candidateOf({ holder, ttlMs: 5 })));
      if (taken === null) continue;
      if (taken > newest.epoch) newest = { shard: SHARD, epoch: taken, holder };
      const count = await countBelow(taken);
      await shard.pool.query('SELECT pg_sleep(0.004)');
      expect(await countBelow(taken)).toBe(count);
    }
  };
  await Promise.all([writer(), writer(), writer(), renewer(), taker('node-b'), taker('node-c')]);
  expect(Math.min(writes, refused, newest.epoch)).toBeGreaterThan(5);
});
