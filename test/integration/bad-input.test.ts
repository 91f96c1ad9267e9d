import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { StatsView } from '../../src/core/wire.js';
import { type Ask, TestNode } from '../node-for-tests.js';
import { countPlaces } from '../postgres-client.js';

let node: TestNode;

beforeAll(async () => {
  node = await TestNode.start();
});
afterAll(() => node.stop());

const SOME_ID = '01890000-0000-7000-8000-000000000000';

/** Refused submissions, and the field each answer points at. */
const SUBMISSIONS: readonly (readonly [what: string, body: unknown, pointer: string])[] = [
  ['neither task nor target', {}, '/task'],
  ['both task and target', { task: 'a', target: { type: 'handler', name: 'a' } }, '/task'],
  ['a list', [], ''],
  ['a number', 7, ''],
  ['null', null, ''],
  ['an unknown field', { task: 'a', taks: 'b' }, '/taks'],
  ['a name with a space', { task: 'no spaces' }, '/task'],
  ['an empty name', { task: '' }, '/task'],
  ['a name beyond 128', { task: 'x'.repeat(129) }, '/task'],
  ['a name with NUL', { task: 'a\0b' }, '/task'],
  ['a task that is no text', { task: 5 }, '/task'],
  ['a bad queue', { task: 'a', queue: 'ü' }, '/queue'],
  ['priority 0', { task: 'a', priority: 0 }, '/priority'],
  ['priority 10', { task: 'a', priority: 10 }, '/priority'],
  ['half a priority', { task: 'a', priority: 4.5 }, '/priority'],
  ['a priority as text', { task: 'a', priority: '5' }, '/priority'],
  ['a delay without a unit', { task: 'a', delay: '30' }, '/delay'],
  ['a negative delay', { task: 'a', delay: '-1s' }, '/delay'],
  ['a delay of a thousand years', { task: 'a', delay: '365000d' }, '/delay'],
  ['a delay as a number', { task: 'a', delay: 30 }, '/delay'],
  ['runAt and delay', { task: 'a', delay: '1s', runAt: '2030-01-01T00:00:00Z' }, '/delay'],
  ['a date without a time', { task: 'a', runAt: '2030-01-01' }, '/runAt'],
  ['February 30th', { task: 'a', runAt: '2030-02-30T00:00:00Z' }, '/runAt'],
  ['a time without a zone', { task: 'a', runAt: '2030-01-01T00:00:00' }, '/runAt'],
  ['a runAt of milliseconds', { task: 'a', runAt: 1_900_000_000_000 }, '/runAt'],
  ['a key with NUL', { task: 'a', key: 'a\0' }, '/key'],
  ['an empty key', { task: 'a', key: '' }, '/key'],
  ['a key beyond 512', { task: 'a', key: 'k'.repeat(513) }, '/key'],
  ['a bad timeout', { task: 'a', timeout: 'soon' }, '/timeout'],
  ['no time at all', { task: 'a', timeout: '0s' }, '/timeout'],
  ['a timeout beyond the maximum', { task: 'a', timeout: '21m' }, '/timeout'],
  ['an unknown delivery', { task: 'a', delivery: 'exactly-once' }, '/delivery'],
  [
    'two starts of an at-most-once job',
    { task: 'a', delivery: 'at-most-once', retry: { maxAttempts: 2 } },
    '/retry/maxAttempts',
  ],
  ['no attempts', { task: 'a', retry: { maxAttempts: 0 } }, '/retry/maxAttempts'],
  ['an unknown retry field', { task: 'a', retry: { attempts: 2 } }, '/retry/attempts'],
  ['a bad backoff', { task: 'a', retry: { backoff: { base: '2' } } }, '/retry/backoff/base'],
  ['a jitter of 2', { task: 'a', retry: { backoff: { jitter: 2 } } }, '/retry/backoff/jitter'],
  ['labels that are no texts', { task: 'a', requires: { cpu: 4 } }, '/requires/cpu'],
  ['a label with NUL', { task: 'a', requires: { cpu: '\0' } }, '/requires/cpu'],
  ['a startBefore in the past', { task: 'a', startBefore: '2020-01-01T00:00:00Z' }, '/startBefore'],
  ['a hold that is no boolean', { task: 'a', hold: 'yes' }, '/hold'],
  ['an unknown target', { target: { type: 'ftp' } }, '/target/type'],
  ['a target without a URL', { target: { type: 'http' } }, '/target/url'],
  ['a URL that is none', { target: { type: 'http', url: 'file:///etc/passwd' } }, '/target/url'],
  ['a target with too much', { target: { type: 'handler', name: 'a', x: 1 } }, '/target/x'],
];

