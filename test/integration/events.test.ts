import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { listen } from '../../src/api/events.js';
import type { AnswerStream } from '../../src/api/route.js';
import type { Shard } from '../../src/api/shard.js';
import { EventNews } from '../../src/cli/event-news.js';
import { ApiClient } from '../../src/client/api-client.js';
import { ringEntry } from '../../src/core/event-ring.js';
import { serverSentEvent } from '../../src/core/events.js';
import { task } from '../../src/core/task.js';
import { startNode } from '../../src/node/embed.js';
import { createTestDatabase } from '../database.js';
import { EventListener, type ListenOptions } from '../event-listener.js';
import { Happening } from '../happening.js';
import { nodeForTest, TestNode, type TestTenant } from '../node-for-tests.js';
import { ProtocolWorker } from '../protocol-worker.js';
import { TestClock } from '../test-clock.js';

const echo = task('echo', {}, async (input: { secret?: string } | undefined) => input ?? null);

let node: TestNode;
beforeAll(async () => {
  node = await TestNode.start();
}, 60_000);
afterAll(() => node?.stop(), 30_000);

const shardOf = (test: TestNode): Shard => test.node.context.shards[0];

/** Listens as a tenant of the shared node. */
async function hear(
  tenant: TestTenant | string,
  query = '',
  more: Partial<ListenOptions> = {},
): Promise<EventListener> {
  const name = typeof tenant === 'string' ? tenant : tenant.tenant;
  const listener = await EventListener.open({
    ...{ url: node.url, apiKey: node.apiKey, tenant: name, query },
    ...more,
  });
  onTestFinished(() => listener.close());
  await listener.until(() => true);
  return listener;
}

