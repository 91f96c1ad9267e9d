import { describe, expect, it } from 'vitest';
import { PunctualError } from '../../core/errors.js';
import { ATTEMPT_TOKEN, JOB_ID, OTHER_ID, testServer } from './routes.fixture.js';

const ADMIN = { tenant: 'default', actor: 'admin', operator: true, allTenants: true };

describe('the routes', () => {
  const fenced = { fence: 1 };
  const registration = {
    name: 'w',
    queues: ['default'],
    slots: 10,
    targets: ['handler'],
    tasks: ['greet'],
    labels: {},
  };

  it.each<['GET' | 'POST' | 'PATCH' | 'DELETE', string, unknown, number, string, unknown[]]>([
    [
      'POST',
      '/v1/jobs/bulk',
      { jobs: [{ task: 'a' }, { task: 'b' }] },
      201,
      'submitJobs',
      [{ jobs: [{ task: 'a' }, { task: 'b' }] }],
    ],
    ['GET', '/v1/jobs', undefined, 200, 'listJobs', [{ limit: 100 }]],
    [
      'GET',
      `/v1/jobs?state=failed&task=a&queue=q&key=k%20k&worker=${OTHER_ID}&limit=5&after=x`,
      undefined,
      200,
      'listJobs',
      [{ state: 'failed', task: 'a', queue: 'q', key: 'k k', worker: OTHER_ID, limit: 5, after: 'x' }],
    ],
    ['GET', `/v1/jobs/${JOB_ID}`, undefined, 200, 'getJob', [JOB_ID, {}]],
    [
      'GET',
      `/v1/jobs/${JOB_ID}/logs?after=7&limit=3`,
      undefined,
      200,
      'readLogs',
      [JOB_ID, { after: 7, limit: 3 }],
    ],
    ['GET', `/v1/jobs/${JOB_ID}/why`, undefined, 200, 'whyJob', [JOB_ID]],
    ['PATCH', `/v1/jobs/${JOB_ID}`, { priority: 9 }, 200, 'changeJob', [JOB_ID, { priority: 9 }]],
    ['POST', `/v1/jobs/${JOB_ID}/cancel`, undefined, 200, 'cancelJob', [JOB_ID]],
    ['POST', `/v1/jobs/${JOB_ID}/retry`, '', 200, 'retryJob', [JOB_ID]],
    ['POST', `/v1/jobs/${JOB_ID}/hold`, {}, 200, 'holdJob', [JOB_ID]],
    ['POST', `/v1/jobs/${JOB_ID}/release`, undefined, 200, 'releaseJob', [JOB_ID]],
    ['POST', '/v1/jobs/redrive', { dryRun: true }, 200, 'redriveJobs', [{ dryRun: true }]],
    ['POST', '/v1/jobs/cancel', { ids: [JOB_ID] }, 200, 'cancelJobs', [{ ids: [JOB_ID] }]],
    ['POST', '/v1/jobs/hold', { all: true }, 200, 'holdJobs', [{ all: true }]],
    [
      'POST',
      '/v1/jobs/release',
      { filter: { since: '2h', until: '2026-01-01T00:00:00Z' } },
      200,
      'releaseJobs',
      [{ filter: { since: '2h', until: '2026-01-01T00:00:00Z' } }],
    ],
    [
      'POST',
      '/v1/jobs/delete',
      { filter: { errorCode: 'GONE' }, after: 'x' },
      200,
      'deleteJobs',
      [{ filter: { errorCode: 'GONE' }, after: 'x' }],
    ],
    ['POST', `/v1/jobs/${JOB_ID}/complete`, fenced, 204, 'completeAttempt', [JOB_ID, fenced]],
    [
      'POST',
      `/v1/jobs/${JOB_ID}/fail`,
      { fence: 1, error: { message: 'no' } },
      204,
      'failAttempt',
      [JOB_ID, { fence: 1, error: { message: 'no' } }],
    ],
    [
      'POST',
      `/v1/jobs/${JOB_ID}/progress`,
      { fence: 1, progress: 0.5 },
      204,
      'reportProgress',
      [JOB_ID, { fence: 1, progress: 0.5 }],
    ],
    [
      'POST',
      `/v1/jobs/${JOB_ID}/logs`,
      { fence: 1, lines: [] },
      204,
      'appendLogs',
      [JOB_ID, { fence: 1, lines: [] }],
    ],
    ['POST', '/v1/workers', registration, 201, 'registerWorker', [registration]],
    [
      'POST',
      `/v1/workers/${OTHER_ID}/heartbeat`,
      { epoch: 1, running: [] },
      200,
      'sendHeartbeat',
      [OTHER_ID, { epoch: 1, running: [] }],
    ],
    [
      'POST',
      `/v1/workers/${OTHER_ID}/claim`,
      { max: 1, wait: '0s' },
      200,
      'claimJobs',
      [OTHER_ID, { max: 1, wait: '0s' }],
    ],
    [
      'POST',
      `/v1/workers/${OTHER_ID}/report`,
      { results: [] },
      200,
      'reportResults',
      [OTHER_ID, { results: [] }],
    ],
    ['DELETE', `/v1/workers/${OTHER_ID}`, undefined, 204, 'leaveWorker', [OTHER_ID, {}]],
    [
      'DELETE',
      `/v1/workers/${OTHER_ID}`,
      { settled: true },
      204,
      'leaveWorker',
      [OTHER_ID, { settled: true }],
    ],
    ['POST', `/v1/workers/${OTHER_ID}/drain`, undefined, 200, 'drainWorker', [OTHER_ID]],
    ['GET', '/v1/workers', undefined, 200, 'listWorkers', [{ limit: 1_000 }]],
    ['GET', `/v1/workers/${OTHER_ID}`, undefined, 200, 'getWorker', [OTHER_ID]],
    ['GET', '/v1/queues', undefined, 200, 'listQueues', [{ limit: 1_000 }]],
    ['GET', '/v1/queues/a%3Ab', undefined, 200, 'getQueue', ['a:b']],
    ['POST', '/v1/queues/q/pause', undefined, 200, 'pauseQueue', ['q']],
    ['POST', '/v1/queues/q/resume', undefined, 200, 'resumeQueue', ['q']],
    ['PATCH', '/v1/queues/q', { weight: 2 }, 200, 'changeQueue', ['q', { weight: 2 }]],
    ['POST', '/v1/tenants', { id: 'acme' }, 201, 'createTenant', [{ id: 'acme' }]],
    ['GET', '/v1/tenants?limit=5&after=a', undefined, 200, 'listTenants', [{ after: 'a', limit: 5 }]],
    ['GET', '/v1/tenants/acme', undefined, 200, 'getTenant', ['acme']],
    ['PATCH', '/v1/tenants/acme', { weight: 2 }, 200, 'changeTenant', ['acme', { weight: 2 }]],
    ['GET', '/v1/cluster', undefined, 200, 'getCluster', []],
    ['POST', '/v1/cluster/pause', undefined, 200, 'pauseCluster', []],
    ['GET', '/v1/stats', undefined, 200, 'getStats', [{}]],
    ['GET', '/v1/stats?history=1h', undefined, 200, 'getStats', [{ history: '1h' }]],
  ])('%s %s reaches its route', async (method, url, body, status, name, rest) => {
    const { call, recording } = testServer();
    const answer = await call(method, url, body);
    expect(answer.statusCode).toBe(status);
    expect(recording.calls).toEqual([{ name, by: ADMIN, rest }]);
    if (status === 204) expect(answer.body).toBe('');
  });

  it('answers 201 to a new job and 200 to the same key, both with its address', async () => {
    const { call } = testServer();
    const first = await call('POST', '/v1/jobs', { task: 'greet', key: 'k' });
    const second = await call('POST', '/v1/jobs', { task: 'greet', key: 'k' });
    expect([first.statusCode, second.statusCode]).toEqual([201, 200]);
    expect(first.headers.location).toBe(`/v1/jobs/${JOB_ID}`);
    expect(second.json()).toEqual({ ...first.json(), repeated: true });
  });

  it('gives a payload back as it came', async () => {
    const { call } = testServer();
    const payload = {
      nested: [{ 'odd name': '\u0000\u2028' }],
      nothing: null,
      constructor: { prototype: 1 },
    };
    const answer = await call('POST', '/v1/jobs', { task: 'greet', payload });
    expect(answer.json().payload).toEqual(payload);
  });

  it('takes HEAD wherever it takes GET', async () => {
    const { call } = testServer();
    const answer = await call('HEAD', '/v1/queues');
    expect([answer.statusCode, answer.body]).toEqual([200, '']);
  });
});

