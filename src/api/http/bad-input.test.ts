import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { JOB_ID, OPERATOR_KEY, OTHER_ID, testServer } from './routes.fixture.js';

const deep = (levels: number) => `{"task":"a","payload":${'['.repeat(levels)}${']'.repeat(levels)}}`;

describe('a bad body', () => {
  it.each<[string, string, unknown, number, string, string | undefined]>([
    ['an unknown field', '/v1/jobs', { task: 'a', nope: 1 }, 422, 'INVALID_REQUEST', '/nope'],
    ['a wrong type', '/v1/jobs', { task: 7 }, 422, 'INVALID_REQUEST', '/task'],
    ['a bad name', '/v1/jobs', { task: 'a/b' }, 422, 'INVALID_REQUEST', '/task'],
    ['a priority of 0', '/v1/jobs', { task: 'a', priority: 0 }, 422, 'INVALID_REQUEST', '/priority'],
    ['a priority of 5.5', '/v1/jobs', { task: 'a', priority: 5.5 }, 422, 'INVALID_REQUEST', '/priority'],
    ['NUL in a key', '/v1/jobs', { task: 'a', key: 'a\0' }, 422, 'INVALID_REQUEST', '/key'],
    ['NUL in a queue', '/v1/jobs', { task: 'a', queue: '\0' }, 422, 'INVALID_REQUEST', '/queue'],
    ['a raw NUL byte', '/v1/jobs', '{"task":"a\0"}', 400, 'MALFORMED_JSON', undefined],
    ['a bad duration', '/v1/jobs', { task: 'a', delay: 'soon' }, 422, 'INVALID_REQUEST', '/delay'],
    ['a bad date', '/v1/jobs', { task: 'a', runAt: 'today' }, 422, 'INVALID_REQUEST', '/runAt'],
    ['neither task nor target', '/v1/jobs', {}, 422, 'INVALID_REQUEST', '/task'],
    [
      'both runAt and delay',
      '/v1/jobs',
      { task: 'a', delay: '1s', runAt: '2030-01-01T00:00:00Z' },
      422,
      'INVALID_REQUEST',
      '/delay',
    ],
    [
      'a time beyond the maximum',
      '/v1/jobs',
      { task: 'a', timeout: '2h' },
      422,
      'INVALID_REQUEST',
      '/timeout',
    ],
    [
      'two ways to say when',
      '/v1/schedules',
      { name: 'a', task: 'a', cron: '* * * * *', every: '1h' },
      422,
      'INVALID_REQUEST',
      '/every',
    ],
    ['a bad expression', '/v1/schedules/preview', { cron: 'x' }, 422, 'INVALID_REQUEST', '/cron'],
    ['no object', '/v1/jobs', '[]', 422, 'INVALID_REQUEST', ''],
    ['null', '/v1/jobs', 'null', 422, 'INVALID_REQUEST', ''],
    ['nothing', '/v1/jobs', '', 422, 'INVALID_REQUEST', ''],
    ['broken JSON', '/v1/jobs', '{"task":', 400, 'MALFORMED_JSON', undefined],
    ['two values', '/v1/jobs', '{} {}', 400, 'MALFORMED_JSON', undefined],
    ['no UTF-8', '/v1/jobs', Buffer.from([0x22, 0xff, 0x22]), 400, 'MALFORMED_JSON', undefined],
    ['too deep nesting', '/v1/jobs', deep(16), 422, 'INVALID_REQUEST', ''],
    [
      'a __proto__ field',
      '/v1/jobs',
      '{"task":"a","payload":{"a":[{"__proto__":{}}]}}',
      422,
      'INVALID_REQUEST',
      '/payload/a/0/__proto__',
    ],
    [
      'an escaped __proto__ field',
      '/v1/jobs',
      '{"task":"a","payload":{"\\u005f_\\u0070roto__" : 1}}',
      422,
      'INVALID_REQUEST',
      '/payload/__proto__',
    ],
    [
      'a large body',
      '/v1/jobs',
      { task: 'a', payload: 'x'.repeat(80_000) },
      413,
      'BODY_TOO_LARGE',
      undefined,
    ],
    [
      'a 10,001st job',
      '/v1/jobs/bulk',
      { jobs: Array(10_001).fill({ task: 'a' }) },
      422,
      'INVALID_REQUEST',
      '/jobs',
    ],
    [
      'one bad job of two',
      '/v1/jobs/bulk',
      { jobs: [{ task: 'a' }, { task: '' }] },
      422,
      'INVALID_REQUEST',
      '/jobs/1/task',
    ],
    ['an unasked body', `/v1/jobs/${JOB_ID}/cancel`, { x: 1 }, 422, 'INVALID_REQUEST', '/x'],
    [
      'progress of 2',
      `/v1/jobs/${JOB_ID}/progress`,
      { fence: 1, progress: 2 },
      422,
      'INVALID_REQUEST',
      '/progress',
    ],
    ['a claim of 0', `/v1/workers/${OTHER_ID}/claim`, { max: 0, wait: '1s' }, 422, 'INVALID_REQUEST', '/max'],
    [
      'a claim that waits an hour',
      `/v1/workers/${OTHER_ID}/claim`,
      { max: 1, wait: '1h' },
      422,
      'INVALID_REQUEST',
      '/wait',
    ],
  ])('is refused: %s', async (_, url, body, status, code, pointer) => {
    const { call, recording } = testServer();
    const answer = await call('POST', url, body);
    expect([answer.statusCode, answer.json().code]).toEqual([status, code]);
    expect(answer.json().errors?.[0]?.pointer).toBe(pointer);
    expect(recording.calls).toEqual([]);
  });

  it.each<[string, Record<string, string>]>([
    ['text', { 'content-type': 'text/plain' }],
    ['a form', { 'content-type': 'application/x-www-form-urlencoded' }],
    ['no type', { 'content-type': '' }],
    ['compressed', { 'content-type': 'application/json', 'content-encoding': 'gzip' }],
  ])('is refused when it is not plain JSON: %s', async (_, headers) => {
    const { server } = testServer();
    const answer = await server.inject({
      method: 'POST',
      url: '/v1/jobs',
      headers: { authorization: `Bearer ${OPERATOR_KEY}`, ...headers },
      payload: '{"task":"a"}',
    });
    expect([answer.statusCode, answer.json().code]).toEqual([415, 'UNSUPPORTED_MEDIA_TYPE']);
  });

  it('may be nested as deep as the limit and hold brackets in texts', async () => {
    const { call } = testServer();
    expect((await call('POST', '/v1/jobs', deep(15))).statusCode).toBe(201);
    const payload = `\\"${'[{'.repeat(100)}`;
    expect((await call('POST', '/v1/jobs', { task: 'a', payload })).statusCode).toBe(201);
  });
});

