import { describe, expect, it } from 'vitest';
import type { OpenApiDocument } from './docs-page.js';
import { ATTEMPT_TOKEN, JOB_ID, OPERATOR_KEY, OTHER_ID, TENANT_KEY, testServer } from './routes.fixture.js';

const bearer = (key: string) => ({ authorization: `Bearer ${key}` });

describe('without a valid key', () => {
  it.each<[string, Record<string, string>]>([
    ['none', {}],
    ['an unknown one', bearer('pk_wrong')],
    ['another scheme', { authorization: `Basic ${OPERATOR_KEY}` }],
    ['no token', { authorization: 'Bearer ' }],
    ['two tokens', { authorization: `Bearer ${OPERATOR_KEY} x` }],
  ])('every route but the public ones is closed: %s', async (_, headers) => {
    const { server, recording } = testServer();
    await server.ready();
    const { paths } = server.swagger() as OpenApiDocument;
    let closed = 0;
    for (const [path, methods] of Object.entries(paths)) {
      for (const [method, { security }] of Object.entries(methods)) {
        if (security?.length === 0) continue;
        const url = path.replace('{id}', JOB_ID).replace('{name}', 'q');
        const answer = await server.inject({ method: method.toUpperCase() as 'GET', url, headers });
        expect([url, answer.statusCode, answer.json().code]).toEqual([url, 401, 'UNAUTHENTICATED']);
        expect(answer.headers['www-authenticate']).toContain('Bearer');
        closed += 1;
      }
    }
    expect(closed).toBeGreaterThan(25);
    expect(recording.calls).toEqual([]);
  });

  it('a broken body is not even looked at', async () => {
    const { server } = testServer();
    const answer = await server.inject({
      method: 'POST',
      url: '/v1/jobs',
      headers: { 'content-type': 'application/json' },
      payload: '{"broken',
    });
    expect(answer.statusCode).toBe(401);
  });

  it.each(['/livez', '/readyz', '/openapi.json', '/docs', '/docs/style.css', '/'])(
    '%s answers',
    async (url) => {
      const { server } = testServer();
      expect((await server.inject(url)).statusCode).toBeLessThan(400);
    },
  );
});

describe("an operator's key", () => {
  it('acts for the tenant in the header', async () => {
    const { server, recording } = testServer();
    await server.inject({
      url: '/v1/queues',
      headers: { ...bearer(OPERATOR_KEY), 'punctual-tenant': 'acme' },
    });
    expect(recording.calls[0]?.by).toEqual({ tenant: 'acme', actor: 'admin', operator: true });
  });

  it.each(['', 'a b', 'ä', 'x'.repeat(129)])('may not name a tenant %j', async (tenant) => {
    const { server } = testServer();
    const headers = { ...bearer(OPERATOR_KEY), 'punctual-tenant': tenant };
    const answer = await server.inject({ url: '/v1/queues', headers });
    expect([answer.statusCode, answer.json().errors[0].pointer]).toEqual([422, '/punctual-tenant']);
  });
});

describe('a key without a tenant', () => {
  it('may do nothing', async () => {
    const { server } = testServer();
    const answer = await server.inject({ url: '/v1/queues', headers: bearer(TENANT_KEY) });
    expect([answer.statusCode, answer.json().code]).toEqual([403, 'FORBIDDEN']);
  });
});

describe("an attempt's token", () => {
  const post = (url: string, payload: object) => {
    const { server, recording } = testServer();
    const answer = server.inject({ method: 'POST', url, headers: bearer(ATTEMPT_TOKEN), payload });
    return answer.then(({ statusCode, body }) => ({ statusCode, body, recording }));
  };

  it.each([
    ['complete', { fence: 1 }],
    ['fail', { fence: 1, error: { message: 'no' } }],
    ['progress', { fence: 1, progress: 1 }],
    ['logs', { fence: 1, lines: [] }],
  ])('may report about its own job: %s', async (verb, payload) => {
    const { statusCode, recording } = await post(`/v1/jobs/${JOB_ID}/${verb}`, payload);
    expect(statusCode).toBe(204);
    expect(recording.calls[0]?.by).toEqual({ tenant: 'acme', jobId: JOB_ID, fence: 1 });
  });

  it.each([
    `/v1/jobs/${OTHER_ID}/complete`,
    `/v1/jobs/${JOB_ID}/cancel`,
    `/v1/jobs/${JOB_ID}/retry`,
    '/v1/jobs',
    '/v1/workers',
    `/v1/workers/${OTHER_ID}/report`,
    '/v1/cluster/pause',
  ])('may do nothing else: POST %s', async (url) => {
    const { statusCode, body, recording } = await post(url, { fence: 1 });
    expect([statusCode, JSON.parse(body).code]).toEqual([403, 'FORBIDDEN']);
    expect(recording.calls).toEqual([]);
  });

  it.each([`/v1/jobs/${JOB_ID}`, `/v1/jobs/${JOB_ID}/logs`, '/metrics'])(
    'may not read: GET %s',
    async (url) => {
      const { server } = testServer();
      expect((await server.inject({ url, headers: bearer(ATTEMPT_TOKEN) })).statusCode).toBe(403);
    },
  );
});
