import { expect, it } from 'vitest';
import type { Assignment } from '../../../src/core/wire.js';
import { EventListener } from '../../event-listener.js';
import { OriginTester } from './origin-tester.js';

const DOWN = 'https://down.example.com/hook';
const UP = 'https://up.example.com/hook';
const NAME = 'https://down.example.com';

it('an origin that asks for a pause is left alone until it is over, without an attempt, and holds up no other', async () => {
  const tester = await OriginTester.start();
  const { clock, node } = tester;
  await tester.call(DOWN);
  const [first] = await tester.claim(1);
  await tester.fail(first!, { pauseMs: 60_000 });
  const waiting = await tester.callMany([DOWN, DOWN, UP, DOWN]);
  const [other] = await tester.claim(1);
  expect(other!.target).toMatchObject({ url: UP });

  expect(await tester.why(waiting[0]!)).toMatchObject({
    gate: 'origin',
    detail: expect.stringContaining(`${NAME} has asked for a pause`),
    figures: { origin: NAME, opensInMs: 60_000 },
  });
  expect(await tester.origin(NAME)).toMatchObject({
    state: 'paused',
    until: new Date(clock.now() + 60_000).toISOString(),
    waiting: 4,
    running: 0,
    consecutiveFailures: 0,
  });
  clock.advance(59_999);
  await tester.worker.claimNothing();
  clock.advance(1);
  const calls = await tester.claim(4);
  expect(new Set(calls.map(({ attempt }) => attempt))).toEqual(new Set([1, 2]));
  expect(await node.job(waiting[0]!)).toMatchObject({ state: 'running', attempts: [{ fence: 1 }] });
});

it('a pause is never longer than an hour, nor made shorter by another', async () => {
  const tester = await OriginTester.start();
  await tester.callMany([DOWN, DOWN]);
  const [first, second] = await tester.claim(2);
  await tester.fail(first!, { pauseMs: 3_600_000 });
  await tester.fail(second!, { pauseMs: 1_000 });
  tester.clock.advance(3_599_999);
  await tester.worker.claimNothing();
  tester.clock.advance(1);
  await tester.claim(2);
});

it('a circuit opens after five failures in a row, and one probe at a time finds out when the origin is up again', async () => {
  const tester = await OriginTester.start();
  const { clock, worker } = tester;
  await tester.callMany(Array.from({ length: 10 }, () => DOWN));
  const calls = await tester.claim(10);
  for (const call of calls.slice(0, 4)) await tester.fail(call, { isDown: true });
  // Four are not enough: what failed goes out again.
  const again = await tester.claim(4);
  await tester.fail(calls[4]!, { isDown: true });
  await worker.claimNothing();
  expect(await tester.origin(NAME)).toMatchObject({ state: 'open', consecutiveFailures: 5, running: 9 });
  await tester.call(UP);
  await tester.claim(1);

  // What was out when it opened changes nothing about the pause.
  for (const call of [...again, ...calls.slice(5)]) await tester.fail(call, { isDown: true });
  clock.advance(5_000);
  const [probe] = await tester.claim(1);
  expect(await tester.origin(NAME)).toMatchObject({ state: 'probing', running: 1, waiting: 9 });
  const late = await tester.call(DOWN);
  expect(await tester.why(late)).toMatchObject({
    gate: 'origin',
    detail: expect.stringContaining('one call is out as a probe'),
    figures: { consecutiveFailures: 14 },
  });
  await worker.succeed(probe!);
  await tester.claim(10);
  expect(await tester.origin(NAME)).toMatchObject({ state: 'closed', consecutiveFailures: 0, running: 10 });
});

it('the pauses of a circuit grow, and why tells when the next probe goes out', async () => {
  const tester = await OriginTester.start();
  const { clock } = tester;
  await tester.open(DOWN);
  const id = await tester.call(DOWN);
  for (const longest of [5_000, 10_000, 20_000, 40_000, 80_000, 160_000, 300_000, 300_000]) {
    const { figures, detail } = (await tester.why(id)) as { figures: { opensInMs: number }; detail: string };
    expect(detail).toMatch(
      /The circuit of .* is open after \d+ failures in a row; the next probe goes out in/,
    );
    expect(figures.opensInMs).toBeGreaterThanOrEqual(0.75 * longest);
    expect(figures.opensInMs).toBeLessThanOrEqual(longest);
    clock.advance(figures.opensInMs - 1);
    await tester.worker.claimNothing();
    clock.advance(1);
    const [probe] = await tester.claim(1);
    await tester.fail(probe!, { isDown: true });
  }
});

