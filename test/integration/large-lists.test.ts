import { randomBytes } from 'node:crypto';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ListedJob } from '../../src/core/job.js';
import type { Page } from '../../src/core/wire.js';
import { TestNode, type TestTenant } from '../node-for-tests.js';
import { withClient } from '../postgres-client.js';

/** The node runs in this process, so its event loop and its memory are those of the test. */
let node: TestNode;

beforeAll(async () => {
  node = await TestNode.start();
});
afterAll(() => node.stop());

/** Far above what a list takes, because other tests share the processors; it was half a minute. */
const HELD_MS = 300;
const KIB = 1024;
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
     SELECT gen_random_uuid(), $1, q.id, 1, 5, $5, 0, 0, 0, 4, 3, false, 1000, $5, 'work', 'test', $3, 0, 'succeeded',
       $5, $4
     FROM generate_series(1, $2) CROSS JOIN punctual.queues q WHERE q.tenant = $1`,
      [tenant.tenant, count, payload, result, Date.now()],
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
  [1_000, 'one long text', LONG_TEXT],
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
