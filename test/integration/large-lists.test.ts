import { randomBytes } from 'node:crypto';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Job, ListedJob } from '../../src/core/job.js';
import { uuidv7 } from '../../src/core/uuid.js';
import type { ListedSchedule, Page, StoredLogLine } from '../../src/core/wire.js';
import { TestNode, type TestTenant } from '../node-for-tests.js';
import { withClient } from '../postgres-client.js';

/** The node runs in this process, so its event loop and its memory are those of the test. */
let node: TestNode;

beforeAll(async () => {
  node = await TestNode.start();
});
afterAll(() => node.stop());

/** Far above what a list takes, because other tests share the processors; it was half a minute. */
const HELD_MS = 1_000;
const KIB = 1024;
const WORKER = '0198c0de-0000-7000-8000-00000000beef';
/** Small as text, enormous as a value. */
const MANY_OBJECTS = `[${'{},'.repeat(85_000)}{}]`;
const LONG_TEXT = JSON.stringify('x'.repeat(250 * KIB));
const RANDOM_TEXT = JSON.stringify(randomBytes(125 * KIB).toString('hex'));

/** Ended jobs with that payload and that result, as workers would have left them. */
async function endedJobs(tenant: TestTenant, count: number, payload: string, result: string): Promise<void> {
  await withClient(node.database.url, async (client) => {
    await client.query(
      `INSERT INTO punctual.queues (tenant, name, created_at) VALUES ($1, 'default', 0) ON CONFLICT DO NOTHING`,
      [tenant.tenant],
    );
    await client.query(
      `INSERT INTO punctual.job_history (id, tenant, queue, needs, rank, run_at, attempts, failures, losses, max_attempts,
       max_losses, at_most_once, timeout_ms, created_at, task, created_by, payload, lane, state, finished_at, result)
     SELECT u.id, $1, q.id, 1, 5, $5, 0, 0, 0, 4, 3, false, 1000, $5, 'work', 'test', $3, 0, 'succeeded',
       $5, $4
     FROM unnest($2::uuid[]) u(id) CROSS JOIN punctual.queues q WHERE q.tenant = $1`,
      [tenant.tenant, Array.from({ length: count }, () => uuidv7(Date.now())), payload, result, Date.now()],
    );
  });
}

/** What the process went through meanwhile. */
async function watched<T>(work: () => Promise<T>) {
  const delay = monitorEventLoopDelay({ resolution: 2 });
  const before = process.memoryUsage().rss;
  let most = before;
  const timer = setInterval(() => {
    most = Math.max(most, process.memoryUsage().rss);
  }, 5);
  delay.enable();
  const begun = performance.now();
  try {
    const answer = await work();
    return {
      answer,
      tookMs: performance.now() - begun,
      heldMs: delay.max / 1e6,
      grownMiB: (Math.max(most, process.memoryUsage().rss) - before) / KIB / KIB,
    };
  } finally {
    delay.disable();
    clearInterval(timer);
  }
}

/** The answer as text: reading it as JSON would hold this very process. */
async function textOf(tenant: TestTenant, path: string): Promise<string> {
  const answer = await fetch(node.url + path, {
    headers: { authorization: `Bearer ${node.apiKey}`, 'punctual-tenant': tenant.tenant },
  });
  expect(answer.status).toBe(200);
  return answer.text();
}

async function slowestLivez<T>(work: Promise<T>): Promise<number> {
  let over = false;
  const ended = () => {
    over = true;
  };
  work.then(ended, ended);
  let slowest = 0;
  while (!over) {
    const asked = performance.now();
    await fetch(`${node.url}/livez`).then((answer) => answer.text());
    slowest = Math.max(slowest, performance.now() - asked);
  }
  await work;
  return slowest;
}

