import { afterAll, beforeAll, expect, it } from 'vitest';
import type { KeyScope } from '../../../src/core/access.js';
import type { ClaimAnswer } from '../../../src/core/wire.js';
import type { Workflow } from '../../../src/core/workflow.js';
import { type Answer, ApiUser, type Ask, TestNode, type TestTenant } from '../../node-for-tests.js';
import { ProtocolWorker } from '../../protocol-worker.js';

/** What keys that are restricted to queues and tasks reach of workflows. */

let node: TestNode;
beforeAll(async () => {
  node = await TestNode.start();
});
afterAll(() => node.stop());

const MAIL = { queues: ['mail'], tasks: ['send'] };
const send = { task: 'send', queue: 'mail' };
const payout = { task: 'payout', queue: 'finance' };

/** Somebody who talks to the node with a key of a tenant. */
class KeyUser extends ApiUser {
  constructor(private readonly key: string) {
    super();
  }

  override ask<T = Record<string, unknown>>(method: string, path: string, ask: Ask = {}): Promise<Answer<T>> {
    return node.ask(method, path, { ...ask, key: this.key });
  }
}

const ALL: readonly KeyScope[] = ['read', 'submit', 'work', 'admin'];

async function keyOf({ tenant }: TestTenant, scopes: readonly KeyScope[], limits: object): Promise<string> {
  const body = { name: 'part', scopes, tenant, ...limits };
  return (await node.get<{ key: string }>('POST', '/v1/keys', { body })).key;
}

/** A tenant, and somebody with a key of it that is restricted to the queue mail and the task send. */
async function restricted(scopes = ALL) {
  const tenant = node.newTenant();
  const key = await keyOf(tenant, scopes, MAIL);
  const ask = <T = Record<string, unknown>>(method: string, path: string, body?: unknown) =>
    node.ask<T>(method, path, { key, ...(body !== undefined && { body }) });
  return { tenant, ask };
}

const submit = (tenant: TestTenant, jobs: object) =>
  tenant.get<Workflow>('POST', '/v1/workflows', { body: { name: 'test', jobs } });

it('the tokens of a restricted key add nothing elsewhere, whichever key has opened the session', async () => {
  const { tenant, ask } = await restricted(['work']);
  const { id } = await submit(tenant, { a: send });
  const worker = await ProtocolWorker.register(new KeyUser(await keyOf(tenant, ['work'], {})), {
    queues: ['mail'],
    tasks: ['send'],
  });
  // It is not acknowledged, and so is offered again.
  for (const name of ['b', 'c']) {
    const { body } = await ask<ClaimAnswer>('POST', `/v1/workers/${worker.id}/claim`, {
      max: 1,
      wait: '20s',
    });
    const add = (jobs: object) =>
      node.ask('POST', `/v1/workflows/${id}/jobs`, { key: body.jobs[0]!.token!, body: { jobs } });
    expect(await add({ evil: payout })).toMatchObject({ status: 403, body: { code: 'FORBIDDEN' } });
    expect((await add({ [name]: { ...send, hold: true } })).status).toBe(201);
  }
});
