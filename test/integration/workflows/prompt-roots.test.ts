import { afterAll, beforeAll, expect, it } from 'vitest';
import type { WorkflowSteps } from '../../../src/core/workflow.js';
import { createTestDatabase, type TestDatabase } from '../../database.js';
import { type ApiUser, TestNode } from '../../node-for-tests.js';
import { until } from '../store/test-shard.js';
import { submitWorkflow, workflowEnd } from './workflow-tester.js';

/**
 * The look-back of the leader finds within a second what nobody told it of. Each of these workflows is submitted when the one
 * before has ended, so without a hint each of them would take about a second.
 */
const TIMES = 5;

let database: TestDatabase;
let leader: TestNode;
let other: TestNode;
beforeAll(async () => {
  database = await createTestDatabase();
  leader = await TestNode.start({ database });
  await until(() => leader.node.leads());
  other = await TestNode.start({ database });
  await other.get('GET', '/v1/cluster');
});
afterAll(async () => {
  await other.stop();
  await leader.stop();
  await database.drop();
});

/** How long such workflows took; the middle one. */
async function typicalMs(user: ApiUser, jobs: object): Promise<number> {
  const took: number[] = [];
  for (let i = 0; i < TIMES; i += 1) {
    const { createdAt, endedAt } = await workflowEnd(
      user,
      await submitWorkflow(user, { jobs: jobs as WorkflowSteps }),
    );
    took.push(Date.parse(endedAt!) - Date.parse(createdAt));
  }
  return took.sort((a, b) => a - b)[Math.floor(TIMES / 2)]!;
}

it('a wait that nothing is before ends when its time is over, whichever node it was submitted to', async () => {
  for (const user of [leader, other])
    expect(await typicalMs(user, { pause: { wait: '1ms' } })).toBeLessThan(500);
});

it('a workflow inside another that nothing is before starts at once, whichever node it was submitted to', async () => {
  const inner = { inner: { workflow: { jobs: { pause: { wait: '1ms' } } } } };
  for (const user of [leader, other]) expect(await typicalMs(user, inner)).toBeLessThan(500);
});