describe('a body with very many mistakes', () => {
  const unknown = (count: number) =>
    JSON.stringify(Object.fromEntries(Array.from({ length: count }, (_, i) => [`field${i}`, 1])));
  const rate = `{"rate":${unknown(15_000)}}`;
  const jobs = `{"jobs":[${Array(1_000).fill(unknown(100)).join(',')}]}`;
  const results = `{"results":[${Array(1_000).fill(unknown(100)).join(',')}]}`;
  const running = `{"epoch":1,"running":[${Array(1_000).fill(unknown(100)).join(',')}]}`;

  it.each<[method: 'POST' | 'PATCH', url: string, body: string]>([
    ['POST', '/v1/jobs', unknown(2_000)],
    ['POST', '/v1/jobs/bulk', unknown(15_000)],
    ['POST', '/v1/jobs/bulk', jobs],
    ['PATCH', `/v1/jobs/${JOB_ID}`, unknown(2_000)],
    ['POST', '/v1/jobs/redrive', unknown(15_000)],
    ['POST', `/v1/jobs/${JOB_ID}/complete`, unknown(15_000)],
    ['POST', '/v1/workers', unknown(15_000)],
    ['POST', '/v1/workers', rate],
    ['POST', `/v1/workers/${OTHER_ID}/heartbeat`, running],
    ['POST', `/v1/workers/${OTHER_ID}/report`, results],
    ['PATCH', '/v1/queues/default', unknown(15_000)],
    ['PATCH', '/v1/queues/default', rate],
    ['POST', '/v1/tenants', rate],
    ['PATCH', '/v1/tenants/a', rate],
    ['POST', '/v1/schedules', unknown(2_000)],
    ['PATCH', '/v1/schedules/a', unknown(2_000)],
  ])('is told of the first, and that there are more: %s %s %#', async (method, url, body) => {
    const { call, logged } = testServer({ maxPayload: 1_000_000, maxBulkBytes: 4_000_000 });
    const answer = await call(method, url, body);
    expect([answer.statusCode, answer.json().code]).toEqual([422, 'INVALID_REQUEST']);
    expect(answer.json().errors).toHaveLength(21);
    expect(answer.json().errors.at(-1)).toEqual({ pointer: '', detail: expect.stringContaining('more') });
    expect(logged).toEqual([]);
  });

  it('is not quoted at length', async () => {
    const { call } = testServer({ maxPayload: 2_000_000 });
    const name = 'n'.repeat(500_000);
    const long = await call('POST', '/v1/jobs', { task: 'a', [name]: 1, retry: { [name]: { [name]: 1 } } });
    expect(long.statusCode).toBe(422);
    expect(long.body.length).toBeLessThan(5_000);
    const proto = await call('POST', '/v1/jobs', `{"${name}":{"__proto__":1}}`);
    expect(proto.json().errors[0].pointer).toMatch(/^\/n+…\/__proto__$/);
    expect(proto.body.length).toBeLessThan(2_000);
  });

  it('is not built when it holds too many values', async () => {
    const { call } = testServer();
    const values = await call('POST', '/v1/jobs/bulk', `{"a":[1${',1'.repeat(60_000)}]}`);
    expect(values.json().errors).toEqual([{ pointer: '', detail: 'must not hold more than 20000 values' }]);
  });

  // The lists do not end, which is not found: the rest of them is not looked at.
  it.each([
    ['/v1/jobs/bulk', 'jobs', 5],
    [`/v1/workers/${OTHER_ID}/heartbeat`, 'running', 100_000],
    [`/v1/workers/${OTHER_ID}/report`, 'results', 10_000],
  ])('is not read further when a list is much too long: %s', async (path, list, most) => {
    const { call } = testServer({ maxBulkJobs: 5 });
    const answer = await call('POST', path, `{"${list}":[${'{},'.repeat(400_000)}`);
    expect(answer.statusCode).toBe(422);
    expect(answer.json().errors).toEqual([
      { pointer: `/${list}`, detail: `must have at most ${most} entries` },
    ]);
  });
});

