import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import type { AuditView } from '../../src/core/audit.js';
import type { Page } from '../../src/core/wire.js';
import { TestNode } from '../node-for-tests.js';

/** Each kind of action leaves exactly one entry that says who did what to what. */
let node: TestNode;
let keyId: string;

beforeAll(async () => {
  node = await TestNode.start();
  const { data } = await node.get<Page<{ id: string; name: string }>>('GET', '/v1/keys');
  keyId = data.find(({ name }) => name === 'tester')!.id;
});
afterAll(() => node.stop());

/** The entries about a subject, oldest first. */
async function entriesOf(subject: string, tenant?: string): Promise<AuditView[]> {
  const path = `/v1/audit?subject=${encodeURIComponent(subject)}`;
  const { data } = await node.get<Page<AuditView>>('GET', path, tenant === undefined ? {} : { tenant });
  return [...data].reverse();
}

it('pausing a queue leaves an entry with who, from where, when, what, before and after', async () => {
  const tenant = node.newTenant();
  await tenant.submit({ task: 'work', queue: 'mail' });
  const { headers } = await tenant.ask('POST', '/v1/queues/mail/pause');
  expect(await entriesOf('mail', tenant.tenant)).toEqual([
    expect.objectContaining({
      ...{ tenant: tenant.tenant, keyId, keyName: 'tester', address: '127.0.0.1' },
      ...{ requestId: headers.get('request-id'), action: 'queue.pause', kind: 'queue', subject: 'mail' },
      outcome: 'done',
      before: { paused: false, weight: 1, concurrency: null, keyConcurrency: 1, rate: null },
      after: { paused: true, weight: 1, concurrency: null, keyConcurrency: 1, rate: null },
    }),
  ]);
  const refused = await tenant.ask('POST', '/v1/queues/mail/pause');
  expect(refused.status).toBe(409);
  expect(await entriesOf('mail', tenant.tenant)).toHaveLength(1);
  await vi.waitFor(
    async () => {
      const [entry] = await entriesOf('mail', tenant.tenant);
      expect(entry).toMatchObject({ sequence: expect.any(Number), hash: expect.stringMatching(/^[0-9a-f]{64}$/) });
    },
    { timeout: 10_000 },
  );
});
