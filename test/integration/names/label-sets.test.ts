import { expect, it } from 'vitest';
import { nodeForTest } from '../../node-for-tests.js';
import { withClient } from '../../postgres-client.js';

it('a tenant may require so many different sets of labels, and what it was refused costs no other tenant anything', async () => {
  const node = await nodeForTest({ settings: { maxLabelSets: 3 } });
  const greedy = node.newTenant();
  const modest = node.newTenant();
  for (const n of [1, 2, 3]) await greedy.submit({ task: 'work', requires: { n: `${n}` } });
  // What it has already, it may use again; tasks without labels are none.
  await greedy.submit({ task: 'work', requires: { n: '2' } });
  await greedy.submit({ task: 'other' });
  const together = await Promise.all([
    greedy.ask('POST', '/v1/jobs', { body: { task: 'work', requires: { n: '4' } } }),
    modest.ask('POST', '/v1/jobs', { body: { task: 'work', requires: { n: '4' } } }),
  ]);
  expect(together.map(({ status }) => status)).toEqual([429, 201]);
  expect(together[0]!.body).toMatchObject({
    code: 'QUOTA_EXCEEDED',
    detail: expect.stringContaining('3 different sets'),
  });
  const bulk = await greedy.ask('POST', '/v1/jobs/bulk', {
    body: { jobs: [{ task: 'work' }, { task: 'work', requires: { n: '5' } }] },
  });
  expect(bulk.status).toBe(429);
  const { data } = await greedy.get<{ data: unknown[] }>('GET', '/v1/jobs');
  expect(data).toHaveLength(5);
});

it('a set of labels that is too large is refused with a pointer', async () => {
  const node = await nodeForTest();
  const requires = Object.fromEntries(Array.from({ length: 32 }, (_, n) => [`label-${n}`, 'x'.repeat(200)]));
  const { status, body } = await node.ask('POST', '/v1/jobs', { body: { task: 'work', requires } });
  expect([status, body.errors]).toEqual([
    422,
    [{ pointer: '/requires', detail: 'must be at most 4096 bytes in all' }],
  ]);
});

it('many refused label sets in one moment hold up nobody who submits beside them', async () => {
  const node = await nodeForTest({ settings: { maxLabelSets: 1 } });
  const greedy = node.newTenant();
  const modest = node.newTenant();
  await greedy.submit({ task: 'work', requires: { n: '0' } });
  const asked = Array.from({ length: 200 }, (_, n) =>
    greedy.ask('POST', '/v1/jobs', { body: { task: 'work', requires: { n: `${n + 1}` } } }),
  );
  const calm = Array.from({ length: 20 }, () => modest.submit({ task: 'work' }));
  await Promise.all(calm);
  expect((await Promise.all(asked)).every(({ status }) => status === 429)).toBe(true);
});

it('a schedule that needs a label set beyond the quota is refused where somebody can be told', async () => {
  const node = await nodeForTest({ settings: { maxLabelSets: 1 } });
  await node.submit({ task: 'work', requires: { n: '1' } });
  const body = { name: 's', task: 'work', every: '1h' };
  const refused = await node.ask('POST', '/v1/schedules', { body: { ...body, requires: { n: '2' } } });
  expect([refused.status, refused.body.code]).toEqual([429, 'QUOTA_EXCEEDED']);
  await node.get('POST', '/v1/schedules', { body: { ...body, requires: { n: '1' } } });
  const changed = await node.ask('PATCH', '/v1/schedules/s', { body: { requires: { n: '2' } } });
  expect([changed.status, changed.body.code]).toEqual([429, 'QUOTA_EXCEEDED']);
});

it('of label sets that come together, as many are taken as fit, over HTTP and in a transaction', async () => {
  const node = await nodeForTest({ settings: { maxLabelSets: 3 } });
  const single = node.newTenant();
  const statuses = await Promise.all(
    [1, 2, 3, 4, 5].map(
      async (n) =>
        (await single.ask('POST', '/v1/jobs', { body: { task: 'work', requires: { n: `${n}` } } })).status,
    ),
  );
  expect(statuses.filter((status) => status === 201)).toHaveLength(3);
  expect(statuses.filter((status) => status === 429)).toHaveLength(2);
  const tenant = node.newTenant();
  const ids = await withClient(node.database.url, async (client) => {
    const { rows } = await client.query(
      `SELECT punctual.submit_job($1, json_build_object('task', 'work', 'requires', json_build_object('n', n::text))) AS id
       FROM generate_series(1, 5) n`,
      [tenant.tenant],
    );
    return rows.map((row) => row.id as string);
  });
  await expect
    .poll(async () => {
      const jobs = await Promise.all(ids.map((id) => node.job(id, tenant.tenant)));
      return jobs.filter((job) => job.state === 'failed' && job.error?.code === 'QUOTA_EXCEEDED').length;
    })
    .toBe(2);
  const jobs = await Promise.all(ids.map((id) => node.job(id, tenant.tenant)));
  expect(jobs.filter((job) => job.state === 'pending')).toHaveLength(3);
});