describe.each([
  [1_000, 'many small objects', MANY_OBJECTS],
  [300, 'one long text', LONG_TEXT],
  [40, 'a text that cannot be compressed', RANDOM_TEXT],
])('%i jobs with %s as payload and result', (count, _, json) => {
  let tenant: TestTenant;
  beforeAll(async () => {
    tenant = node.newTenant();
    await endedJobs(tenant, count, json, json);
  });

  it('are listed without holding up anybody', async () => {
    const { answer, heldMs, grownMiB } = await watched(async () => {
      const lists = Promise.all(
        Array.from({ length: 12 }, () => textOf(tenant, '/v1/jobs?limit=1000&state=succeeded')),
      );
      return { livez: await slowestLivez(lists), lists: await lists };
    });
    const { data, next } = JSON.parse(answer.lists[0]!) as Page<ListedJob>;
    expect(data.length).toBeGreaterThan(count / 2);
    expect(new Set(data.map((job) => job.id)).size).toBe(data.length);
    expect(next === null || data.length < count).toBe(true);
    expect(data.every((job) => !('payload' in job) && !('result' in job))).toBe(true);
    expect(data[0]!.omitted).toEqual(['payload', 'result']);
    expect(heldMs).toBeLessThan(HELD_MS);
    expect(answer.livez).toBeLessThan(HELD_MS);
    expect(grownMiB).toBeLessThan(200);
  });

  it('are listed with their payloads, as many as fit', async () => {
    const path = '/v1/jobs?limit=1000&state=succeeded&include=payload,result';
    const { answer, heldMs, grownMiB } = await watched(async () => {
      const lists = Promise.all(Array.from({ length: 6 }, () => textOf(tenant, path)));
      return { livez: await slowestLivez(lists), lists: await lists };
    });
    const { next } = JSON.parse(answer.lists[0]!) as Page<ListedJob>;
    expect(answer.lists[0]!.length).toBeLessThan(2 * KIB * KIB);
    expect(answer.lists[0]!).toContain(`"payload":${json},"result":${json},`);
    expect(next).not.toBeNull();
    expect(heldMs).toBeLessThan(HELD_MS);
    expect(answer.livez).toBeLessThan(HELD_MS);
    expect(grownMiB).toBeLessThan(200);
    const second = JSON.parse(await textOf(tenant, `${path}&after=${next}`)) as Page<ListedJob>;
    expect(second.data.length).toBeGreaterThan(0);
    expect(second.data[0]!.id < next!).toBe(true);
  });
});

it('what is stored as JSON goes out as the text it is, and what is small is in lists', async () => {
  const tenant = node.newTenant();
  await endedJobs(tenant, 1, '{ "n": 12345678901234567890 }', '1e999');
  const list = await textOf(tenant, '/v1/jobs');
  expect(list).toContain('"payload":{ "n": 12345678901234567890 },"result":1e999,');
  expect(list).not.toContain('omitted');
  const [{ id }] = (JSON.parse(list) as Page<Job>).data as [Job];
  expect(await textOf(tenant, `/v1/jobs/${id}`)).toContain('"payload":{ "n": 12345678901234567890 },');
});

describe('a job with a thousand attempts that ended with long errors', () => {
  let tenant: TestTenant;
  const error = { message: 'no', code: 'E', stack: 's'.repeat(15_000) };
  beforeAll(async () => {
    tenant = node.newTenant();
    await endedJobs(tenant, 1, 'null', 'null');
    const attempt = {
      epoch: 1,
      worker: WORKER,
      claimedAt: 1,
      startedAt: 2,
      finishedAt: 3,
      outcome: 'failed',
    };
    await withClient(node.database.url, (client) =>
      client.query(
        `UPDATE punctual.job_history SET state = 'failed', error = $2, attempts = 1000, fence = 1001, worker = $4,
           epoch = 1, claimed_at = 4, outcome = 'failed', earlier_attempts = ARRAY(
             SELECT ('{"fence":' || n || ',' || substr($3, 2))::json FROM generate_series(1, 1000) n)
         WHERE tenant = $1`,
        [tenant.tenant, JSON.stringify(error), JSON.stringify({ ...attempt, error }), WORKER],
      ),
    );
  });

  it('is in lists with its newest attempts and without its stack', async () => {
    const { data } = await tenant.get<Page<ListedJob>>('GET', '/v1/jobs');
    expect(data[0]).toMatchObject({
      attempt: 1_001,
      error: { message: 'no', code: 'E' },
      omitted: ['stack', 'attempts'],
    });
    expect(data[0]!.error).not.toHaveProperty('stack');
    expect(data[0]!.attempts.map(({ fence }) => fence)).toEqual([1_000, 1_001]);
    const full = await tenant.get<Page<ListedJob>>('GET', '/v1/jobs?include=stack');
    expect(full.data[0]!.error).toEqual(error);
  });

  it('is read with as many of them as one can look at', async () => {
    const { data } = await tenant.get<Page<ListedJob>>('GET', '/v1/jobs');
    const { answer, heldMs } = await watched(() => textOf(tenant, `/v1/jobs/${data[0]!.id}`));
    const job = JSON.parse(answer) as Job;
    expect(job).toMatchObject({ attempt: 1_001, error, omitted: ['attempts'] });
    expect(job.attempts.map(({ fence }) => fence)).toEqual(Array.from({ length: 101 }, (_, n) => n + 901));
    expect(heldMs).toBeLessThan(HELD_MS);
  });
});

