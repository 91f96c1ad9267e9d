import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, expect, it, onTestFinished } from 'vitest';
import { Leadership } from '../../../src/cluster/leadership.js';
import type { Term } from '../../../src/cluster/term.js';
import { inTransaction } from '../../../src/store/database.js';
import { leaderTransaction } from '../../../src/store/leader-statement.js';
import { lookAtLease } from '../../../src/store/lease.js';
import { Door, Happening } from '../../happening.js';
import { SHARD, TestShard, until } from '../store/test-shard.js';

/** A TTL that no test waits for, unless it says so. */
const LONG_TTL_MS = 20_000;
/** What needs no expiry takes about a second; on a busy machine longer, but never as long as the TTL. */
const SOON_MS = 10_000;

let shard: TestShard;
let close: () => Promise<void>;

beforeAll(async () => {
  ({ shard, close } = await TestShard.open());
});
beforeEach(() => shard.forgetTerms());
afterAll(() => close());

interface Candidate {
  readonly leadership: Leadership;
  readonly terms: Happening<Term>;
  readonly looks: Happening<number>;
  readonly warnings: Happening<string>;
}

/** A node as far as leading goes, stopped with the test. */
function startCandidate(
  nodeId: string,
  ttlMs = LONG_TTL_MS,
  { databaseUrl = shard.url, onReleased = async () => {} } = {},
): Candidate {
  const terms = new Happening<Term>();
  const looks = new Happening<number>();
  const warnings = new Happening<string>();
  const leadership = new Leadership({
    databaseUrl,
    shard: SHARD,
    nodeId,
    url: () => `http://${nodeId}`,
    ttlMs,
    log: {
      debug: () => undefined,
      info: () => undefined,
      warn: (fields) => warnings.happen(String(fields.error)),
      error: (fields) => warnings.happen(String(fields.error)),
    },
    onTerm: terms.happen,
    onTime: looks.happen,
    onReleased,
    onFollowing: () => undefined,
  });
  leadership.start();
  onTestFinished(() => leadership.stop());
  return { leadership, terms, looks, warnings };
}

/** Two nodes of one shard; the first to lead, and the other. */
async function startTwo(): Promise<[Candidate, Candidate]> {
  const both = [startCandidate('node-a'), startCandidate('node-b')] as const;
  await Promise.race(both.map(({ terms }) => terms.times(1)));
  const [a, b] = both;
  return a.terms.all.length > 0 ? [a, b] : [b, a];
}

/**
 * The address of the database behind something that greets like a pooler: with a number of its own in place of the
 * session's. Everything else passes.
 */
