import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach, expect, it, onTestFinished } from 'vitest';
import { Membership } from '../../src/cluster/membership.js';
import { PeerCaller } from '../../src/cluster/peer-caller.js';
import { SILENT_LOG } from '../../src/core/log.js';
import { listNodes } from '../../src/store/cluster-state.js';
import { Happening } from '../happening.js';
import { TestClock } from '../test-clock.js';
import { TestShard } from './store/test-shard.js';

let shard: TestShard;
let close: () => Promise<void>;

beforeAll(async () => {
  ({ shard, close } = await TestShard.open());
});
beforeEach(() => shard.pool.query('DELETE FROM punctual.nodes'));
afterAll(() => close());

/** A node as far as others know it: what it is told makes it look, as in a whole node. */
class Member {
  readonly told = new Happening<string>();
  readonly looks = new Happening<void>();
  membership!: Membership;

  static async join(id: string): Promise<Member> {
    const member = new Member();
    const server = createServer((request, response) => {
      member.told.happen(request.url!);
      if (request.url === '/internal/node-joined') member.membership.look();
      response.writeHead(204).end();
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const peers = new PeerCaller(SILENT_LOG, () => 'token');
    member.membership = new Membership({
      db: shard.pool,
      self: { id, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, version: '0.0.0' },
      clock: new TestClock(),
      peers,
      log: SILENT_LOG,
      onSeen: async () => member.looks.happen(),
    });
    member.membership.start();
    onTestFinished(async () => {
      await member.membership.stop();
      await peers.close();
      server.closeAllConnections();
      server.close();
    });
    await member.looks.times(1);
    return member;
  }
}

it('a node that joins says so, and is told of the lease from then on', async () => {
  const first = await Member.join('node-a');
  const second = await Member.join('node-b');
  await first.told.times(1);
  // Long before the next look by itself.
  await first.looks.times(2);
  await first.membership.tellOfLease(0);
  await second.membership.tellOfLease(0);
  expect(second.told.all).toEqual(['/internal/lease-changed']);
  expect(first.told.all).toEqual(['/internal/node-joined', '/internal/lease-changed']);
});

it('a node says only once that it has joined', async () => {
  const first = await Member.join('node-a');
  const second = await Member.join('node-b');
  second.membership.look();
  await second.looks.times(2);
  await second.membership.tellOfLease(0);
  await first.told.times(2);
  expect([...first.told.all].sort()).toEqual(['/internal/lease-changed', '/internal/node-joined']);
});

it('a node that leaves is on the list no more; one that is gone without a word holds nobody up', async () => {
  const first = await Member.join('node-a');
  const second = await Member.join('node-b');
  await shard.pool.query(
    `INSERT INTO punctual.nodes (id, url, version, started_at, last_seen)
     VALUES ('gone', 'http://127.0.0.1:1', '', 0, extract(epoch FROM now()) * 1000)`,
  );
  // One look for the node that joined, one for the one that did not say so.
  await first.looks.times(2);
  first.membership.look();
  await first.looks.times(3);
  await first.membership.tellOfLease(0);
  expect(second.told.all).toEqual(['/internal/lease-changed']);
  await second.membership.stop();
  await second.membership.leave();
  expect((await listNodes(shard.pool)).map(({ id }) => id).sort()).toEqual(['gone', 'node-a']);
});

it('an address is told once, whatever died at it before, and a node tells itself nothing', async () => {
  const first = await Member.join('node-a');
  const second = await Member.join('node-b');
  await shard.pool.query(
    `INSERT INTO punctual.nodes (id, url, version, started_at, last_seen)
     SELECT 'died at ' || id, url, version, started_at, last_seen FROM punctual.nodes`,
  );
  await first.looks.times(2);
  first.membership.look();
  await first.looks.times(3);
  await first.membership.tellOfLease(0);
  expect(second.told.all).toEqual(['/internal/lease-changed']);
  expect(first.told.all).toEqual(['/internal/node-joined']);
});

it('a node that leaves does not take the one off the list that has replaced it under its id', async () => {
  const old = await Member.join('node-a');
  await old.membership.stop();
  await Member.join('node-a');
  await old.membership.leave();
  expect((await listNodes(shard.pool)).map(({ id }) => id)).toEqual(['node-a']);
});