describe('a stream of events', () => {
  it('begins with where it stands, then tells the life of a job without its payload and its result', async () => {
    const tenant = node.newTenant();
    const listener = await hear(tenant);
    expect(listener.heard).toMatchObject([{ event: 'hello', data: { resumed: false } }]);
    expect(listener.response.headers).toMatchObject({
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-store, no-transform',
      'x-accel-buffering': 'no',
    });
    expect(listener.text).toContain('retry: 1000\n');
    const worker = await tenant.work([echo], { queues: ['mail'] });
    const { id } = await tenant.connect().submit(echo, { secret: 'a secret' }, { queue: 'mail' });
    const ended = await listener.event('job.succeeded', id);
    const about = { job: id, tenant: tenant.tenant, queue: 'mail', task: 'echo' };
    const attempt = { attempt: 1, worker: worker.status().workerId };
    expect(ended.data).toEqual({
      ...about,
      ...attempt,
      ...{ id: ended.id, type: 'job.succeeded', state: 'succeeded', at: expect.any(String) },
    });
    const told = listener.heard.filter(({ data }) => data.job === id);
    expect(told).toMatchObject([
      { event: 'job.submitted', data: { ...about, state: 'pending' } },
      { event: 'job.started', data: { ...about, ...attempt, state: 'running' } },
      { event: 'job.succeeded' },
    ]);
    expect(listener.types).toContain('worker.registered');
    expect(listener.text).not.toContain('a secret');
    const numbers = listener.heard.map(({ id }) => Number(id.split('.')[1]));
    expect(numbers).toEqual(numbers.map((_, i) => numbers[0]! + i));
  });

  it('tells failures with their code, progress, and what becomes of waiting jobs', async () => {
    const tenant = node.newTenant();
    const listener = await hear(tenant, '?type=job.*');
    const worker = await ProtocolWorker.register(tenant, { tasks: ['work'] });
    const { id } = await tenant.submit({ task: 'work', retry: { maxAttempts: 2, backoff: { base: '1ms' } } });
    const first = await worker.claimOne();
    await tenant.get('POST', `/v1/jobs/${id}/progress`, { body: { fence: first.fence, progress: 0.5 } });
    const failed = { jobId: id, outcome: 'failed' } as const;
    await worker.report({ ...failed, fence: first.fence, error: { code: 'ODD "code"', message: 'no' } });
    const second = await worker.claimOne();
    await worker.report({ ...failed, fence: second.fence, error: { message: 'no' } });
    await listener.event('job.failed', id);
    const told = listener.heard.slice(1).map(({ event, data }) => [event, data.attempt, data.errorCode]);
    expect(told).toEqual([
      ['job.submitted', undefined, undefined],
      ['job.started', 1, undefined],
      ['job.progress', 1, undefined],
      ['job.retrying', 1, 'ODD "code"'],
      ['job.started', 2, undefined],
      ['job.failed', 2, undefined],
    ]);
    expect((await listener.event('job.progress')).data.progress).toBe(0.5);

    const waiting = await tenant.submit({ task: 'nobody', queue: 'quiet', delay: '1h', key: 'k' });
    const again = { task: 'nobody', queue: 'quiet', delay: '2h', key: 'k', keyMode: 'replace' };
    await tenant.get('POST', '/v1/jobs', { body: again });
    await tenant.get('POST', `/v1/jobs/${waiting.id}/hold`);
    await tenant.get('POST', `/v1/jobs/${waiting.id}/cancel`);
    expect((await listener.event('job.cancelled', waiting.id)).data).toMatchObject({
      ...{ queue: 'quiet', task: 'nobody', state: 'cancelled' },
    });
    const changes = listener.heard.filter(({ event }) => event === 'job.changed');
    expect(changes.map(({ data }) => [data.job, data.change])).toEqual([
      [waiting.id, 'replace'],
      [waiting.id, 'hold'],
    ]);
  });

  it('tells of queues, workers and schedules', async () => {
    const tenant = node.newTenant();
    const listener = await hear(tenant, '?type=queue.*&type=worker.*,schedule.*');
    await tenant.get('PATCH', '/v1/queues/mail', { body: { concurrency: 3 } });
    await tenant.get('POST', '/v1/queues/mail/pause');
    await tenant.get('POST', '/v1/queues/mail/resume');
    await listener.event('queue.resumed');
    const worker = await ProtocolWorker.register(tenant);
    await tenant.get('POST', `/v1/workers/${worker.id}/drain`);
    await tenant.ask('DELETE', `/v1/workers/${worker.id}`);
    await listener.event('worker.left');
    const body = { name: 'nightly', task: 'work', cron: '0 3 * * *' };
    await tenant.get('POST', '/v1/schedules', { body });
    const ran = await tenant.get<{ job: string }>('POST', '/v1/schedules/nightly/run');
    await tenant.get('POST', '/v1/schedules/nightly/pause');
    await tenant.get('POST', '/v1/schedules/nightly/resume');
    await tenant.ask('DELETE', '/v1/schedules/nightly');
    await listener.until(({ data }) => data.change === 'deleted');
    expect(listener.heard.slice(1).map(({ event, data }) => [event, data.change])).toEqual([
      ...['queue.changed', 'queue.paused', 'queue.resumed'].map((type) => [type, undefined]),
      ...['worker.registered', 'worker.draining', 'worker.left'].map((type) => [type, undefined]),
      ['schedule.changed', 'created'],
      ['schedule.fired', undefined],
      ['schedule.changed', 'paused'],
      ['schedule.changed', 'resumed'],
      ['schedule.changed', 'deleted'],
    ]);
    const fired = await listener.event('schedule.fired');
    expect(fired.data).toMatchObject({ schedule: 'nightly', task: 'work' });
    expect(JSON.stringify(ran)).toContain(fired.data.job);
  });
});