describe('a submission with', () => {
  it.each(SUBMISSIONS)('%s is refused with a pointer to it', async (_, body, pointer) => {
    const answer = await node.ask<{ errors: { pointer: string; detail: string }[]; detail: string }>(
      'POST',
      '/v1/jobs',
      { body: JSON.stringify(body) },
    );
    expect(answer).toMatchObject({
      status: 422,
      body: { code: 'INVALID_REQUEST', status: 422, requestId: expect.any(String) },
    });
    expect(answer.headers.get('content-type')).toContain('application/problem+json');
    expect(answer.body.errors.map((error) => error.pointer)).toContain(pointer);
    expect(answer.body.detail).not.toBe('');
  });

  it('everything wrong at once is told all at once', async () => {
    const { body } = await node.ask<{ errors: { pointer: string }[] }>('POST', '/v1/jobs', {
      body: { task: '', priority: 0, delay: 'x', nonsense: 1 },
    });
    expect(body.errors.map((error) => error.pointer).sort()).toEqual([
      '/delay',
      '/nonsense',
      '/priority',
      '/task',
    ]);
  });
});

/** Refused requests of other kinds, with status and code. */
const REQUESTS: readonly (readonly [
  what: string,
  request: readonly [method: string, path: string, ask?: Ask],
  status: number,
  code: string,
])[] = [
  ['without a key', ['POST', '/v1/jobs', { body: { task: 'a' }, key: null }], 401, 'UNAUTHENTICATED'],
  ['with a wrong key', ['POST', '/v1/jobs', { body: { task: 'a' }, key: 'pk_op_x' }], 401, 'UNAUTHENTICATED'],
  [
    'with nonsense as a token',
    ['GET', '/v1/jobs', { key: 'eyJhbGciOiJub25lIn0.e30.' }],
    401,
    'UNAUTHENTICATED',
  ],
  ['with a key to /metrics missing', ['GET', '/metrics', { key: null }], 401, 'UNAUTHENTICATED'],
  ['with a bad tenant', ['GET', '/v1/jobs', { tenant: 'a b' }], 422, 'INVALID_REQUEST'],
  ['with broken JSON', ['POST', '/v1/jobs', { body: '{"task": ' }], 400, 'MALFORMED_JSON'],
  ['with no body', ['POST', '/v1/jobs', { body: '' }], 422, 'INVALID_REQUEST'],
  [
    'with bytes that are no UTF-8',
    ['POST', '/v1/jobs', { body: Buffer.from([0x22, 0xff, 0x22]) }],
    400,
    'MALFORMED_JSON',
  ],
  [
    'with a form',
    [
      'POST',
      '/v1/jobs',
      { body: 'task=a', headers: { 'content-type': 'application/x-www-form-urlencoded' } },
    ],
    415,
    'UNSUPPORTED_MEDIA_TYPE',
  ],
  [
    'nested too deep',
    ['POST', '/v1/jobs', { body: `{"task":"a","payload":${'['.repeat(200)}${']'.repeat(200)}}` }],
    422,
    'INVALID_REQUEST',
  ],
  [
    'with a large payload',
    ['POST', '/v1/jobs', { body: { task: 'a', payload: 'x'.repeat(257 * 1024) } }],
    413,
    'PAYLOAD_TOO_LARGE',
  ],
  [
    'with a huge body',
    ['POST', '/v1/jobs', { body: { task: 'a', payload: 'x'.repeat(1024 * 1024) } }],
    413,
    'BODY_TOO_LARGE',
  ],
  ['for an id that is none', ['GET', '/v1/jobs/42'], 422, 'INVALID_REQUEST'],
  ['for a job that is not there', ['GET', `/v1/jobs/${SOME_ID}`], 404, 'JOB_NOT_FOUND'],
  ['to cancel a job that is not there', ['POST', `/v1/jobs/${SOME_ID}/cancel`], 404, 'JOB_NOT_FOUND'],
  ['to change nothing', ['PATCH', `/v1/jobs/${SOME_ID}`, { body: {} }], 422, 'INVALID_REQUEST'],
  [
    'to change what cannot be',
    ['PATCH', `/v1/jobs/${SOME_ID}`, { body: { task: 'b' } }],
    422,
    'INVALID_REQUEST',
  ],
  ['for a bad wait', ['GET', `/v1/jobs/${SOME_ID}?wait=long`], 422, 'INVALID_REQUEST'],
  ['for a wait beyond a minute', ['GET', `/v1/jobs/${SOME_ID}?wait=61s`], 422, 'INVALID_REQUEST'],
  ['for a bad state', ['GET', '/v1/jobs?state=asleep'], 422, 'INVALID_REQUEST'],
  ['for too long a page', ['GET', '/v1/jobs?limit=1001'], 422, 'INVALID_REQUEST'],
  ['for a bad cursor', ['GET', '/v1/jobs?after=x'], 422, 'INVALID_REQUEST'],
  ['with an unknown parameter', ['GET', '/v1/jobs?stat=failed'], 422, 'INVALID_REQUEST'],
  ['for a queue that is not there', ['GET', '/v1/queues/nowhere'], 404, 'QUEUE_NOT_FOUND'],
  ['for a worker that is not there', ['GET', `/v1/workers/${SOME_ID}`], 404, 'WORKER_NOT_FOUND'],
  [
    'for work as nobody',
    ['POST', `/v1/workers/${SOME_ID}/claim`, { body: { max: 1, wait: '1s' } }],
    404,
    'WORKER_NOT_FOUND',
  ],
  ['to register as nothing', ['POST', '/v1/workers', { body: {} }], 422, 'INVALID_REQUEST'],
  [
    'to redrive by an unknown filter',
    ['POST', '/v1/jobs/redrive', { body: { state: 'failed' } }],
    422,
    'INVALID_REQUEST',
  ],
  ['to an address that leads nowhere', ['GET', '/v1/nothing'], 404, 'NOT_FOUND'],
  ['with a method that is not taken', ['DELETE', '/v1/jobs'], 405, 'METHOD_NOT_ALLOWED'],
];