it('an answer closes a circuit even if the job fails, a call that was handed on does, and one that was not made does not', async () => {
  const tester = await OriginTester.start();
  const { clock, worker } = tester;
  await tester.open(DOWN);
  await tester.callMany([DOWN, DOWN, DOWN]);
  clock.advance(5_000);
  const [unmade] = await tester.claim(1);
  await tester.fail(unmade!);
  const [answered] = await tester.claim(1);
  await tester.fail(answered!, {});
  const rest = await tester.claim(3);
  for (const call of rest) await worker.succeed(call);
  expect(await tester.origins()).toMatchObject([
    { state: 'closed', consecutiveFailures: 0, running: 0, latency: { calls: 9 } },
  ]);

  await tester.open(DOWN);
  await tester.callMany([DOWN, DOWN]);
  clock.advance(5_000);
  const [handedOn] = await tester.claim(1);
  await worker.handOn(handedOn!);
  await tester.claim(1);
});

it('a failure with the status of an answer closes a circuit, too, and a batch is a probe as a whole', async () => {
  const tester = await OriginTester.start();
  const { node, clock, worker } = tester;
  await tester.open(DOWN);
  const member = { target: { type: 'http', url: DOWN } };
  await node.get('POST', '/v1/batches', { body: { jobs: [member, member], onFailure: 'continue' } });
  await worker.claimNothing();
  clock.advance(5_000);
  const probes: Assignment[] = [];
  while (probes.length < 2) probes.push(...(await worker.claim(10)));
  await tester.call(DOWN);
  await worker.claimNothing();
  const [{ jobId, fence }] = probes as [Assignment];
  const error = { code: 'HTTP_STATUS_404', message: 'not found' };
  await worker.report({ jobId, fence, outcome: 'failed', error, retryable: false });
  await tester.claim(1);
  expect(await tester.origin(NAME)).toMatchObject({ state: 'closed', running: 2 });
});

it('calls that time out at their worker count as failures of the origin', async () => {
  const tester = await OriginTester.start();
  await tester.callMany(Array.from({ length: 5 }, () => DOWN));
  for (const { jobId, fence } of await tester.claim(5))
    await tester.worker.report({ jobId, fence, outcome: 'timed-out' });
  expect(await tester.origin(NAME)).toMatchObject({ state: 'open', consecutiveFailures: 5 });
});

it('opens, closes and pauses are events, and metrics count them', async () => {
  const tester = await OriginTester.start();
  const { node, clock, worker } = tester;
  const listener = await EventListener.open({ url: node.url, apiKey: node.apiKey, query: '?type=origin.*' });
  await tester.open(DOWN);
  await tester.call(UP);
  const [paused] = await tester.claim(1);
  await tester.fail(paused!, { pauseMs: 7_000 });
  const { body: metrics } = await node.ask<string>('GET', '/metrics');
  expect(metrics).toMatch(/punctual_origins_open 1\n/);
  expect(metrics).toMatch(/punctual_origins_paused 1\n/);
  await tester.call(DOWN);
  clock.advance(5_000);
  const [probe] = await tester.claim(1);
  await worker.succeed(probe!);
  await expect.poll(() => listener.heard.filter(({ event }) => event.startsWith('origin.')).length).toBe(3);
  const told = listener.heard.slice(-3).map(({ data }) => data);
  expect(told).toMatchObject([
    { type: 'origin.opened', origin: NAME, count: 5, tenant: 'default' },
    { type: 'origin.paused', origin: 'https://up.example.com' },
    { type: 'origin.closed', origin: NAME },
  ]);
  expect(Date.parse(told[0]!.until!)).toBeGreaterThan(Date.parse(told[0]!.at));
  listener.response.destroy();
});

it('is closed by hand', async () => {
  const tester = await OriginTester.start();
  const { node } = tester;
  await tester.open(DOWN);
  await tester.callMany([DOWN, DOWN]);
  await tester.worker.claimNothing();
  const answer = await node.get('POST', '/v1/origins/reset', { body: { origin: NAME } });
  expect(answer).toMatchObject({ origin: NAME, state: 'closed', consecutiveFailures: 0 });
  await tester.claim(2);
  expect(await node.get('GET', '/v1/audit?action=origin.reset')).toMatchObject({
    data: [{ action: 'origin.reset', kind: 'origin', subject: NAME, before: { state: 'open' } }],
  });
});
