import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { task } from '../../../src/core/task.js';
import type { StatsView } from '../../../src/core/wire.js';
import { createTestDatabase } from '../../database.js';
import { type ApiUser, nodeForTest, TestNode } from '../../node-for-tests.js';
import { endedBatch, submitBatch } from '../batches/batch-user.js';
import { until } from '../store/test-shard.js';
import { step, submitWorkflow, workflowEnd } from './workflow-tester.js';

let node: TestNode;
beforeAll(async () => {
  node = await TestNode.start();
});
afterAll(() => node.stop());

function stats(user: ApiUser): Promise<StatsView> {
  return user.get('GET', '/v1/stats');
}

async function sample(user: ApiUser, series: string): Promise<number | undefined> {
  const text = await user.get<string>('GET', '/metrics');
  const line = text.split('\n').find((each) => each.startsWith(`${series} `));
  return line === undefined ? undefined : Number(line.slice(series.length + 1));
}

it('workflows are counted from their submission to their end, and again when they are retried', async () => {
  const user = node.newTenant();
  let fails = true;
  const note = task('note', { retry: { maxAttempts: 1 } }, async ({ name }: { name: string }) => {
    if (fails && name === 'bad') throw new Error('it fails');
  });
  await user.work([note]);
  const good = await submitWorkflow(user, { jobs: { a: step('a'), b: step('b', ['a']) } as never });
  const bad = await submitWorkflow(user, { jobs: { bad: step('bad'), c: step('c', ['bad']) } as never });
  const open = await submitWorkflow(user, { jobs: { w: { wait: { event: 'go' } } } as never });
  const gone = await submitWorkflow(user, { jobs: { w: { wait: { event: 'go' } } } as never });
  await Promise.all([workflowEnd(user, good), workflowEnd(user, bad)]);
  await user.get('POST', `/v1/workflows/${gone.id}/cancel`);
  await workflowEnd(user, gone);
  expect(await stats(user)).toMatchObject({
    ...{ workflowsSubmitted: 4, workflowsSucceeded: 1, workflowsFailed: 1, workflowsCancelled: 1 },
    ...{ workflowsRetried: 0, stepsSkipped: 2 },
  });
  expect(await sample(user, 'punctual_workflows_running')).toBe(1);
  fails = false;
  await user.get('POST', `/v1/workflows/${bad.id}/retry`, { body: {} });
  await workflowEnd(user, bad);
  await user.get('POST', `/v1/workflows/${open.id}/events`, { body: { event: 'go' } });
  await workflowEnd(user, open);
  expect(await stats(user)).toMatchObject({
    ...{ workflowsSubmitted: 4, workflowsSucceeded: 3, workflowsFailed: 1, workflowsRetried: 1 },
  });
  expect(await sample(user, 'punctual_workflows_running')).toBe(0);
  // A repeated submission with the same key is none.
  await submitWorkflow(user, { key: 'k', jobs: { a: step('a') } as never });
  await submitWorkflow(user, { key: 'k', jobs: { a: step('a') } as never });
  expect(await stats(user)).toMatchObject({ workflowsSubmitted: 5 });
});

it('the leader measures how long workflows take and how soon steps are released', async () => {
  const fresh = await nodeForTest();
  await fresh.work([task('note', {}, async () => undefined)]);
  const steps = { a: step('a'), b: step('b', ['a']), c: step('c', ['a']), d: step('d', ['b', 'c']) };
  await workflowEnd(fresh, await submitWorkflow(fresh, { jobs: steps as never }));
  await until(async () => (await sample(fresh, 'punctual_workflow_seconds_count')) === 1);
  expect(await sample(fresh, 'punctual_step_release_seconds_count')).toBe(3);
  expect(await sample(fresh, 'punctual_workflow_ends_pending')).toBe(0);
});

it('batches are counted by what became of them', async () => {
  const user = node.newTenant();
  const late = await submitBatch(user, 2, { startTimeout: '50ms' });
  const cancelled = await submitBatch(user, 1);
  await user.get('POST', `/v1/batches/${cancelled.id}/cancel`);
  await endedBatch(user, late.id);
  const work = task('work', { retry: { maxAttempts: 1 } }, async (input: { fails?: boolean } | null) => {
    if (input?.fails) throw new Error('it fails');
  });
  await user.work([work], { slots: 4 });
  await endedBatch(user, (await submitBatch(user, 2)).id);
  await endedBatch(user, (await submitBatch(user, [{ payload: { fails: true } }, {}])).id);
  expect(await stats(user)).toMatchObject({
    ...{ batchesSubmitted: 4, batchesStarted: 2, batchesSucceeded: 1, batchesFailed: 2 },
    ...{ batchesCancelled: 1, batchesTimedOut: 1 },
  });
});

it('the counts are those of the database, whichever node leads', async () => {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  const first = await TestNode.start({ database });
  await submitWorkflow(first, { jobs: { w: { wait: { event: 'go' } } } as never });
  await first.stop();
  const second = await TestNode.start({ database });
  onTestFinished(() => second.stop());
  expect(await sample(second, 'punctual_workflows_submitted_total')).toBe(1);
  expect(await sample(second, 'punctual_workflows_running')).toBe(1);
});