describe('filters', () => {
  it('let through only what everything applies to', async () => {
    const tenant = node.newTenant();
    const queries = ['?type=job.submitted', '?type=job.*&queue=a', '?task=y', '?queue=c'];
    const [all, byQueue, byTask, none] = await Promise.all(queries.map((query) => hear(tenant, query)));
    const first = await tenant.submit({ task: 'x', queue: 'a' });
    const second = await tenant.submit({ task: 'y', queue: 'b' });
    // Events of some milliseconds are told together: one that listens now may be told what happened just before.
    await all!.event('job.submitted', second.id);
    const ofSecond = await hear(tenant, `?job=${first.id}&job=${second.id}&task=y`);
    await tenant.get('POST', `/v1/jobs/${second.id}/cancel`);
    const third = await tenant.submit({ task: 'y', queue: 'a' });
    await Promise.all([all!, byQueue!, byTask!].map((each) => each.event('job.submitted', third.id)));
    await ofSecond.event('job.cancelled', second.id);
    const jobs = (listener: EventListener) => listener.heard.slice(1).map(({ data }) => data.job);
    expect(jobs(all!)).toEqual([first.id, second.id, third.id]);
    expect(jobs(byQueue!)).toEqual([first.id, third.id]);
    expect(jobs(byTask!)).toEqual([second.id, second.id, third.id]);
    expect(jobs(ofSecond)).toEqual([second.id]);
    expect(jobs(none!)).toEqual([]);
  });

  it('find the jobs of a schedule', async () => {
    const tenant = node.newTenant();
    const listener = await hear(tenant, '?schedule=often');
    await tenant.work([echo]);
    const body = { name: 'often', task: 'echo', every: '1h' };
    await tenant.get('POST', '/v1/schedules', { body });
    await tenant.get('POST', '/v1/schedules/often/run');
    await listener.event('job.succeeded');
    expect(listener.types.slice(1)).toEqual([
      ...['schedule.changed', 'schedule.fired', 'job.started', 'job.succeeded'],
    ]);
  });

  it('are checked', async () => {
    const wrong = [
      'type=job.exploded',
      'queue=a%20b',
      'job=17',
      'after=yesterday',
      'tenants=some',
      'color=red',
    ];
    for (const query of wrong) {
      const { status, body } = await node.ask<{ errors: { pointer: string }[] }>(
        'GET',
        `/v1/events?${query}`,
      );
      expect([status, body.errors[0]!.pointer]).toEqual([422, `/${query.split('=')[0]}`]);
    }
    const many = Array.from({ length: 51 }, (_, i) => `queue=q${i}`).join('&');
    expect((await node.ask('GET', `/v1/events?${many}`)).status).toBe(422);
    expect((await node.ask('GET', '/v1/events', { key: null })).status).toBe(401);
    expect((await node.ask('HEAD', '/v1/events')).status).toBe(200);
  });
});

describe('resuming', () => {
  it('tells exactly what was missed, by header or query, and then goes on', async () => {
    const tenant = node.newTenant();
    const before = await hear(tenant, '?type=job.submitted');
    const seen = await tenant.submit({ task: 'x' });
    await before.event('job.submitted', seen.id);
    before.close();
    const missed = [await tenant.submit({ task: 'x' }), await tenant.submit({ task: 'x' })];
    for (const more of [
      { lastEventId: before.lastId },
      { query: `?after=${before.lastId}&type=job.submitted` },
    ]) {
      const after = await hear(tenant, '?type=job.submitted', more);
      const next = await tenant.submit({ task: 'x' });
      await after.event('job.submitted', next.id);
      missed.push(next);
      expect(after.heard[0]).toMatchObject({ id: before.lastId, event: 'hello', data: { resumed: true } });
      expect(after.heard.slice(1).map(({ data }) => data.job)).toEqual(missed.map(({ id }) => id));
    }
  });

  it('is answered with a reset if that is not possible', async () => {
    const tenant = node.newTenant();
    const listener = await hear(tenant);
    const [epoch, number] = listener.lastId.split('.').map(Number);
    const old = await hear(tenant, '', { lastEventId: `${epoch}.${number! - 1}` });
    expect(old.heard).toMatchObject([{ id: listener.lastId, event: 'reset', data: { reason: 'too-old' } }]);
    const other = await hear(tenant, '', { lastEventId: `${epoch! - 1}.${number}` });
    await other.event('leader.elected');
    expect(other.heard).toMatchObject([
      { event: 'reset', data: { reason: 'new-leader' } },
      { event: 'leader.elected', data: { epoch } },
    ]);
    const odd = await hear(tenant, '?type=job.*', { lastEventId: 'nonsense' });
    expect(odd.types).toEqual(['reset']);
  });
});

