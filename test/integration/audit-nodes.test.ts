import { expect, it, onTestFinished } from 'vitest';
import type { AuditView } from '../../src/core/audit.js';
import type { Page, QueueView } from '../../src/core/wire.js';
import { createTestDatabase } from '../database.js';
import { nodeForTest, TestNode } from '../node-for-tests.js';
import { PunctualProcess } from '../punctual-process.js';
import { temporaryFolder } from '../temporary-folder.js';

async function entriesOf(node: TestNode, subject: string): Promise<AuditView[]> {
  const { data } = await node.get<Page<AuditView>>('GET', `/v1/audit?subject=${subject}&limit=1000`);
  return [...data].reverse();
}

it('an action through a follower names the client as the follower saw it, and one entry comes of it', async () => {
  const leader = await nodeForTest();
  const follower = await nodeForTest({
    database: leader.database,
    settings: { trustedProxies: '127.0.0.1' },
  });
  expect(leader.node.leads()).toBe(true);
  await leader.submit({ task: 'work', queue: 'mail' });
  const pause = (node: TestNode, verb: string, headers: Record<string, string>) =>
    node.ask('POST', `/v1/queues/mail/${verb}`, { headers });
  const { headers } = await pause(follower, 'pause', { 'x-forwarded-for': '198.51.100.7' });
  // The leader trusts no proxy, and a client cannot sign the mark of a node.
  await pause(leader, 'resume', { 'x-forwarded-for': '198.51.100.8', 'punctual-forwarded': 'made.up.mark' });
  expect(await entriesOf(follower, 'mail')).toMatchObject([
    {
      ...{ action: 'queue.pause', keyName: 'tester', keyId: expect.any(String), address: '198.51.100.7' },
      requestId: headers.get('request-id'),
    },
    { action: 'queue.resume', address: '127.0.0.1' },
  ]);
});

it('a key that is changed through a follower is recorded, and the leader chains it', async () => {
  const leader = await nodeForTest();
  const follower = await nodeForTest({ database: leader.database });
  const { id } = await follower.get<{ id: string }>('POST', '/v1/keys', {
    body: { name: 'shop', scopes: ['read'] },
  });
  await follower.get('DELETE', `/v1/keys/${id}`);
  await expect
    .poll(() => entriesOf(leader, id), { timeout: 20_000 })
    .toMatchObject([
      { action: 'key.create', sequence: expect.any(Number) },
      { action: 'key.revoke', sequence: expect.any(Number) },
    ]);
});

it('whenever a leader is killed, every effect has its entry and every entry its effect', {
  timeout: 120_000,
}, async () => {
  const database = await createTestDatabase();
  const folder = await temporaryFolder();
  onTestFinished(() => database.drop());
  for (let round = 0; round < 2; round++) {
    const environment = { PUNCTUAL_DATABASE_URL: database.url };
    const leader = new PunctualProcess(['server', '--port', '0'], { folder, environment });
    onTestFinished(async () => void (await leader.kill('SIGKILL')));
    await leader.prints('stdout', /^ready (\S+)\n/m);
    const node = await TestNode.start({ database });
    try {
      await node.submit({ task: 'work', queue: 'mail' });
      const answers: number[] = [];
      let killed: Promise<unknown> | undefined;
      for (let n = 0; n < 60; n++) {
        // A request whose answer is lost may have been carried out: its client does not know.
        const { status } = await node.ask('POST', `/v1/queues/mail/${n % 2 === 0 ? 'pause' : 'resume'}`);
        answers.push(status);
        // Not awaited: the next requests are under way when the leader dies.
        if (n === 30) killed = leader.kill('SIGKILL');
      }
      await killed;
      expect(answers.filter((status) => status === 200).length).toBeGreaterThan(30);
      const { paused } = await node.get<QueueView>('GET', '/v1/queues/mail');
      const entries = await entriesOf(node, 'mail');
      // Each effect turns the state round, so entries without effects or effects without entries break the alternation.
      let state = false;
      for (const { before, after, outcome } of entries) {
        expect({ outcome, before: before?.paused, after: after?.paused }).toEqual({
          ...{ outcome: 'done', before: state, after: !state },
        });
        state = !state;
      }
      expect(paused).toBe(state);
      expect(entries.length).toBeGreaterThanOrEqual(answers.filter((status) => status === 200).length);
    } finally {
      await node.stop();
    }
  }
});
