import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Job } from '../../../src/core/job.js';
import type { Assignment } from '../../../src/core/wire.js';
import { http } from '../../../src/index.js';
import { type Answering, HttpReceiver, type ReceivedCall } from '../../http-receiver.js';
import { TestNode, type TestTenant } from '../../node-for-tests.js';
import { ProtocolWorker } from '../../protocol-worker.js';

let test: TestNode;

beforeAll(async () => {
  test = await TestNode.start();
});
afterAll(() => test.stop());

const WORKER = { targets: ['http'], allowAddresses: ['127.0.0.1'], queues: ['*'] } as const;
const SOON = { backoff: { base: '1ms' as const, max: '1ms' as const } };

/** A tenant with a worker that makes calls, and a receiver. */
async function start(answer?: Answering) {
  const tenant = test.newTenant();
  const receiver = await HttpReceiver.start(answer);
  await tenant.work([], WORKER);
  const target = (fields: object = {}) => ({ type: 'http', url: `${receiver.url}/hook`, ...fields });
  return { tenant, receiver, target };
}

const say = (tenant: TestTenant, verb: string, id: string, token: string, body: object) =>
  tenant.test.ask('POST', `/v1/jobs/${id}/${verb}`, { key: token, body });

const tokenOf = (call: ReceivedCall) => call.headers['punctual-token']!;