it('a tenant hears nothing of another one, an operator who asks for it hears of all', async () => {
  const [one, two] = [node.newTenant(), node.newTenant()];
  const ofOne = await hear(one);
  const ofTwo = await hear(two);
  const ofAll = await hear('default', '?tenants=all');
  const first = await one.submit({ task: 'x' });
  const second = await two.submit({ task: 'x' });
  await one.get('POST', `/v1/jobs/${first.id}/cancel`);
  await two.get('POST', `/v1/jobs/${second.id}/cancel`);
  await Promise.all([ofOne.event('job.cancelled', first.id), ofTwo.event('job.cancelled', second.id)]);
  await ofAll.event('job.cancelled', second.id);
  const tenants = ({ heard }: EventListener) => new Set(heard.slice(1).map(({ data }) => data.tenant));
  expect(tenants(ofOne)).toEqual(new Set([one.tenant]));
  expect(tenants(ofTwo)).toEqual(new Set([two.tenant]));
  expect(tenants(ofAll)).toEqual(new Set([one.tenant, two.tenant]));

  const caller = { tenant: one.tenant, actor: 'somebody', operator: false };
  const asked = listen(node.node.context, caller, { tenants: 'all' }, null, {} as AnswerStream);
  await expect(asked).rejects.toMatchObject({ code: 'FORBIDDEN' });
});

it("a tenant hears nothing of operators' workers, not of those that serve it either", async () => {
  const { tenant } = node.newTenant();
  const { key } = await node.get<{ key: string }>('POST', '/v1/keys', {
    body: { name: 'own', tenant, scopes: ['read', 'work'] },
  });
  const ofOperator = await hear(tenant, '?type=worker.*');
  const ofTenant = await hear(tenant, '?type=worker.*', { apiKey: key });
  const body = { name: 'w', queues: ['q'], slots: 1, targets: ['handler'], tasks: ['x'], labels: {} };
  const register = async (more: object) =>
    (await node.get<{ workerId: string }>('POST', '/v1/workers', { body, ...more })).workerId;
  const theirs = await register({ tenant });
  const own = await register({ key });
  const heardBy = async (listener: EventListener) => {
    await listener.until(({ data }) => data.worker === own);
    return listener.heard.slice(1).map(({ data }) => [data.worker, data.operator]);
  };
  expect(await heardBy(ofTenant)).toEqual([[own, undefined]]);
  expect(await heardBy(ofOperator)).toEqual([
    [theirs, true],
    [own, undefined],
  ]);
});

it('a reader that does not read is dropped, and the others hear everything', async () => {
  const tenant = node.newTenant();
  const [stalled, quick] = [await hear(tenant), await hear(tenant)];
  stalled.response.pause();
  const { eventFeeds } = shardOf(node);
  const [epoch, number] = quick.lastId.split('.').map(Number);
  // Events are small, and a connection holds megabytes: these are large, so that a few hundred are enough.
  const large = 'x'.repeat(64 * 1024);
  const count = 400;
  for (let i = 1; i <= count; i++) {
    const id = `${epoch}.${number! + i}`;
    const text = serverSentEvent(id, 'job.started', JSON.stringify({ id, large }));
    eventFeeds.receive(tenant.tenant, number! + i, [ringEntry('job.started', {}, text)]);
    await quick.until((heard) => heard.id === id);
  }
  expect(quick.heard).toHaveLength(count + 1);
  stalled.response.resume();
  expect(await stalled.ended).toBe('broken');
  expect(stalled.heard.length).toBeLessThan(count);
}, 30_000);

it('nobody listens, nothing is recorded; a ring outlives its last listener by a minute', async () => {
  const clock = new TestClock();
  const test = await nodeForTest({ clock });
  await test.submit({ task: 'x' });
  const { events } = (await shardOf(test).leader()) as { events: { isHeard: boolean; ringCount: number } };
  expect([events.isHeard, events.ringCount]).toEqual([false, 0]);
  const options = { url: test.url, apiKey: test.apiKey, tenant: 'default' };
  const listener = await EventListener.open(options);
  await listener.until(() => true);
  expect([events.isHeard, events.ringCount]).toEqual([true, 1]);
  const first = listener.lastId;
  listener.close();
  // The node itself lets go after some seconds; from then on the ring is kept for a minute.
  await expect.poll(() => shardOf(test).eventFeeds.isAttending, { timeout: 20_000 }).toBe(false);
  clock.advance(59_000);
  expect(events.isHeard).toBe(true);
  clock.advance(1_500);
  expect([events.isHeard, events.ringCount]).toEqual([false, 0]);
  await test.submit({ task: 'x' });
  const again = await EventListener.open({ ...options, lastEventId: first });
  await again.until(() => true);
  again.close();
  expect(again.heard[0]).toMatchObject({ event: 'reset', data: { reason: 'too-old' } });
}, 60_000);

