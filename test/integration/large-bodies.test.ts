import { request } from 'undici';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TestNode } from '../node-for-tests.js';
import { withClient } from '../postgres-client.js';
import { ProtocolWorker } from '../protocol-worker.js';

/** The node runs in the process of the test, so that its event loop can be watched. Bodies are made beforehand. */
let node: TestNode;

beforeAll(async () => {
  node = await TestNode.start();
});
afterAll(() => node.stop());

/**
 * The client works in the same process, so the bound is wider than the one that is aimed at, 50 ms. It was seconds when
 * bodies were parsed at once.
 */
const LONGEST_MS = 200;

/**
 * Makes sure that no turn of the event loop took long meanwhile, in time of the processor: what others on the machine
 * take does not count.
 */
async function inShortTurns<T>(work: () => Promise<T>): Promise<T> {
  let longest = 0;
  let last = process.cpuUsage();
  const look = () => {
    const { user, system } = process.cpuUsage(last);
    longest = Math.max(longest, (user + system) / 1_000);
    last = process.cpuUsage();
    probe = setImmediate(look);
  };
  let probe = setImmediate(look);
  const result = await work();
  clearImmediate(probe);
  expect(longest).toBeLessThan(LONGEST_MS);
  return result;
}

/** Sends bytes as they are; `fetch` would copy them all first, in this process. */
async function send(path: string, body: Buffer, tenant = 'default') {
  const answer = await request(`${node.url}${path}`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${node.apiKey}`,
      'content-type': 'application/json',
      'punctual-tenant': tenant,
    },
    body,
  });
  return { status: answer.statusCode, text: await answer.body.text() };
}

const MIB = 1024 * 1024;
const times = (count: number, item: string) => Array(count).fill(item).join(',');
const unknown = (count: number) => `{${Array.from({ length: count }, (_, i) => `"field${i}":{}`).join(',')}}`;

describe('no request holds the event loop:', () => {
  const largest = 15 * MIB;
  const cases: [what: string, path: string, body: string, status: number][] = [
    ['small objects by the million', '/v1/jobs/bulk', `{"jobs":[${times(largest / 3, '{}')}]}`, 422],
    ['small lists in an unknown field', '/v1/jobs/bulk', `{"a":[${times(largest / 3, '[]')}]}`, 422],
    ['one very long text', '/v1/jobs/bulk', `{"jobs":["${'x'.repeat(largest)}"]}`, 422],
    ['one very long number', '/v1/jobs/bulk', `{"jobs":[${'1'.repeat(largest)}]}`, 422],
    [
      'unknown fields by the thousand in each job',
      '/v1/jobs/bulk',
      `{"jobs":[${times(55, unknown(18_000))}]}`,
      422,
    ],
    [
      'unknown fields of a report',
      '/v1/workers/01890000-0000-7000-8000-000000000000/report',
      `{"results":[${times(55, unknown(18_000))}]}`,
      422,
    ],
    [
      'unknown fields of a heartbeat',
      '/v1/workers/01890000-0000-7000-8000-000000000000/heartbeat',
      unknown(19_000),
      422,
    ],
    [
      'payloads of small objects',
      '/v1/jobs/bulk',
      `{"jobs":[${times(55, `{"task":"large","payload":[${times(85_000, '{}')}]}`)}]}`,
      201,
    ],
    [
      'many jobs',
      '/v1/jobs/bulk',
      `{"jobs":[${times(10_000, `{"task":"large","payload":{"text":"${'x'.repeat(1_400)}"}}`)}]}`,
      201,
    ],
    [
      'many jobs that differ',
      '/v1/jobs/bulk',
      `{"jobs":[${Array.from({ length: 10_000 }, (_, i) => `{"task":"large","concurrencyKey":"k${i}","payload":${i}}`).join(',')}]}`,
      201,
    ],
  ];

  it.each(cases.map(([what, path, body, status]) => ({ what, path, body: Buffer.from(body), status })))(
    '$what',
    async ({ path, body, status }) => {
      const answer = await inShortTurns(() => send(path, body));
      expect(answer.status).toBe(status);
      expect(answer.text.length).toBeLessThan(1_000_000);
    },
  );

  // Usually some 120 ms. A collection in other threads counts too and may come on top once, but not every time.
  it('and fourteen at once are answered one after another, under the same term', { retry: 2 }, async () => {
    const body = Buffer.from(
      `{"jobs":[${times(5_000, '{"task":"large","payload":[[],[],[]]}')},{"nonsense":1}${','.padEnd(14 * MIB)}{"task":"a"}]}`,
    );
    const before = await node.get('GET', '/v1/cluster');
    const answers = await inShortTurns(() =>
      Promise.all(Array.from({ length: 14 }, (_, i) => send('/v1/jobs/bulk', body, `t${i % 3}`))),
    );
    expect(answers.map(({ status }) => status)).toEqual(Array(14).fill(422));
    expect(await node.get('GET', '/v1/cluster')).toMatchObject({
      shards: [{ epoch: (before as { shards: { epoch: number }[] }).shards[0]!.epoch }],
    });
  });
});

const ODD = '{ "big":12345678901234567890, "more":1e999 , "text":"\\u00e9" }';

/** The stored text of a column of a job, wherever the job is. */
const stored = (column: 'payload' | 'result', id: string) =>
  withClient(node.database.url, async (client) => {
    const places = column === 'payload' ? ['jobs', 'later', 'job_history'] : ['job_history'];
    for (const place of places) {
      const { rows } = await client.query(
        `SELECT ${column}::text AS text FROM punctual.${place} WHERE id = $1`,
        [id],
      );
      if (rows.length > 0) return rows[0].text as string;
    }
    return null;
  });

describe('a value that no program of ours can hold', () => {
  const tenant = 'numbers';
  const post = <T = { id: string }>(path: string, body: string, method = 'POST') =>
    node.get<T>(method, path, { body, tenant });

  it('stays the text it came as: one payload, payloads of a bulk, a changed one', async () => {
    const { id } = await post('/v1/jobs', `{"task":"work","payload":${ODD},"hold":true}`);
    expect(await stored('payload', id)).toBe(ODD);
    await post(`/v1/jobs/${id}`, `{"payload":[1e999]}`, 'PATCH');
    expect(await stored('payload', id)).toBe('[1e999]');
    const { ids } = await post<{ ids: string[] }>(
      '/v1/jobs/bulk',
      `{"jobs":[{"task":"a","payload":${ODD}},{"payload": 1e999,"task":"a"}]}`,
    );
    expect([await stored('payload', ids[0]!), await stored('payload', ids[1]!)]).toEqual([ODD, '1e999']);
  });

  it('stays the text it came as: a submission inside a transaction', async () => {
    const { rows } = await withClient(node.database.url, (client) =>
      client.query('SELECT punctual.submit_job($1, $2::json) AS id', [
        tenant,
        `{"task":"tx","payload":${ODD}}`,
      ]),
    );
    const { id } = rows[0] as { id: string };
    await expect.poll(() => stored('payload', id), { timeout: 10_000 }).toBe(ODD);
  });

  it('stays the text it came as: the result of one attempt, and results in a report', async () => {
    const worker = await ProtocolWorker.register(node, { queues: ['results'] }, tenant);
    const jobs = [];
    for (let i = 0; i < 2; i++) {
      await post('/v1/jobs', '{"task":"work","queue":"results"}');
      jobs.push(await worker.claimOne());
    }
    const [one, other] = jobs as [(typeof jobs)[0], (typeof jobs)[0]];
    await node.ask('POST', `/v1/jobs/${one.jobId}/complete`, { body: `{"fence":1,"result":${ODD}}`, tenant });
    await post(
      `/v1/workers/${worker.id}/report`,
      `{"results":[{"jobId":"${other.jobId}","fence":1,"outcome":"succeeded","result":${ODD}}]}`,
    );
    expect([await stored('result', one.jobId), await stored('result', other.jobId)]).toEqual([ODD, ODD]);
  });

  it.each([
    ['/v1/jobs', '{"target":{"type":"http","url":"http://a","body":{"n":[1e999]}}}', '/target/body/n/0'],
    [
      '/v1/schedules',
      '{"name":"s","every":"1h","task":"a","payload":{"n":12345678901234567890}}',
      '/payload/n',
    ],
  ])('is refused where it cannot be kept: %s', async (path, body, pointer) => {
    const answer = await node.ask<{ errors: { pointer: string }[] }>('POST', path, { body, tenant });
    expect([answer.status, answer.body.errors[0]!.pointer]).toEqual([422, pointer]);
  });
});
