import { expect, it } from 'vitest';
import { bucketOfOrigin, ORIGIN_BUCKETS } from '../../../src/core/origin.js';
import { withClient } from '../../postgres-client.js';
import { callOf, OriginTester } from './origin-tester.js';

const host = (i: number) => `https://host-${i}.example.com`;

it('a tenant calls 2,000 origins, of which those beyond its quota share buckets, and none is refused', async () => {
  const tester = await OriginTester.start();
  const urls = Array.from({ length: 2_000 }, (_, i) => `${host(i)}/hook`);
  await tester.callMany(urls);
  const calls = await tester.claim(2_000);
  expect(new Set(calls.map(({ target }) => target.type === 'http' && target.url)).size).toBe(2_000);
  const names = await withClient(tester.node.database.url, async (client) => {
    const { rows } = await client.query<{ handler: string }>(
      `SELECT handler FROM punctual.needs WHERE target = 'http'`,
    );
    return rows.map(({ handler }) => handler);
  });
  const buckets = names.filter((name) => name.startsWith('bucket:'));
  expect(names.length - buckets.length).toBe(1_000);
  expect(buckets.length).toBe(ORIGIN_BUCKETS);
});

it('labels make buckets of their own, and what they refuse is refused to those that ask for it alone', async () => {
  const tester = await OriginTester.start({ maxOrigins: 0, maxLabelSets: 1 });
  const { node } = tester;
  await node.submit(callOf(host(0), { requires: { zone: 'eu' } }));
  const body = (name: string) => ({ body: callOf(host(0), { requires: { zone: name } }) });
  const [same, other, plain] = await Promise.all([
    node.ask('POST', '/v1/jobs', body('eu')),
    node.ask('POST', '/v1/jobs', body('us')),
    node.ask('POST', '/v1/jobs', { body: callOf(host(1)) }),
  ]);
  expect([same.status, plain.status]).toEqual([201, 201]);
  expect(other).toMatchObject({ status: 429, body: { code: 'QUOTA_EXCEEDED' } });
  const [call] = await tester.claim(1);
  expect(call!.target).toMatchObject({ url: host(1) });
});

it('a bucket is paused for a short time only, because it pauses all of its origins', async () => {
  const tester = await OriginTester.start({ maxOrigins: 1 });
  await tester.call(host(0));
  await tester.call(host(1));
  const calls = await tester.claim(2);
  const shared = calls.find(({ target }) => target.type === 'http' && target.url === host(1))!;
  await tester.fail(shared, { pauseMs: 3_600_000 });
  const bucket = bucketOfOrigin(host(1));
  expect(await tester.origin(bucket)).toMatchObject({ state: 'paused' });
  expect(await tester.why(shared.jobId)).toMatchObject({ gate: 'origin', figures: { origin: bucket } });
  await tester.node.submit(callOf(host(0)));
  await tester.claim(1);
  tester.clock.advance(30_000);
  await tester.claim(1);
});