describe('a bad address', () => {
  it.each<[string, string]>([
    ['/v1/jobs/42', '/id'],
    [`/v1/jobs/${JOB_ID.toUpperCase()}`, '/id'],
    [`/v1/jobs/${JOB_ID}?wait=2m`, '/wait'],
    [`/v1/jobs/${JOB_ID}?wait=soon`, '/wait'],
    [`/v1/jobs/${JOB_ID}?foo=1`, '/foo'],
    [`/v1/jobs/${JOB_ID}/logs?after=-1`, '/after'],
    ['/v1/jobs?limit=0', '/limit'],
    ['/v1/jobs?limit=1001', '/limit'],
    ['/v1/jobs?limit=ten', '/limit'],
    ['/v1/jobs?limit=1&limit=2', '/limit'],
    ['/v1/jobs?state=done', '/state'],
    ['/v1/jobs?task=a%00b', '/task'],
    ['/v1/jobs?key=%00', '/key'],
    ['/v1/jobs?worker=w', '/worker'],
    ['/v1/jobs?__proto__=1', '/__proto__'],
    ['/v1/queues/a%20b', '/name'],
    [`/v1/queues/${'q'.repeat(129)}`, '/name'],
    ['/v1/queues?size=1', '/size'],
    ['/v1/queues?limit=1001', '/limit'],
    ['/v1/workers?limit=0', '/limit'],
    ['/v1/jobs?include=payload,all', '/include'],
    ['/v1/schedules?include=result', '/include'],
    ['/v1/workers/w', '/id'],
    ['/v1/stats?history=yesterday', '/history'],
    ['/v1/stats?history=8d', '/history'],
    ['/readyz?verbose=maybe', '/verbose'],
  ])('is refused with a pointer: %s', async (url, pointer) => {
    const { call, recording } = testServer();
    const answer = await call('GET', url);
    expect([answer.statusCode, answer.json().code]).toEqual([422, 'INVALID_REQUEST']);
    expect(answer.json().errors[0].pointer).toBe(pointer);
    expect(recording.calls).toEqual([]);
  });

  it.each([
    ['/%ff', 400],
    ['/v1/jobs/%zz', 400],
    [`/v1/queues/${'q'.repeat(2_000)}`, 404],
    ['//v1/jobs', 400],
    ['/v1/jobs/', 422],
  ])('is refused in our own words: %s', async (url, status) => {
    const { call } = testServer();
    const answer = await call('GET', url);
    expect(answer.statusCode).toBe(status);
    expect(answer.headers['content-type']).toBe('application/problem+json');
  });
});

