import { EventEmitter } from 'node:events';
import type { FastifyReply } from 'fastify';
import { expect, it } from 'vitest';
import { LongPolls } from './long-polls.js';

const reply = (tenant = 'acme') =>
  ({ request: { caller: { tenant } }, raw: new EventEmitter() }) as unknown as FastifyReply;

it('more calls than may wait are sent elsewhere, and room is freed by those that end', async () => {
  const longPolls = new LongPolls(3);
  const leaving = reply();
  const wait = (to: FastifyReply) =>
    longPolls.run(
      to,
      'results',
      (signal) => new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve())),
    );
  const waits = [wait(leaving), wait(reply()), wait(reply('globex'))];
  await expect(wait(reply('rival'))).rejects.toMatchObject({
    code: 'TOO_MANY_WAITS',
    status: 503,
    retryAfter: 1,
  });
  expect(await longPolls.run(reply(), 'work', async () => 'workers have room of their own')).toBeTruthy();
  leaving.raw.emit('close');
  await waits[0];
  waits.push(wait(reply()));
  longPolls.end();
  await Promise.all(waits);
});

it('those who listen to events have a smaller room of their own', async () => {
  const longPolls = new LongPolls();
  const listen = () =>
    longPolls.run(
      reply(),
      'events',
      (signal) => new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve())),
    );
  const streams = Array.from({ length: 500 }, listen);
  await expect(listen()).rejects.toMatchObject({ code: 'TOO_MANY_LISTENERS', status: 503 });
  longPolls.end();
  await Promise.all(streams);
});

it('one tenant has half of the room, so that it cannot shut out the others', async () => {
  const longPolls = new LongPolls(4);
  const wait = (tenant: string) =>
    longPolls.run(
      reply(tenant),
      'work',
      (signal) => new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve())),
    );
  const waits = [wait('acme'), wait('acme')];
  await expect(wait('acme')).rejects.toMatchObject({ code: 'TOO_MANY_WAITS' });
  waits.push(wait('globex'));
  longPolls.end();
  await Promise.all(waits);
});