describe('several nodes', () => {
  async function cluster(): Promise<{ leader: TestNode; follower: TestNode }> {
    const database = await createTestDatabase();
    onTestFinished(() => database.drop(), 30_000);
    const leader = await nodeForTest({ database });
    await leader.get('GET', '/v1/workers');
    const follower = await nodeForTest({ database });
    return { leader, follower };
  }

  async function hearAt(
    { url, apiKey }: TestNode,
    more: Partial<ListenOptions> = {},
  ): Promise<EventListener> {
    const listener = await EventListener.open({ url, apiKey, ...more });
    onTestFinished(() => listener.close());
    await listener.until(() => true);
    return listener;
  }

  it('a follower has one subscription for all its listeners, and ends it when the last has gone', async () => {
    const { leader, follower } = await cluster();
    const listeners = await Promise.all(
      Array.from({ length: 20 }, (_, i) => hearAt(follower, { tenant: `t${i % 4}`, query: '?type=job.*' })),
    );
    expect(shardOf(leader).eventLines.size).toBe(1);
    const { id } = await follower.submit({ task: 'x' }, 't1');
    const ofT1 = listeners.filter((_, i) => i % 4 === 1);
    await Promise.all(ofT1.map((listener) => listener.event('job.submitted', id)));
    expect(listeners.filter(({ heard }) => heard.length > 1)).toEqual(ofT1);
    for (const listener of listeners) listener.close();
    await expect.poll(() => shardOf(leader).eventLines.size, { timeout: 20_000 }).toBe(0);
    expect(shardOf(follower).eventFeeds.isAttending).toBe(false);
  }, 60_000);

  it('a client that comes back at another node misses nothing and hears nothing twice', async () => {
    const { leader, follower } = await cluster();
    const atLeader = await hearAt(leader, { query: '?type=job.submitted' });
    const first = await leader.submit({ task: 'x' });
    await atLeader.event('job.submitted', first.id);
    atLeader.close();
    const second = await follower.submit({ task: 'x' });
    const atFollower = await hearAt(follower, { query: '?type=job.submitted', lastEventId: atLeader.lastId });
    const third = await leader.submit({ task: 'x' });
    await atFollower.event('job.submitted', third.id);
    expect(atFollower.heard.slice(1).map(({ data }) => data.job)).toEqual([second.id, third.id]);
  }, 30_000);

  it('an event names the task of a job and not its handler, wherever the job was submitted', async () => {
    const { leader, follower } = await cluster();
    const target = { type: 'handler', name: 'send-mail-v2' };
    await leader.get('POST', '/v1/tasks', { body: { name: 'send-mail', target } });
    const listener = await hearAt(leader, { query: '?type=job.submitted' });
    for (const node of [leader, follower]) {
      const { id: named } = await node.submit({ task: 'send-mail' });
      expect((await listener.event('job.submitted', named)).data.task).toBe('send-mail');
      const { id: inline } = await node.submit({ target });
      expect((await listener.event('job.submitted', inline)).data).not.toHaveProperty('task');
    }
  }, 30_000);

  it('a client that is new at another node hears nothing that was before it came', async () => {
    const { leader, follower } = await cluster();
    const atLeader = await hearAt(leader);
    const jobs = Array.from({ length: 3_000 }, () => ({ task: 'x' }));
    const { ids } = await leader.get<{ ids: string[] }>('POST', '/v1/jobs/bulk', { body: { jobs } });
    await atLeader.event('job.submitted', ids.at(-1));
    const [fresh, resuming] = await Promise.all([
      hearAt(follower),
      hearAt(follower, { lastEventId: atLeader.lastId }),
    ]);
    const { id } = await leader.submit({ task: 'x' });
    for (const listener of [fresh, resuming]) {
      await listener.event('job.submitted', id);
      expect(listener.types).toEqual(['hello', 'job.submitted']);
    }
  }, 30_000);

  it('a subscription that breaks while the leader stays costs the listeners nothing', async () => {
    const { leader, follower } = await cluster();
    const listener = await hearAt(follower, { query: '?type=job.submitted' });
    const first = await leader.submit({ task: 'x' });
    await listener.event('job.submitted', first.id);
    leader.node.server.server.closeAllConnections();
    const second = await leader.connect().submit('x', {});
    await listener.event('job.submitted', second.id);
    expect(listener.types).toEqual(['hello', 'job.submitted', 'job.submitted']);
  }, 30_000);

  it('another leader means a reset, on the same connection; a node that stops ends its streams', async () => {
    const { leader, follower } = await cluster();
    const staying = await hearAt(follower);
    const leaving = await hearAt(leader);
    const stalled = await hearAt(leader, { query: '?type=job.*' });
    stalled.response.pause();
    await leader.node.stop();
    expect(await leaving.ended).toBe('ended');
    await staying.event('leader.elected');
    const epoch = Number(staying.heard[0]!.id.split('.')[0]);
    expect(staying.heard).toMatchObject([
      { event: 'hello' },
      { event: 'reset', data: { reason: 'new-leader' } },
      { event: 'leader.elected', data: { epoch: epoch + 1 } },
    ]);
    expect(staying.text).not.toContain(leader.url);
    const { id } = await follower.submit({ task: 'x' });
    await staying.event('job.submitted', id);
  }, 30_000);

  it('the SDK goes on where it was when its node stops', async () => {
    const { leader, follower } = await cluster();
    const program = leader.connect(undefined, { url: [follower.url, leader.url] });
    const end = new AbortController();
    const heard: string[] = [];
    const listening = (async () => {
      for await (const event of program.events({ types: ['job.submitted'], signal: end.signal })) {
        heard.push(event.type === 'job.submitted' ? event.job! : event.type);
      }
    })();
    await expect.poll(() => heard).toEqual(['hello']);
    const first = await leader.submit({ task: 'x' });
    await expect.poll(() => heard).toEqual(['hello', first.id]);
    await follower.node.stop();
    const second = await leader.submit({ task: 'x' });
    await expect.poll(() => heard, { timeout: 10_000 }).toEqual(['hello', first.id, second.id]);
    end.abort();
    await expect(listening).rejects.toMatchObject({ name: 'AbortError' });
  }, 30_000);
});