describe('health', () => {
  it('lives without a key', async () => {
    const { server } = testServer();
    const answer = await server.inject('/livez');
    expect([answer.statusCode, answer.json()]).toEqual([200, { ok: true }]);
  });

  it('says whether it is ready, and why when somebody with a key asks', async () => {
    const { server, recording, call } = testServer();
    const checks = {
      database: { ok: true, detail: 'answered 1 ms ago' },
      leader: { ok: true, detail: 'this node leads' },
    };
    expect((await server.inject('/readyz')).json()).toEqual({ ok: true });
    expect((await call('GET', '/readyz?verbose')).json()).toEqual({ ok: true, checks });
    recording.healthy = false;
    const unready = await server.inject('/readyz?verbose=true');
    expect([unready.statusCode, unready.json()]).toEqual([503, { ok: false }]);
  });

  it.each([undefined, 'Bearer pk_wrong', `Bearer ${ATTEMPT_TOKEN}`, 'Basic x'])(
    'tells nobody else what it has looked at: %s',
    async (authorization) => {
      const { server } = testServer();
      const answer = await server.inject({
        url: '/readyz?verbose',
        headers: authorization === undefined ? {} : { authorization },
      });
      expect([answer.statusCode, answer.json()]).toEqual([200, { ok: true }]);
    },
  );

  it('serves metrics as text', async () => {
    const { call } = testServer();
    const answer = await call('GET', '/metrics');
    expect(answer.headers['content-type']).toContain('text/plain');
    expect(answer.body).toContain('punctual_jobs_submitted_total 1');
  });
});

