import { afterEach, expect, it, onTestFinished, vi } from 'vitest';
import { HttpReceiver } from '../../../../test/http-receiver.js';
import { AddressGuard } from './address-guard.js';
import { AddressResolver } from './address-resolver.js';
import { CallDeadline } from './call-deadline.js';
import type { CallRequest } from './call-request.js';
import { Connections } from './connections.js';
import { guardedConnector } from './connector.js';
import { OriginClients } from './origin-clients.js';

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
  onTestFinished(() => connections.close());
  const call = async (port: string) => {
    const request: CallRequest = {
      ...{ url: new URL(`http://moving.example:${port}/`), method: 'POST', headers: {}, body: '' },
      ...{ hasSecretBody: false, ownHeaders: new Set() },
    };
    const deadline = new CallDeadline(5_000, new AbortController().signal);
    try {
      return await connections.send(request, false, deadline, () => 0);
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

it('origins that nothing calls any more are forgotten, and their connections closed', async () => {
  vi.useFakeTimers();
  const closed: string[] = [];
  const clients = new OriginClients({
    open: (origin) => ({ destroyed: false, end: () => void closed.push(origin) }),
    ...{ most: 2, ttlMs: 60_000, now: () => Date.now() },
  });
  const deadline = new CallDeadline(3_600_000, new AbortController().signal);
  onTestFinished(() => deadline.release());
  const idle = Array.from({ length: 100 }, (_, index) => `http://idle-${index}.example`);
  for (const origin of idle) (await clients.enter(origin, deadline)).giveBack();
  const place = await clients.enter('http://busy.example', deadline);
  await vi.advanceTimersByTimeAsync(20_001);
  expect(closed.sort()).toEqual([...idle].sort());
  place.giveBack();
  await vi.advanceTimersByTimeAsync(20_001);
  expect(closed).toContain('http://busy.example');
  expect(vi.getTimerCount()).toBe(1);
});