describe('a request', () => {
  it.each(REQUESTS)('%s is refused', async (_, [method, path, ask], status, code) => {
    const answer = await node.ask(method, path, ask);
    expect([answer.status, answer.body.code]).toEqual([status, code]);
    expect(answer.body.title).not.toBe('');
    expect(answer.body.detail).not.toBe('');
  });

  it('that is no HTTP is answered and hung up on, and others are not harmed', async () => {
    const { port } = new URL(node.url);
    const answer = await new Promise<string>((resolve, reject) => {
      let text = '';
      const socket = connect(Number(port), '127.0.0.1', () => socket.write('NONSENSE\r\n\r\n'));
      socket.setEncoding('utf8').on('data', (piece: string) => {
        text += piece;
      });
      socket.on('close', () => resolve(text)).on('error', reject);
    });
    expect(answer).toMatch(/^HTTP\/1\.1 400 /);
    expect(answer).toContain('MALFORMED_REQUEST');
    expect((await node.ask('GET', '/livez', { key: null })).status).toBe(200);
  });
});

it('reports that make no sense are refused and change nothing', async () => {
  const report = (body: unknown) =>
    node.ask('POST', `/v1/workers/${SOME_ID}/report`, { body: { results: [body] } });
  for (const result of [
    { jobId: 'x', fence: 1, outcome: 'succeeded' },
    { jobId: SOME_ID, fence: 0, outcome: 'succeeded' },
    { jobId: SOME_ID, fence: 1, outcome: 'lost' },
    { jobId: SOME_ID, fence: 1, outcome: 'failed' },
    { jobId: SOME_ID, fence: 1, outcome: 'succeeded', startedAt: 'yesterday' },
  ]) {
    expect(await report(result)).toMatchObject({ status: 422, body: { code: 'INVALID_REQUEST' } });
  }
});

// It stands last: by then every bad request of this file has been made.
it('nothing of all this was stored', async () => {
  expect(await countPlaces(node.database.url)).toEqual({ live: 0, later: 0, history: 0, claims: 0, keys: 0 });
  expect(await node.get<StatsView>('GET', '/v1/stats')).toMatchObject({ jobsSubmitted: 0 });
});