describe('whatever is sent', () => {
  const routes: [method: 'POST' | 'PATCH', url: string][] = [
    ['POST', '/v1/jobs'],
    ['POST', '/v1/jobs/bulk'],
    ['POST', '/v1/jobs/redrive'],
    ['PATCH', `/v1/jobs/${JOB_ID}`],
    ['POST', `/v1/jobs/${JOB_ID}/cancel`],
    ['POST', `/v1/jobs/${JOB_ID}/complete`],
    ['POST', `/v1/jobs/${JOB_ID}/fail`],
    ['POST', `/v1/jobs/${JOB_ID}/progress`],
    ['POST', `/v1/jobs/${JOB_ID}/logs`],
    ['POST', '/v1/workers'],
    ['POST', `/v1/workers/${OTHER_ID}/heartbeat`],
    ['POST', `/v1/workers/${OTHER_ID}/report`],
  ];

  const fields = [
    'task',
    'target',
    'payload',
    'jobs',
    'fence',
    'error',
    'results',
    'lines',
    'running',
    'name',
  ];
  const body = fc.oneof(
    fc.json(),
    fc.string(),
    fc
      .dictionary(fc.constantFrom(...fields), fc.oneof(fc.jsonValue(), fc.constantFrom(1, 'a', [], {})))
      .map((value) => JSON.stringify(value)),
  );

  it('the answer is never our fault', async () => {
    const { call, logged } = testServer();
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...routes), body, async ([method, url], text) => {
        const answer = await call(method, url, text);
        expect(answer.statusCode).toBeLessThan(500);
        if (answer.statusCode >= 400) expect(answer.json()).toHaveProperty('code');
      }),
      { numRuns: 500 },
    );
    expect(logged).toEqual([]);
  });

  it('no address is our fault either', async () => {
    const { call } = testServer();
    const path = fc.webPath().map((text) => (text.startsWith('/') ? text : `/${text}`));
    const parts = fc.tuple(
      fc.constantFrom('', '/v1/jobs', '/v1/queues', '/v1/workers'),
      path,
      fc.webQueryParameters(),
    );
    await fc.assert(
      fc.asyncProperty(parts, async ([prefix, rest, query]) => {
        expect((await call('GET', `${prefix}${rest}?${query}`)).statusCode).toBeLessThan(500);
      }),
      { numRuns: 300 },
    );
  });
});