describe('errors', () => {
  it('are problem+json with a stable code and the id of the request', async () => {
    const { call } = testServer();
    const answer = await call('POST', `/v1/jobs/${JOB_ID}/complete`, { fence: 2 });
    expect(answer.headers['content-type']).toBe('application/problem+json');
    expect(answer.json()).toEqual({
      type: 'urn:punctual:error:STALE_FENCE',
      title: 'This attempt does not own the job',
      status: 409,
      detail: 'A newer attempt owns the job.',
      code: 'STALE_FENCE',
      requestId: answer.headers['request-id'],
    });
  });

  it('do not leak what went wrong inside, but log it with the id of the request', async () => {
    const { call, recording, logged } = testServer();
    recording.failure = new Error('password is hunter2');
    const answer = await call('GET', `/v1/jobs/${JOB_ID}/why`);
    expect([answer.statusCode, answer.json().code]).toEqual([500, 'INTERNAL']);
    expect(answer.body).not.toContain('hunter2');
    expect(logged).toEqual([
      {
        err: recording.failure,
        requestId: answer.json().requestId,
        method: 'GET',
        route: '/v1/jobs/:id/why',
      },
    ]);
  });

  it.each([undefined, null, 'text', 42, {}])('survive a thrown %j', async (thrown) => {
    const { call, recording } = testServer();
    recording.failure = thrown ?? Object.create(null);
    const answer = await call('GET', `/v1/jobs/${JOB_ID}/why`);
    expect(answer.json().code).toBe('INTERNAL');
  });

  it('say when to try again', async () => {
    const { call, recording } = testServer();
    recording.failure = new PunctualError('NO_LEADER', 'An election is under way.', { retryAfter: 0.4 });
    const answer = await call('GET', `/v1/jobs/${JOB_ID}/why`);
    expect([answer.statusCode, answer.headers['retry-after']]).toEqual([503, '1']);
  });

  it('tell an unknown address from a wrong method', async () => {
    const { server, call } = testServer();
    const unknown = await server.inject({ method: 'POST', url: '/v1/nothing', payload: 'not json' });
    expect([unknown.statusCode, unknown.json().code]).toEqual([404, 'NOT_FOUND']);
    const wrong = await call('DELETE', '/v1/jobs', undefined);
    expect([wrong.statusCode, wrong.json().code]).toEqual([405, 'METHOD_NOT_ALLOWED']);
    expect(wrong.headers.allow).toBe('GET, HEAD, POST');
    const bodied = await call('PUT', `/v1/jobs/${JOB_ID}/why`, 'not json');
    expect([bodied.statusCode, bodied.headers.allow]).toEqual([405, 'GET, HEAD']);
  });
});

describe('every answer', () => {
  it.each(['/v1/queues', '/livez', '/docs', '/nowhere', '/%ff', '/v1/jobs/x'])(
    'is guarded against misuse by browsers: %s',
    async (url) => {
      const { call } = testServer();
      const { headers } = await call('GET', url);
      expect(headers['x-content-type-options']).toBe('nosniff');
      expect(headers['content-security-policy']).toContain("default-src 'none'");
      expect(headers['cache-control']).toBe('no-store');
      expect(headers['request-id']).toMatch(/^[0-9a-f-]{36}$/);
    },
  );

  it('has an id of our own making', async () => {
    const { server } = testServer();
    const answer = await server.inject({
      url: '/livez',
      headers: { 'x-request-id': 'forged', 'request-id': 'f' },
    });
    expect(answer.headers['request-id']).toMatch(/^[0-9a-f-]{36}$/);
  });
});
