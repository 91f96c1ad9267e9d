import { AsyncLocalStorage } from 'node:async_hooks';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { afterEach, expect, it, onTestFinished, vi } from 'vitest';
import { HttpReceiver } from '../../../../test/http-receiver.js';
import { Deadlines } from '../../deadlines.js';
import { stopOf } from '../runner.js';
import { AddressGuard } from './address-guard.js';
import { AddressResolver } from './address-resolver.js';
import { CallDeadline } from './call-deadline.js';
import { Address } from './call-plan.js';
import type { CallRequest } from './call-request.js';
import { Connections } from './connections.js';
import { guardedConnector } from './connector.js';
import { type OriginClient, OriginClients, type Place, Visitor } from './origin-clients.js';

afterEach(() => void vi.useRealTimers());

/** Calls of a name that leads to whatever address it has at the moment. */
function openConnections(ttlMs: number) {
  const dns = { address: '127.0.0.1', asked: 0 };
  const connect = guardedConnector({
    resolver: new AddressResolver(async () => {
      dns.asked += 1;
      return [dns.address];
    }),
    guard: new AddressGuard(['127.0.0.0/8']),
  });
  const connections = new Connections(connect, ttlMs);
  const deadlines = new Deadlines();
  onTestFinished(() => {
    connections.close();
    deadlines.clear();
  });
  const call = async (port: string) => {
    const address = new Address(new URL(`http://moving.example:${port}/`));
    const request: CallRequest = {
      ...{ address, method: 'POST', headers: [], body: '' },
      ...{ hasSecretBody: false, ownHeaders: new Set() },
    };
    const deadline = new CallDeadline(5_000, stopOf(new AbortController().signal), deadlines);
    try {
      return await connections.send({
        ...{ origin: address.origin, isFresh: false, deadline },
        ...{ request: () => request, limitOf: () => 0 },
      });
    } finally {
      deadline.release();
    }
  };
  return { dns, call };
}

it('a connection is not used for longer than its time, so that a name with another address is found again', async () => {
  const receiver = await HttpReceiver.start();
  const { port } = new URL(receiver.url);
  const { dns, call } = openConnections(0);
  await call(port);
  // Nothing listens there.
  dns.address = '127.0.0.2';
  await expect(call(port)).rejects.toMatchObject({ code: 'ECONNREFUSED' });
  expect(dns.asked).toBe(2);
  expect(receiver.connections).toBe(1);
});

it('within its time, a connection is used again and no name is asked for', async () => {
  const receiver = await HttpReceiver.start();
  const { port } = new URL(receiver.url);
  const { dns, call } = openConnections(60_000);
  await call(port);
  dns.address = '127.0.0.2';
  await call(port);
  expect([dns.asked, receiver.connections]).toEqual([1, 1]);
});

/** Keeps the places that it is given. */
class Guest extends Visitor<OriginClient> {
  readonly places: Place<OriginClient>[] = [];
  readonly reasons: unknown[] = [];

  giveUp(reason: unknown): void {
    this.reasons.push(reason);
  }

  onTurn(place: Place<OriginClient>): void {
    this.places.push(place);
  }
}

function openClients(most: number) {
  const closed: string[] = [];
  const clients = new OriginClients<OriginClient>({
    open: (origin) => ({ destroyed: false, end: () => void closed.push(origin) }),
    ...{ most, ttlMs: 60_000, now: () => Date.now() },
  });
  const enter = (origin: string) => {
    const guest = new Guest();
    clients.enter(origin, guest);
    return guest;
  };
  return { clients, closed, enter };
}

it('origins that nothing calls any more are forgotten, and their connections closed', async () => {
  vi.useFakeTimers();
  const { clients, closed, enter } = openClients(2);
  const idle = Array.from({ length: 100 }, (_, index) => `http://idle-${index}.example`);
  for (const origin of idle) clients.giveBack(enter(origin).places[0]!);
  const busy = enter('http://busy.example');
  await vi.advanceTimersByTimeAsync(20_001);
  expect(closed.sort()).toEqual([...idle].sort());
  clients.giveBack(busy.places[0]!);
  await vi.advanceTimersByTimeAsync(20_001);
  expect(closed).toContain('http://busy.example');
  expect(vi.getTimerCount()).toBe(0);
});

it('calls that wait get their turns in the order of arrival, and those that no longer wait get none', async () => {
  const { clients, enter } = openClients(1);
  const [inside, ...waiting] = Array.from({ length: 5 }, () => enter('http://one.example'));
  clients.leaveLine(waiting[1]!);
  clients.leaveLine(waiting[3]!);
  const turns: (readonly number[])[] = [];
  for (let place = inside!.places[0]; place; ) {
    clients.giveBack(place);
    await Promise.resolve();
    const before = turns.at(-1) ?? [0, 0, 0, 0];
    const now = waiting.map(({ places }) => places.length);
    place = waiting.find((_, i) => now[i]! > before[i]!)?.places[0];
    turns.push(now);
  }
  expect(turns).toEqual([
    [1, 0, 0, 0],
    [1, 0, 1, 0],
    [1, 0, 1, 0],
  ]);
});

it('a place that cannot be opened is told, and is not lost', () => {
  let isBroken = true;
  const open = () => {
    if (isBroken) throw new Error('no client');
    return { destroyed: false, end: () => undefined };
  };
  const clients = new OriginClients<OriginClient>({ open, most: 1, ttlMs: 60_000, now: () => 0 });
  const [refused, next] = [new Guest(), new Guest()];
  clients.enter('http://one.example', refused);
  expect(refused.reasons).toMatchObject([{ message: 'no client' }]);
  isBroken = false;
  clients.enter('http://one.example', next);
  expect(next.places).toHaveLength(1);
  clients.close();
});

it('a call that has waited for its turn is sent in its own context, where tracers look', async () => {
  const calls = 300;
  const receiver = await HttpReceiver.start();
  const { call } = openConnections(60_000);
  const current = new AsyncLocalStorage<number>();
  const seen: (number | undefined)[] = [];
  const see = () => void seen.push(current.getStore());
  subscribe('undici:request:create', see);
  onTestFinished(() => void unsubscribe('undici:request:create', see));
  const { port } = new URL(receiver.url);
  await Promise.all(Array.from({ length: calls }, (_, n) => current.run(n, () => call(port))));
  expect(seen.sort((a, b) => a! - b!)).toEqual(Array.from({ length: calls }, (_, n) => n));
});