describe('a call', () => {
  it('carries what the receiver needs, and its answer is the result', async () => {
    const { tenant, receiver, target } = await start((_, response) => {
      response.setHeader('content-type', 'application/json; charset=utf-8');
      response.end('{"seen": true}');
    });
    const payload = { id: 7 };
    const { id } = await tenant.submit({ target: target({ headers: { 'X-Team': 'blue' } }), payload });
    const job = await tenant.ended(id);
    expect(job).toMatchObject({
      state: 'succeeded',
      result: {
        status: 200,
        headers: { 'content-type': 'application/json; charset=utf-8' },
        body: { seen: true },
      },
    });
    const [call] = receiver.calls.all;
    expect(call).toMatchObject({ method: 'POST', path: '/hook', body: '{"id":7}' });
    expect(call!.headers).toMatchObject({
      host: new URL(receiver.url).host,
      'x-team': 'blue',
      'content-type': 'application/json',
      'accept-encoding': 'identity',
      'user-agent': expect.stringMatching(/^punctual\//),
      'punctual-job-id': id,
      'punctual-attempt': '1',
      'punctual-fence': '1',
      'punctual-url': test.url,
      'punctual-due-at': job.runAt,
      'webhook-id': `${id}-1`,
      'webhook-timestamp': expect.stringMatching(/^\d{10}$/),
      traceparent: expect.stringMatching(/^00-[0-9a-f]{32}-[0-9a-f]{16}-0[01]$/),
    });
    // Nobody can tell which of two values is genuine.
    const names = call!.rawHeaders.filter((_, i) => i % 2 === 0).map((name) => name.toLowerCase());
    expect(new Set(names).size).toBe(names.length);
  });

  it('carries every digit of a payload, whoever makes it', async () => {
    const body = '{"id":12345678901234567890,"rate":1e400,"small":0.1234567890123456789,"text":"x"}';
    const { tenant, receiver, target } = await start();
    const call = `{"target":${JSON.stringify(target())},"payload":${body}}`;
    const { id } = await tenant.get<Job>('POST', '/v1/jobs', { body: call });
    await tenant.ended(id);
    expect(receiver.calls.all.map((each) => each.body)).toEqual([body]);
  });

  it('says when it was due and which trace it is part of', async () => {
    const { tenant, receiver, target } = await start();
    const traceparent = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`;
    const { id } = await tenant.get<Job>('POST', '/v1/jobs', {
      body: { target: target() },
      headers: { traceparent },
    });
    await tenant.ended(id);
    expect(receiver.calls.all[0]!.headers.traceparent).toBe(traceparent);
  });

  it('is made by tasks, schedules, steps of workflows, batches and the SDK alike', async () => {
    const { tenant, receiver, target } = await start();
    await tenant.get('POST', '/v1/tasks', { body: { name: 'hook', target: target() } });
    const byTask = await tenant.submit({ task: 'hook', payload: 1 });
    const workflow = { name: 'w', jobs: { a: { target: target() }, b: { task: 'hook', after: ['a'] } } };
    const { id } = await tenant.get<{ id: string }>('POST', '/v1/workflows', { body: workflow });
    const batch = await tenant.get<{ id: string }>('POST', '/v1/batches', {
      body: { jobs: [{ target: target() }, { target: target() }] },
    });
    const schedule = { name: 's', every: '1h', target: target() };
    await tenant.get('POST', '/v1/schedules', { body: schedule });
    await tenant.get('POST', '/v1/schedules/s/run', { body: {} });
    const sdk = tenant.connect();
    const bySdk = await sdk.submit(http({ url: receiver.url }), { by: 'sdk' });
    await bySdk.result();
    await tenant.ended(byTask.id);
    for (const path of [`/v1/workflows/${id}`, `/v1/batches/${batch.id}`]) {
      await expect.poll(() => tenant.get('GET', `${path}?wait=10s`)).toMatchObject({ state: 'succeeded' });
    }
    await receiver.calls.times(7);
    expect(receiver.calls.all.map((call) => call.body)).toContain('{"by":"sdk"}');
  });

  it('fails for good after a status that is not retried, and can be redriven', async () => {
    let status = 404;
    const { tenant, receiver, target } = await start((_, response) => {
      response.statusCode = status;
      response.end('no such\nthing');
    });
    const { id } = await tenant.submit({ target: target({ url: `${(await HttpReceiver.start()).url}` }) });
    await tenant.ended(id);
    const failing = await tenant.submit({ target: target() });
    expect(await tenant.ended(failing.id)).toMatchObject({
      state: 'failed',
      attempt: 1,
      error: {
        code: 'HTTP_STATUS_404',
        message: `POST ${receiver.url}/hook answered 404: no such thing`,
      },
    });
    status = 200;
    const answer = await tenant.get('POST', '/v1/jobs/redrive', { body: { all: true } });
    expect(answer).toMatchObject({ matched: 1 });
    await expect.poll(() => tenant.job(failing.id)).toMatchObject({ state: 'succeeded', fence: 2 });
    expect(receiver.calls.all.map((call) => call.headers['punctual-fence'])).toEqual(['1', '2']);
  });

  it('is repeated with the next fence after 503, and not before the time that the receiver asks for', async () => {
    const { tenant, receiver, target } = await start((call, response) => {
      if (call.headers['punctual-fence'] !== '1') return 200;
      response.setHeader('retry-after', '1');
      return 503;
    });
    const { id } = await tenant.submit({ target: target(), retry: SOON });
    const job = await tenant.ended(id);
    expect(job).toMatchObject({
      state: 'succeeded',
      attempts: [{ outcome: 'failed', error: { code: 'HTTP_STATUS_503' } }, { outcome: 'succeeded' }],
    });
    const [first, second] = job.attempts;
    expect(Date.parse(second!.startedAt!) - Date.parse(first!.finishedAt!)).toBeGreaterThanOrEqual(900);
    expect(receiver.calls.all.map((call) => call.headers['webhook-id'])).toEqual([`${id}-1`, `${id}-2`]);
  });

  it('honours 429 with Retry-After, and gives up at 410', async () => {
    const { tenant, target } = await start((call, response) => {
      if (call.path === '/gone') return 410;
      if (call.headers['punctual-fence'] !== '1') return 200;
      response.setHeader('retry-after', '1');
      return 429;
    });
    const limited = await tenant.submit({ target: target(), retry: SOON });
    const gone = await tenant.submit({
      target: target({ url: target().url.replace('/hook', '/gone') }),
      retry: SOON,
    });
    const { attempts } = await tenant.ended(limited.id);
    expect(Date.parse(attempts[1]!.startedAt!) - Date.parse(attempts[0]!.finishedAt!)).toBeGreaterThanOrEqual(
      900,
    );
    expect(await tenant.ended(gone.id)).toMatchObject({
      state: 'failed',
      attempt: 1,
      error: { code: 'HTTP_STATUS_410' },
    });
  });

  it('to an address that is not public is refused at once', async () => {
    const tenant = test.newTenant();
    await tenant.work([], { ...WORKER, allowAddresses: [] });
    const receiver = await HttpReceiver.start();
    const { id } = await tenant.submit({ target: { type: 'http', url: receiver.url } });
    expect(await tenant.ended(id)).toMatchObject({
      state: 'failed',
      attempt: 1,
      error: { code: 'ADDRESS_REFUSED' },
    });
    expect(receiver.connections).toBe(0);
  });

  it('that names a secret is not made where nodes have no master key', async () => {
    const { tenant, receiver, target } = await start();
    const { id } = await tenant.submit({
      target: target({ headers: { authorization: { $secret: 'nothing' } } }),
      retry: { maxAttempts: 1 },
    });
    expect(await tenant.ended(id)).toMatchObject({ state: 'failed', error: { code: 'SECRETS_UNAVAILABLE' } });
    expect(receiver.connections).toBe(0);
  });

  it('is stopped when its job is cancelled', async () => {
    const { tenant, receiver, target } = await start(() => undefined);
    const { id } = await tenant.submit({ target: target() });
    await receiver.calls.times(1);
    await tenant.get('POST', `/v1/jobs/${id}/cancel`, { body: {} });
    expect(await tenant.ended(id)).toMatchObject({ state: 'cancelled' });
  });

  it('that takes too long is repeated', async () => {
    const { tenant, target } = await start((call) =>
      call.headers['punctual-fence'] === '1' ? undefined : 200,
    );
    const { id } = await tenant.submit({ target: target({ timeout: '200ms' }), retry: SOON });
    expect(await tenant.ended(id)).toMatchObject({
      state: 'succeeded',
      attempts: [{ outcome: 'failed', error: { code: 'HTTP_TIMEOUT' } }, { outcome: 'succeeded' }],
    });
  });
});

describe('a receiver that answers 202', () => {
  it('reports progress and the end with its token, and with no other', async () => {
    const { tenant, receiver, target } = await start(() => 202);
    const { id } = await tenant.submit({ target: target() });
    const other = await tenant.submit({ target: target() });
    await receiver.calls.times(2);
    const own = receiver.calls.all.find((call) => call.headers['punctual-job-id'] === id)!;
    const others = receiver.calls.all.find((call) => call.headers['punctual-job-id'] === other.id)!;
    await expect
      .poll(() => say(tenant, 'progress', id, tokenOf(own), { fence: 1, progress: 0.5 }))
      .toMatchObject({ status: 204 });
    const lines = [{ at: new Date().toISOString(), level: 'info', message: 'on it' }];
    expect(await say(tenant, 'logs', id, tokenOf(own), { fence: 1, lines })).toMatchObject({ status: 204 });
    expect(await say(tenant, 'complete', id, tokenOf(others), { fence: 1 })).toMatchObject({ status: 403 });
    expect(await say(tenant, 'complete', id, tokenOf(own), { fence: 2 })).toMatchObject({ status: 409 });
    expect(await tenant.job(id)).toMatchObject({ state: 'running', progress: { progress: 0.5 } });
    const done = await say(tenant, 'complete', id, tokenOf(own), { fence: 1, result: 'done' });
    expect(done.status).toBe(204);
    expect(await tenant.ended(id)).toMatchObject({ state: 'succeeded', result: 'done' });
    const error = { message: 'no' };
    const failed = await say(tenant, 'fail', other.id, tokenOf(others), {
      fence: 1,
      error,
      retryable: false,
    });
    expect(failed.status).toBe(204);
    expect(await tenant.ended(other.id)).toMatchObject({ state: 'failed', error });
  });

  it('reports so often in a second, and is told when to go on', async () => {
    const { tenant, receiver, target } = await start(() => 202);
    const { id } = await tenant.submit({ target: target() });
    const other = await tenant.submit({ target: target() });
    await receiver.calls.times(2);
    const tokens = new Map(
      receiver.calls.all.map((call) => [call.headers['punctual-job-id'], tokenOf(call)]),
    );
    await expect
      .poll(() => say(tenant, 'progress', id, tokens.get(id)!, { fence: 1, progress: 0.1 }))
      .toMatchObject({ status: 204 });
    const flood = Array.from({ length: 200 }, () =>
      say(tenant, 'progress', id, tokens.get(id)!, { fence: 1, progress: 0.5 }),
    );
    const answers = await Promise.all(flood);
    expect(answers.map(({ body }) => (body as { code?: string } | null)?.code)).toContain('RATE_LIMITED');
    // Somebody else's attempt is not held up, and this one ends as soon as there is room again.
    const others = tokens.get(other.id)!;
    expect(await say(tenant, 'complete', other.id, others, { fence: 1 })).toMatchObject({ status: 204 });
    await expect
      .poll(async () => (await say(tenant, 'complete', id, tokens.get(id)!, { fence: 1 })).status)
      .toBe(204);
  });

  it('has answered like any other if the target says so', async () => {
    const { tenant, target } = await start(() => 202);
    const { id } = await tenant.submit({ target: target({ completion: 'response' }) });
    expect(await tenant.ended(id)).toMatchObject({ state: 'succeeded', result: { status: 202 } });
  });

  it('has a token that opens nothing but its reports', async () => {
    const tenant = test.newTenant();
    const worker = await ProtocolWorker.register(tenant, { targets: ['http'], tasks: [] });
    const step = { target: { type: 'http', url: 'http://127.0.0.1:1' }, delivery: 'at-most-once' };
    const { id } = await tenant.get<{ id: string }>('POST', '/v1/workflows', {
      body: { name: 'w', jobs: { a: step } },
    });
    const attempt: Assignment = await worker.claimOne();
    const { receiverToken, token, jobId } = attempt;
    expect(attempt).toMatchObject({ delivery: 'at-most-once', dueAt: expect.any(String) });
    expect(receiverToken).not.toBe(token);
    // It outlives the attempt by a day; the claim decides what counts.
    const claims = JSON.parse(Buffer.from(receiverToken!.split('.')[1]!, 'base64url').toString('utf8'));
    expect(claims).toEqual({
      ...{ aud: 'punctual:receiver', ten: tenant.tenant, job: jobId, fence: 1 },
      exp: expect.closeTo((Date.now() + attempt.timeoutMs) / 1_000 + 86_400, -2),
    });
    const addition = { jobs: { b: { task: 'b' } }, by: { jobId, fence: 1 } };
    const add = (key: string) => test.ask('POST', `/v1/workflows/${id}/jobs`, { key, body: addition });
    expect((await add(receiverToken!)).status).toBe(403);
    expect((await add(token!)).status).toBeLessThan(300);
    for (const path of [`/v1/jobs/${jobId}`, '/v1/jobs', '/v1/workers', '/v1/queues', '/v1/secrets']) {
      expect([403, 404]).toContain((await test.ask('GET', path, { key: receiverToken! })).status);
    }
    const claim = { key: receiverToken!, body: { max: 1, wait: '0s' } };
    expect((await test.ask('POST', `/v1/workers/${worker.id}/claim`, claim)).status).toBe(403);
    expect((await say(tenant, 'complete', jobId, receiverToken!, { fence: 1 })).status).toBe(204);
  });
});