async function behindPooler(): Promise<string> {
  const { hostname, port } = new URL(shard.url);
  const server = createServer((client) => {
    const database = connect(Number(port), hostname);
    let greeted = false;
    database.on('data', (bytes) => {
      const at = greeted ? -1 : bytes.indexOf(BACKEND_KEY_DATA);
      if (at >= 0) bytes.writeInt32BE(1, at + BACKEND_KEY_DATA.length);
      greeted ||= at >= 0;
      client.write(bytes);
    });
    client.on('data', (bytes) => database.write(bytes));
    for (const [socket, other] of [
      [client, database],
      [database, client],
    ] as const) {
      socket.on('error', () => undefined).on('close', () => other.destroy());
    }
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const url = new URL(shard.url);
  url.host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  return url.href;
}

/** The head of the message in which a server tells the number of a session. */
const BACKEND_KEY_DATA = Buffer.from([0x4b, 0, 0, 0, 12]);

async function sessionsOf(nodeId: string): Promise<number[]> {
  const { rows } = await shard.pool.query('SELECT pid FROM pg_stat_activity WHERE application_name = $1', [
    `punctual lease ${nodeId}`,
  ]);
  return rows.map((row) => row.pid);
}

/** A fenced transaction of a node that stopped answering; the database ends it, never this test. */
async function hang(holder: string): Promise<{ ended: Promise<unknown> }> {
  const term = await shard.lead({ holder });
  const held = new Door();
  const ended = leaderTransaction(shard.pool, term, async (db) => {
    held.open();
    await db.query('SELECT pg_sleep(15)');
  }).catch((error: unknown) => error);
  await held.opened;
  return { ended };
}

it('of two nodes exactly one leads, and the other only looks', async () => {
  const [leader, standby] = await startTwo();
  await standby.looks.times(3);
  expect(leader.leadership.current).toMatchObject({ epoch: 1, over: false, trusted: true });
  expect(standby.leadership.current).toBeUndefined();
  expect(standby.leadership.leader?.url).toBe(`http://${leader.leadership.current!.holder}`);
  expect(await shard.count('terms')).toBe(1);
});

it('a standby never makes a healthy leader wait', async () => {
  const [leader, standby] = await startTwo();
  const term = leader.leadership.current!;
  const door = new Door();
  const long = leaderTransaction(shard.pool, term, () => door.opened);
  const seen = standby.looks.all.length;
  for (let look = 1; look <= 2; look++) {
    await standby.looks.times(seen + look);
    // A lock that the standby had asked for would stand behind the long write and in front of this one.
    await leaderTransaction(shard.pool, term, async () => undefined);
  }
  door.open();
  await long;
  expect(await shard.count('terms')).toBe(1);
});

it('nodes that cannot reach each other do not take the term from one another, however often they suspect', async () => {
  const nodes = ['node-a', 'node-b', 'node-c'].map((id) => startCandidate(id));
  await Promise.race(nodes.map(({ terms }) => terms.times(1)));
  const looked = nodes.map(({ looks }) => looks.all.length);
  // A socket that closed makes a node look at the lease; that is all it does.
  while (nodes.some(({ looks }, index) => looks.all.length < looked[index]! + 10)) {
    for (const { leadership } of nodes) leadership.suspect();
    await pause(10);
  }
  expect(nodes.flatMap(({ terms }) => terms.all.map(({ epoch }) => epoch))).toEqual([1]);
});

it('two processes under one id do not take the term from each other', async () => {
  const first = startCandidate('node-a');
  await first.terms.times(1);
  const second = startCandidate('node-a');
  await second.looks.times(2);
  expect(first.leadership.current?.epoch).toBe(1);
  expect(await shard.count('terms')).toBe(1);
  await first.leadership.stop();
  second.leadership.look();
  await second.terms.times(1);
});

it('a term is renewed for as long as its node lives', async () => {
  const candidate = startCandidate('node-a', 900);
  await candidate.looks.times(5);
  expect(candidate.terms.all).toHaveLength(1);
  expect(candidate.leadership.current?.trusted).toBe(true);
});

it('a node that stops hands over at once, long before the lease runs out', async () => {
  const [leader, standby] = await startTwo();
  await until(() => standby.leadership.leader !== null);
  const term = leader.leadership.current!;
  const startedAt = performance.now();
  await leader.leadership.stop();
  expect(term.over).toBe(true);
  standby.leadership.look();
  await standby.terms.times(1);
  expect(performance.now() - startedAt).toBeLessThan(SOON_MS);
  expect(standby.leadership.current?.epoch).toBe(term.epoch + 1);
  const { rows } = await shard.pool.query('SELECT reason FROM punctual.terms ORDER BY epoch');
  expect(rows.map(({ reason }) => reason)).toEqual([
    'nobody had led before',
    'the leader before had given it up',
  ]);
});

it('a node that follows lets go of those who wait for a term once it sees that the term is over', async () => {
  const [leader, standby] = await startTwo();
  await standby.looks.times(2);
  const followed = standby.leadership.leader!;
  expect(followed.url).toBe(`http://${leader.leadership.current!.holder}`);
  const seen = standby.looks.all.length;
  standby.leadership.look();
  await standby.looks.times(seen + 1);
  expect(followed.over.aborted).toBe(false);
  await leader.leadership.stop();
  standby.leadership.look();
  await standby.terms.times(1);
  expect(followed.over.aborted).toBe(true);
  expect(standby.leadership.leader).toBeNull();
});

it('a lease connection that is ended costs the term, and a new one begins soon', async () => {
  const [leader, standby] = await startTwo();
  const old = leader.leadership.current!;
  const startedAt = performance.now();
  await shard.pool.query('SELECT pg_terminate_backend(session_pid) FROM punctual.leases');
  await Promise.race([leader.terms.times(2), standby.terms.times(1)]);
  expect(performance.now() - startedAt).toBeLessThan(SOON_MS);
  expect(old.over).toBe(true);
  const view = await lookAtLease(shard.pool, SHARD);
  expect(view.epoch).toBe(old.epoch + 1);
  expect([leader, standby].filter(({ leadership }) => leadership.current)).toHaveLength(1);
});

it('a lease that is lost can be looked at, and is followed by a later term', async () => {
  const [leader, standby] = await startTwo();
  const old = leader.leadership.current!;
  // Looked at before others can, who would make the row anew.
  const view = await inTransaction(shard.pool, async (db) => {
    await db.query('DELETE FROM punctual.leases');
    return lookAtLease(db, SHARD);
  });
  expect(view).toMatchObject({ epoch: 0, holder: '', expired: true });
  standby.leadership.look();
  await standby.terms.times(1);
  expect(standby.leadership.current!.epoch).toBeGreaterThan(old.epoch);
});

it('behind a pooler no session stands for the node: only expiry ends its term', async () => {
  const databaseUrl = await behindPooler();
  const pooled = startCandidate('node-a', LONG_TTL_MS, { databaseUrl });
  await pooled.terms.times(1);
  const { rows } = await shard.pool.query('SELECT session_pid, session_start FROM punctual.leases');
  expect(rows).toEqual([{ session_pid: null, session_start: null }]);
  const direct = startCandidate('node-b');
  await direct.looks.times(2);
  expect(await shard.count('terms')).toBe(1);
});

it('a node behind a pooler ends a hung leader all the same', async () => {
  const hung = await hang('hung');
  await shard.expireLease();
  const candidate = startCandidate('node-a', LONG_TTL_MS, { databaseUrl: await behindPooler() });
  await candidate.terms.times(1);
  expect(candidate.leadership.current?.epoch).toBe(2);
  expect(await hung.ended).toBeInstanceOf(Error);
});

it('a node stops even if nobody can be told that its term is free', async () => {
  const candidate = startCandidate('node-a', LONG_TTL_MS, {
    onReleased: () => Promise.reject(new Error('nobody listens')),
  });
  await candidate.terms.times(1);
  await candidate.leadership.stop();
  expect((await lookAtLease(shard.pool, SHARD)).expired).toBe(true);
});

it('a term that is renounced is followed by the next of the same node', async () => {
  const [leader, standby] = await startTwo();
  const old = leader.leadership.current!;
  leader.leadership.renounce(old, 'the outcome of a write is unknown');
  expect(old.reason).toBe('the outcome of a write is unknown');
  await leader.terms.times(2);
  expect(leader.leadership.current).toMatchObject({ epoch: old.epoch + 1, holder: old.holder });
  expect(standby.terms.all).toHaveLength(0);
  const { rows } = await shard.pool.query('SELECT reason FROM punctual.terms ORDER BY epoch DESC LIMIT 1');
  expect(rows[0].reason).toBe('the outcome of a write is unknown');
});

it('a node that was shown a higher epoch takes a term above it', async () => {
  const candidate = startCandidate('node-a');
  await candidate.terms.times(1);
  candidate.leadership.renounce(candidate.terms.all[0]!, 'a worker has seen a higher epoch', 17);
  await candidate.terms.times(2);
  expect(candidate.leadership.current?.epoch).toBe(18);
});

it('renouncing a term that is long over does nothing', async () => {
  const candidate = startCandidate('node-a');
  await candidate.terms.times(1);
  const first = candidate.terms.all[0]!;
  candidate.leadership.renounce(first, 'doubt');
  await candidate.terms.times(2);
  candidate.leadership.renounce(first, 'the same doubt, told late');
  expect(candidate.leadership.current?.over).toBe(false);
  expect(await shard.count('terms')).toBe(2);
});

it('a leader that hangs with the fence in its hands is ended after half a second', async () => {
  const hung = await hang('hung');
  await shard.expireLease();
  const startedAt = performance.now();
  const candidate = startCandidate('node-a');
  await candidate.terms.times(1);
  const took = performance.now() - startedAt;
  expect(took).toBeGreaterThan(450);
  expect(took).toBeLessThan(SOON_MS);
  expect(candidate.leadership.current?.epoch).toBe(2);
  expect(await hung.ended).toBeInstanceOf(Error);
});

it('two standbys that wait for a hung leader do not end each other', async () => {
  const hung = await hang('hung');
  await shard.expireLease();
  const [leader, standby] = await startTwo();
  const seen = standby.looks.all.length;
  await standby.looks.times(seen + 2);
  expect(await hung.ended).toBeInstanceOf(Error);
  expect([...leader.warnings.all, ...standby.warnings.all]).toEqual([]);
  expect(leader.leadership.current?.epoch).toBe(2);
  expect(await shard.count('terms')).toBe(2);
});

it('a node whose lease cannot be read opens no second connection beside a useless one', async () => {
  await shard.pool.query('ALTER TABLE punctual.leases RENAME TO hidden');
  const candidate = startCandidate('node-a', 800);
  await candidate.warnings.times(4);
  await until(async () => (await sessionsOf('node-a')).length <= 1);
  await shard.pool.query('ALTER TABLE punctual.hidden RENAME TO leases');
  await candidate.terms.times(1);
  expect(await sessionsOf('node-a')).toHaveLength(1);
});
