import { expect, it, onTestFinished } from 'vitest';
import type { Assignment, OriginView, Page } from '../../../src/core/wire.js';
import { createTestDatabase } from '../../database.js';
import { nodeForTest } from '../../node-for-tests.js';
import { ProtocolWorker } from '../../protocol-worker.js';
import { callOf, OriginTester } from './origin-tester.js';

const A = 'https://a.example.com/x';
const B = 'https://b.example.com/x';
const NAME = 'https://a.example.com';
const times = (count: number, url: string) => Array.from({ length: count }, () => url);

it('as many calls to an origin run as its limit allows, whatever their queues, and other origins are not held up', async () => {
  const tester = await OriginTester.start({ originConcurrency: 3 });
  const { worker } = tester;
  const ids = await tester.callMany(times(4, A));
  await tester.callMany(times(2, A), { queue: 'other' });
  await tester.callMany(times(2, B));
  const calls = await tester.claim(5);
  const ofA = calls.filter(({ target }) => target.type === 'http' && target.url === A);
  expect(ofA).toHaveLength(3);
  expect(await tester.origins()).toMatchObject([
    { origin: NAME, state: 'closed', running: 3, waiting: 3, concurrency: 3, rate: null },
    { origin: 'https://b.example.com', running: 2, waiting: 0 },
  ]);
  const waiting = ids.find((id) => !ofA.some(({ jobId }) => jobId === id))!;
  expect(await tester.why(waiting)).toMatchObject({
    gate: 'origin',
    detail: `As many calls to ${NAME} are running as its limit allows.`,
    figures: { limit: 3, running: 3 },
  });
  await worker.succeed(ofA[0]!);
  await tester.claim(1);
  // A call that was handed on is over, although its attempt is not.
  await worker.handOn(ofA[1]!);
  await tester.claim(1);
  expect(await tester.origin(NAME)).toMatchObject({ running: 3, waiting: 1 });
  // A worker whose report was not answered says the same again, which makes no room.
  await worker.handOn(ofA[1]!);
  await worker.claimNothing();
  expect(await tester.origin(NAME)).toMatchObject({ running: 3, waiting: 1 });
});

it('an origin takes up half of the slots, so that a slow one holds up no other, unless somebody has said otherwise', async () => {
  const node = await nodeForTest();
  const register = (slots: number) =>
    ProtocolWorker.register(node, { slots, queues: ['*'], targets: ['http'], tasks: [] });
  const worker = await register(10);
  const submit = (count: number, url: string) =>
    node.get<{ ids: string[] }>('POST', '/v1/jobs/bulk', {
      body: { jobs: times(count, url).map((each) => callOf(each)) },
    });
  const { ids } = await submit(20, A);
  const slow: Assignment[] = [];
  while (slow.length < 5) slow.push(...(await worker.claim(10)));
  await worker.claimNothing();
  const waiting = ids.find((id) => !slow.some(({ jobId }) => jobId === id))!;
  expect(await node.get('GET', `/v1/jobs/${waiting}/why`)).toMatchObject({
    gate: 'origin',
    detail: expect.stringContaining("half of the workers' slots"),
    figures: { origin: NAME, limit: 5, running: 5 },
  });
  await submit(1, B);
  expect(await worker.claimOne()).toMatchObject({ target: { url: B } });
  // More slots make more room, fewer make less, and a limit of its own is what was said.
  const other = await register(6);
  expect(await other.claim(6)).toHaveLength(3);
  await node.get('POST', `/v1/workers/${other.id}/drain`);
  await worker.succeed(slow[0]!);
  await worker.claimNothing();
  await node.get('PUT', '/v1/origins', { body: { origin: NAME, concurrency: 9 } });
  const more: Assignment[] = [];
  while (more.length < 2) more.push(...(await worker.claim(10)));
  await worker.claimNothing();
});

it('a batch may take up all slots with calls to one origin', async () => {
  const node = await nodeForTest();
  const worker = await ProtocolWorker.register(node, {
    slots: 4,
    queues: ['*'],
    targets: ['http'],
    tasks: [],
  });
  const jobs = times(4, A).map((url) => ({ target: { type: 'http', url } }));
  await node.get('POST', '/v1/batches', { body: { jobs } });
  const members: Assignment[] = [];
  while (members.length < 4) members.push(...(await worker.claim(10)));
});