describe('a command that watches', () => {
  it('is told when to read again', async () => {
    const tenant = node.newTenant();
    const api = new ApiClient({ urls: [node.url], apiKey: node.apiKey, tenant: tenant.tenant });
    const end = new AbortController();
    const news = new EventNews(api, { types: ['job.*'] }, end.signal);
    // Once the stream has begun it reads again, because something may have happened before.
    await expect.poll(() => news.next(), { timeout: 10_000 }).toBe(true);
    const next = news.next();
    await tenant.submit({ task: 'x' });
    const before = performance.now();
    expect(await next).toBe(true);
    expect(performance.now() - before).toBeLessThan(5_000);
    end.abort();
    expect(await news.next()).toBe(false);
    await api.close();
  });

  it('polls if the nodes know no events', async () => {
    const asked = new Happening<string>();
    const old = createServer((request, response) => {
      asked.happen(request.url!);
      response.writeHead(404, { 'content-type': 'application/problem+json' }).end('{"code":"NOT_FOUND"}');
    }).listen(0, '127.0.0.1');
    await once(old, 'listening');
    onTestFinished(() => void old.close());
    const { port } = old.address() as AddressInfo;
    const api = new ApiClient({ urls: [`http://127.0.0.1:${port}`], apiKey: 'pk' });
    const news = new EventNews(api, { job: 'x' }, new AbortController().signal);
    await asked.times(1);
    expect(await news.next()).toBe(false);
    expect(asked.all).toEqual(['/v1/events?job=x']);
    news.close();
    await api.close();
  });
});

it('a program with its own node listens without a network, until the node stops', async () => {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop(), 30_000);
  const own = await startNode({ databaseUrl: database.url });
  onTestFinished(() => own.stop(), 30_000);
  const heard: string[] = [];
  const listening = (async () => {
    for await (const event of own.punctual.events({ types: ['job.submitted'] })) heard.push(event.type);
  })();
  listening.catch(() => undefined);
  await expect.poll(() => heard).toEqual(['hello']);
  await own.punctual.submit('nobody', {});
  await expect.poll(() => heard).toEqual(['hello', 'job.submitted']);
  const refused = own.punctual.events({ types: ['job.exploded' as 'job.*'] }).next();
  await expect(refused).rejects.toMatchObject({ code: 'INVALID_REQUEST' });
  await own.stop();
  await expect(listening).rejects.toMatchObject({ code: 'CONFIGURATION' });
}, 30_000);
