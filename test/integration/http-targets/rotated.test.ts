import { expect, it } from 'vitest';
import type { NewSigningSecret } from '../../../src/core/secret.js';
import { makeMasterKey } from '../../../src/core/secret-box.js';
import { verifyWebhook, WebhookError } from '../../../src/index.js';
import { HttpReceiver, type ReceivedCall } from '../../http-receiver.js';
import { nodeForTest } from '../../node-for-tests.js';

const WORKER = { targets: ['http'], allowAddresses: ['127.0.0.1'], queues: ['*'] } as const;

function isGenuine({ headers, body }: ReceivedCall, secret: string): boolean {
  try {
    verifyWebhook(headers, body, secret);
    return true;
  } catch (error) {
    if (error instanceof WebhookError) return false;
    throw error;
  }
}

it('a schedule calls a URL while its signing secret is rotated, and not one signature is refused', async () => {
  const test = await nodeForTest({ settings: { secretKey: makeMasterKey() } });
  const tenant = test.newTenant();
  const create = () => tenant.get<NewSigningSecret>('POST', '/v1/signing-secrets');
  const old = await create();
  // The receiver knows one secret at a time, as one does that can be told of another by a restart only.
  let known = old.secret;
  const receiver = await HttpReceiver.start((call) => (isGenuine(call, known) ? 200 : 401));
  const later = (count: number) => receiver.calls.times(receiver.calls.all.length + count);
  const first = await tenant.work([], WORKER);
  const target = { type: 'http', url: `${receiver.url}/tick` };
  await tenant.get('POST', '/v1/schedules', { body: { name: 'tick', every: '1s', target } });
  await later(1);

  const next = await create();
  // A worker that has asked for the secrets before, and one that asks now.
  await later(1);
  await tenant.work([], WORKER);
  await first.stop();
  await expect.poll(() => isGenuine(receiver.calls.all.at(-1)!, next.secret), { timeout: 10_000 }).toBe(true);
  known = next.secret;
  await later(1);
  expect((await tenant.ask('DELETE', `/v1/signing-secrets/${old.id}`)).status).toBe(204);
  await later(1);

  const { data } = await tenant.get<{ data: { state: string }[] }>('GET', '/v1/jobs?state=failed');
  expect(data).toEqual([]);
  expect(receiver.calls.all.length).toBeGreaterThanOrEqual(5);
  // Both kinds of calls were among them: signed with the old one alone, and with both.
  expect(receiver.calls.all.map((call) => isGenuine(call, next.secret))).toEqual(
    expect.arrayContaining([false, true]),
  );
}, 60_000);