it('a job that starts at once counts, too, and one beyond the limit waits', async () => {
  const tester = await OriginTester.start({ originConcurrency: 1 });
  const claimed = tester.worker.claim(10, '20s');
  await tester.call(A);
  expect(await claimed).toHaveLength(1);
  const id = await tester.call(A);
  await tester.worker.claimNothing();
  expect(await tester.why(id)).toMatchObject({ gate: 'origin' });
});

it('limits are set, shown, replaced and taken away, each of which the audit records', async () => {
  const tester = await OriginTester.start({ originConcurrency: 100 });
  const { node } = tester;
  const put = (body: object) => node.get<OriginView>('PUT', '/v1/origins', { body });
  expect(await put({ origin: NAME, concurrency: 2 })).toMatchObject({ concurrency: 2, rate: null });
  await tester.callMany(times(10, A));
  await tester.claim(2);
  expect(await put({ origin: NAME, concurrency: null })).toMatchObject({ concurrency: null });
  await tester.claim(8);
  const rate = { limit: 1, per: '1s', burst: 1 };
  expect(await put({ origin: NAME, rate })).toMatchObject({ concurrency: 100, rate });
  const { status } = await node.ask('DELETE', `/v1/origins?origin=${encodeURIComponent(NAME)}`);
  expect(status).toBe(204);
  expect(await tester.origin(NAME)).toMatchObject({ concurrency: 100, rate: null });
  expect(await node.ask('DELETE', `/v1/origins?origin=${encodeURIComponent(NAME)}`)).toMatchObject({
    status: 404,
    body: { code: 'ORIGIN_NOT_FOUND' },
  });
  for (const origin of ['https://a.example.com/path', 'a.example.com', 'bucket:64', 'ftp://a.example.com']) {
    expect((await node.ask('PUT', '/v1/origins', { body: { origin } })).status, origin).toBe(422);
  }
  const { data } = await node.get<Page<{ action: string }>>('GET', '/v1/audit?limit=10');
  const actions = data.map(({ action }) => action).filter((action) => action.startsWith('origin.'));
  expect(actions).toEqual(['origin.unlimit', 'origin.limit', 'origin.limit', 'origin.limit']);
});

it('the rate of an origin is kept to', async () => {
  const tester = await OriginTester.start();
  const body = { origin: NAME, rate: { limit: 1, per: '1s', burst: 1 } };
  await tester.node.get('PUT', '/v1/origins', { body });
  const ids = await tester.callMany([...times(3, A), B]);
  const started = await tester.claim(2);
  const waiting = ids.find((id) => !started.some(({ jobId }) => jobId === id))!;
  expect(await tester.why(waiting)).toMatchObject({ gate: 'origin', figures: { limit: 1, per: '1s' } });
  for (let i = 0; i < 2; i++) {
    tester.clock.advance(999);
    await tester.worker.claimNothing();
    tester.clock.advance(1);
    await tester.claim(1);
  }
});

it('the list of origins is read in pages, with those in memory and those that have limits only', async () => {
  const tester = await OriginTester.start();
  const { node } = tester;
  for (const letter of ['b', 'd', 'f'])
    await node.get('PUT', '/v1/origins', { body: { origin: `https://${letter}`, concurrency: 1 } });
  await tester.callMany(['https://a', 'https://b', 'https://c', 'https://e', 'https://g']);
  const seen: string[] = [];
  for (let after = ''; ; ) {
    const query = `?limit=2${after && `&after=${encodeURIComponent(after)}`}`;
    const page = await node.get<Page<OriginView>>('GET', `/v1/origins${query}`);
    seen.push(...page.data.map(({ origin }) => origin));
    if (page.next === null) break;
    after = page.next;
  }
  expect(seen).toEqual(['a', 'b', 'c', 'd', 'e', 'f', 'g'].map((letter) => `https://${letter}`));
  const other = await node.get<Page<OriginView>>('GET', '/v1/origins', { tenant: 'other' });
  expect(other.data).toEqual([]);
});

