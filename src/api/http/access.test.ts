import { describe, expect, it } from 'vitest';
import { KEY_SCOPES, type KeyScope } from '../../core/access.js';
import { VERSION } from '../../core/version.js';
import type { Scope } from '../caller.js';
import type { Route } from '../route.js';
import { ROUTES } from '../routes.js';
import { apiDocument } from './api-document.js';
import {
  ATTEMPT_TOKEN,
  JOB_ID,
  NODE_TOKEN,
  OPERATOR_KEY,
  OTHER_ID,
  OWNERLESS_KEY,
  tenantKey,
  testServer,
} from './routes.fixture.js';

const bearer = (key: string) => ({ authorization: `Bearer ${key}` });

/** One server for all walks: to make it takes longer than to call it. */
const walked = testServer();

/** Calls routes as somebody, and tells how each of them answers. */
async function callAll(routes: readonly Route[], headers: Record<string, string>) {
  const { server, recording } = walked;
  recording.calls.length = 0;
  const answers: [id: string, status: number, code: string | undefined][] = [];
  for (const { id, method, path } of routes) {
    const url = path.replace(':id', JOB_ID).replace(/:\w+/, 'q');
    const { statusCode, body, headers: answered } = await server.inject({ method, url, headers });
    if (statusCode === 401) expect(answered['www-authenticate']).toContain('Bearer');
    answers.push([id, statusCode, body.startsWith('{') ? JSON.parse(body).code : undefined]);
  }
  return { answers, recording };
}

const closed = ROUTES.filter(({ scope }) => scope !== 'public');

describe('without a valid key', () => {
  it.each<[string, Record<string, string>]>([
    ['none', {}],
    ['an unknown one', bearer('pk_wrong')],
    ['another scheme', { authorization: `Basic ${OPERATOR_KEY}` }],
    ['no token', { authorization: 'Bearer ' }],
    ['two tokens', { authorization: `Bearer ${OPERATOR_KEY} x` }],
  ])('every route but the public ones is closed: %s', async (_, headers) => {
    const { answers, recording } = await callAll(closed, headers);
    expect(answers).toEqual(closed.map(({ id }) => [id, 401, 'UNAUTHENTICATED']));
    expect(closed.length).toBeGreaterThan(45);
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
    const { answers, recording } = await callAll(closed, bearer(OWNERLESS_KEY));
    expect(answers).toEqual(closed.map(({ id }) => [id, 403, 'FORBIDDEN']));
    expect(recording.calls).toEqual([]);
  });
});

describe("a tenant's key", () => {
  const INCLUDED: Record<KeyScope, readonly Scope[]> = {
    read: ['key', 'read'],
    submit: ['key', 'submit'],
    work: ['key', 'work', 'attempt', 'step'],
    admin: ['key', 'admin', 'read'],
  };

  it.each(KEY_SCOPES)('opens the routes of its scope and no others: %s', async (scope) => {
    const { answers } = await callAll(closed, bearer(tenantKey(scope)));
    const refused = answers.filter(([, status]) => status === 403).map(([id]) => id);
    const expected = closed.filter((each) => !INCLUDED[scope].includes(each.scope)).map(({ id }) => id);
    expect(refused).toEqual(expected);
  });

  it('acts for its tenant, and may name no other', async () => {
    const { server, recording } = testServer();
    const ask = (tenant?: string) => {
      const headers = {
        ...bearer(tenantKey('read')),
        ...(tenant !== undefined && { 'punctual-tenant': tenant }),
      };
      return server.inject({ url: '/v1/queues', headers });
    };
    for (const tenant of [undefined, 'acme']) expect((await ask(tenant)).statusCode).toBe(200);
    for (const { by } of recording.calls) expect(by).toMatchObject({ tenant: 'acme', operator: false });
    for (const tenant of ['globex', 'default', '', 'ACME']) {
      expect([tenant, (await ask(tenant)).statusCode]).toEqual([tenant, 403]);
    }
    expect(recording.calls).toHaveLength(2);
  });
});

describe('what nodes say to each other', () => {
  const ofNodes = ROUTES.filter(({ scope }) => scope === 'node');

  it('is refused to every key', async () => {
    const { answers } = await callAll(ofNodes, bearer(OPERATOR_KEY));
    expect(answers).toEqual(ofNodes.map(({ id }) => [id, 403, 'FORBIDDEN']));
    expect(ofNodes.map(({ path }) => path)).toEqual(
      ROUTES.map(({ path }) => path).filter((path) => path.startsWith('/internal/')),
    );
  });

  it('is taken from a node', async () => {
    const { answers } = await callAll(ofNodes, bearer(NODE_TOKEN));
    for (const [, status] of answers) expect([204, 200, 422]).toContain(status);
  });
});

describe('the declared routes', () => {
  it('are those of the document, with their scopes', async () => {
    const { paths } = await apiDocument(ROUTES, VERSION);
    const documented = Object.entries(paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => [
        `${method.toUpperCase()} ${path}`,
        operation.operationId,
        (operation as { 'x-scope'?: string })['x-scope'],
        operation.security?.map((schemes) => Object.keys(schemes)[0]),
      ]),
    );
    const declared = ROUTES.filter(({ tag }) => tag !== 'internal').map(({ id, method, path, scope }) => [
      `${method} ${path.replace(/:(\w+)/g, '{$1}')}`,
      id,
      scope,
      scope === 'public' ? [] : scope === 'attempt' || scope === 'step' ? ['key', 'attemptToken'] : ['key'],
    ]);
    const byName = (a: unknown[], b: unknown[]) => String(a[0]).localeCompare(String(b[0]));
    expect(documented.sort(byName)).toEqual(declared.sort(byName));
  });

  it('each have a name of their own, and describe what is in their path', () => {
    expect(new Set(ROUTES.map(({ id }) => id)).size).toBe(ROUTES.length);
    for (const { path, params } of ROUTES) {
      const described = Object.keys((params as { properties?: object } | undefined)?.properties ?? {});
      expect([path, described]).toEqual([path, [...path.matchAll(/:(\w+)/g)].map(([, name]) => name)]);
    }
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

  it('may do nothing else, nor report about another job', async () => {
    const others = closed.filter(({ scope }) => scope !== 'attempt' && scope !== 'step');
    const { answers, recording } = await callAll(others, bearer(ATTEMPT_TOKEN));
    expect(answers).toEqual(others.map(({ id }) => [id, 403, 'FORBIDDEN']));
    expect(recording.calls).toEqual([]);
    const { statusCode, body } = await post(`/v1/jobs/${OTHER_ID}/complete`, { fence: 1 });
    expect([statusCode, JSON.parse(body).code]).toEqual([403, 'FORBIDDEN']);
  });
});
