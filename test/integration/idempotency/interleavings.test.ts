import fc from 'fast-check';
import { beforeAll, expect, it } from 'vitest';
import type { Job } from '../../../src/core/job.js';
import { type Answer, TestNode } from '../../node-for-tests.js';
import { withClient } from '../../postgres-client.js';

let nodes: readonly [TestNode, TestNode];
beforeAll(async () => {
  const first = await TestNode.start();
  const second = await TestNode.start({ database: first.database });
  nodes = [first, second];
  return async () => {
    await second.stop();
    await first.stop();
  };
});

/** One request: at which node, with which key and body, and whether it waits for all requests before it. */
const request = fc.record({
  node: fc.constantFrom(0, 1),
  key: fc.constantFrom('a', 'b'),
  body: fc.constantFrom('x', 'y'),
  waits: fc.boolean(),
});

it('however requests of two keys and two bodies meet on two nodes, each key makes one job of one body', async () => {
  let round = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(request, { minLength: 2, maxLength: 16 }), async (requests) => {
      round += 1;
      const tenant = `round-${round}`;
      const answers: { key: string; body: string; answer: Promise<Answer<Job>> }[] = [];
      for (const { node, key, body, waits } of requests) {
        if (waits) await Promise.all(answers.map(({ answer }) => answer));
        const headers = { 'idempotency-key': key };
        const ask = { tenant, headers, body: { task: 'work', payload: `${key}${body}`, hold: true } };
        answers.push({ key, body, answer: nodes[node]!.ask<Job>('POST', '/v1/jobs', ask) });
      }
      const { rows } = await Promise.all(answers.map(({ answer }) => answer)).then(() =>
        withClient(nodes[0].database.url, (client) =>
          client.query<{ id: string; payload: string }>(
            'SELECT id, payload FROM punctual.later WHERE tenant = $1',
            [tenant],
          ),
        ),
      );
      expect(rows).toHaveLength(new Set(requests.map(({ key }) => key)).size);
      for (const { key, body, answer } of answers) {
        const { status, body: told, headers } = await answer;
        const made = rows.find(({ payload }) => payload.startsWith(key))!;
        if (status === 201) {
          expect([told.id, told.payload]).toEqual([made.id, `${key}${body}`]);
        } else {
          const { code } = told as unknown as { code: string };
          const isOther = made.payload !== `${key}${body}`;
          expect(
            isOther ? ['IDEMPOTENCY_KEY_REUSED', 'IDEMPOTENCY_IN_FLIGHT'] : ['IDEMPOTENCY_IN_FLIGHT'],
          ).toContain(code);
          if (code === 'IDEMPOTENCY_IN_FLIGHT') expect(headers.get('retry-after')).toBe('1');
        }
      }
    }),
    { numRuns: 25 },
  );
}, 60_000);