it('a long log is read page by page, each bounded in bytes', async () => {
  const tenant = node.newTenant();
  await endedJobs(tenant, 1, 'null', 'null');
  const [{ id }] = (await tenant.get<Page<Job>>('GET', '/v1/jobs')).data as [Job];
  const message = 'y'.repeat(20 * KIB);
  await withClient(node.database.url, (client) =>
    client.query(
      `INSERT INTO punctual.job_logs (tenant, job, fence, stored_at, line) SELECT $1, $2, 1, $3,
         json_build_object('at', '2030-01-01T00:00:00Z', 'level', 'info', 'message', n || $4)
       FROM generate_series(1, 200) n`,
      [tenant.tenant, id, Date.now(), message],
    ),
  );
  const numbers: number[] = [];
  let pages = 0;
  for (let after: string | null = '0'; after !== null; pages++) {
    const text = await textOf(tenant, `/v1/jobs/${id}/logs?limit=1000&after=${after}`);
    expect(text.length).toBeLessThan(1.1 * KIB * KIB);
    const page = JSON.parse(text) as Page<StoredLogLine>;
    for (const line of page.data) {
      expect(line).toMatchObject({ at: '2030-01-01T00:00:00Z', level: 'info', fence: 1 });
      numbers.push(Number.parseInt(line.message, 10));
    }
    after = page.next;
  }
  expect(numbers).toEqual(Array.from({ length: 200 }, (_, n) => n + 1));
  expect(pages).toBeGreaterThan(3);
});

it('schedules with large payloads are listed without them unless they are asked for', async () => {
  const tenant = node.newTenant();
  const small = { task: 'work', every: '1h', payload: { a: 1 } };
  await tenant.get('POST', '/v1/schedules', { body: { name: 'small', ...small } });
  await tenant.get('POST', '/v1/schedules', { body: { name: 'plain', task: 'work', every: '1h' } });
  const large = `{"name":"large-00","task":"work","every":"1h","payload":${LONG_TEXT}}`;
  await tenant.get('POST', '/v1/schedules', { body: large });
  await withClient(node.database.url, (client) =>
    client.query(
      `INSERT INTO punctual.schedules (id, tenant, name, definition, paused, watermark, created_at, created_by, changed_at,
         changed_by)
       SELECT gen_random_uuid(), tenant, 'large-' || lpad(n::text, 2, '0'), definition, true, 0, 0, '', 0, ''
       FROM punctual.schedules CROSS JOIN generate_series(1, 60) n WHERE tenant = $1 AND name = 'large-00'`,
      [tenant.tenant],
    ),
  );
  const { answer, heldMs } = await watched(() => textOf(tenant, '/v1/schedules?limit=1000'));
  expect(heldMs).toBeLessThan(HELD_MS);
  const { data, next } = JSON.parse(answer) as Page<ListedSchedule>;
  expect(next).toBeNull();
  expect(data.map(({ name }) => name).slice(-3)).toEqual(['large-60', 'plain', 'small']);
  expect(data[0]).toMatchObject({ name: 'large-00', omitted: ['payload'], nextAt: expect.any(String) });
  expect(data[0]).not.toHaveProperty('payload');
  expect(data.at(-1)).toMatchObject({ payload: { a: 1 }, overlap: 'allow' });
  expect(data.at(-1)).not.toHaveProperty('omitted');
  expect(data.at(-2)!.payload).toBeNull();
  const full = await textOf(tenant, '/v1/schedules?limit=1000&include=payload');
  expect(full.length).toBeLessThan(1.5 * KIB * KIB);
  expect(full).toContain(`"payload":${LONG_TEXT}`);
  expect(JSON.parse(full).next).toMatch(/^large-/);
  expect(await textOf(tenant, '/v1/schedules/large-00')).toContain(`"payload":${LONG_TEXT}`);
});