it('a new leader forgets circuits and pauses, keeps limits, and calls no more at a time than before', async () => {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  const tester = await OriginTester.start({ originConcurrency: 4 }, { database });
  const { clock, worker } = tester;
  await tester.node.get('PUT', '/v1/origins', { body: { origin: 'https://b.example.com', concurrency: 2 } });
  await tester.callMany([...times(10, A), ...times(5, B)]);
  const calls = await tester.claim(6);
  const [paused, ...out] = calls.filter(({ target }) => target.type === 'http' && target.url === A);
  await tester.fail(paused!, { pauseMs: 60_000 });
  await worker.claimNothing();

  await tester.node.node.stop();
  const port = tester.node.node.port;
  const settings = { originConcurrency: 4, port };
  const next = await OriginTester.start(settings, { database, clock });
  const { epoch } = await worker.heartbeat();
  await worker.heartbeat(undefined, epoch);
  // Three calls of the old term are out, so there is room for one.
  expect((await next.claim(1))[0]!.target).toMatchObject({ url: A });
  expect(await next.origins()).toMatchObject([
    { origin: NAME, state: 'closed', running: 4 },
    { origin: 'https://b.example.com', running: 2, concurrency: 2 },
  ]);
  expect(out).toHaveLength(3);
});

it('labels and origins combine, and workers serve every origin that their labels allow', async () => {
  const tester = await OriginTester.start({ originConcurrency: 2 });
  await tester.callMany(times(2, A), { requires: { zone: 'eu' } });
  await tester.callMany([A, B]);
  await tester.claim(2);
  const labels = { zone: 'eu' };
  const registration = { slots: 10, queues: ['*'], targets: ['http' as const], tasks: [], labels };
  const european = await ProtocolWorker.register(tester.node, registration);
  // One more call to the origin, whatever the labels.
  expect(await european.claim(10)).toHaveLength(1);
  await european.claimNothing();
  expect(await tester.origin(NAME)).toMatchObject({ running: 2, waiting: 1 });
});

it('a batch starts when the origins that it calls let all of its members start', async () => {
  const tester = await OriginTester.start({ originConcurrency: 3 });
  const { node, clock, worker } = tester;
  await tester.call(A);
  const [call] = await tester.claim(1);
  await tester.fail(call!, { pauseMs: 30_000 });
  const member = (url: string) => ({ target: { type: 'http', url } });
  const body = { jobs: [member(A), member(A), member(B)] };
  const { jobs } = await node.get<{ jobs: { id: string }[] }>('POST', '/v1/batches', { body });
  await worker.claimNothing();
  await expect
    .poll(() => tester.why(jobs[0]!.id))
    .toMatchObject({ gate: 'batch', figures: { waitingFor: 'origin', origin: NAME } });
  clock.advance(30_000);
  const claimed: string[] = [];
  while (claimed.length < 4) claimed.push(...(await worker.claim(10)).map(({ jobId }) => jobId));
  expect(new Set(claimed)).toEqual(new Set([call!.jobId, ...jobs.map(({ id }) => id)]));

  // Four calls at a time are more than ever run.
  const large = { jobs: Array.from({ length: 4 }, () => member(A)) };
  const batch = await node.get<{ jobs: { id: string }[] }>('POST', '/v1/batches', { body: large });
  await expect
    .poll(() => tester.why(batch.jobs[0]!.id))
    .toMatchObject({ gate: 'batch', figures: { waitingFor: 'origin' } });
});

it('an origin that was called tells how long its calls take, also when none is out any more', async () => {
  const tester = await OriginTester.start();
  const { node, clock, worker } = tester;
  await tester.callMany(times(3, A));
  const calls = await tester.claim(3);
  expect(await tester.origin(NAME)).toMatchObject({ running: 3, latency: null });
  for (const [i, call] of calls.entries()) {
    clock.advance(1_000);
    if (i === 2) await worker.handOn(call);
    else await worker.succeed(call);
  }
  const [view] = (await node.get<Page<OriginView>>('GET', '/v1/origins')).data;
  expect(view).toMatchObject({ origin: NAME, running: 0, state: 'closed', latency: { calls: 3 } });
  const { p50Ms, p99Ms } = view!.latency!;
  // The calls began at the same moment, and what their worker said counts.
  expect(p50Ms).toBeLessThanOrEqual(p99Ms);
  expect(p99Ms).toBeLessThanOrEqual(3_000);
  const others = node.newTenant();
  expect((await others.get<Page<OriginView>>('GET', '/v1/origins')).data).toEqual([]);
});

it('a key that is restricted to queues has no business with origins', async () => {
  const tester = await OriginTester.start();
  const { node } = tester;
  const { key } = await node.get<{ key: string }>('POST', '/v1/keys', {
    body: { name: 'mail', scopes: ['read', 'admin'], queues: ['mail'], tenant: 'default' },
  });
  expect(await node.ask('GET', '/v1/origins', { key })).toMatchObject({ status: 403 });
  const body = { origin: NAME };
  expect(await node.ask('POST', '/v1/origins/reset', { key, body })).toMatchObject({ status: 403 });
});
