import { expect, it } from 'vitest';
import { task } from '../../../src/core/task.js';
import type { Page, WorkerView } from '../../../src/core/wire.js';
import type { Workflow } from '../../../src/core/workflow.js';
import { ScheduleTester } from '../schedules/schedule-tester.js';
import { until } from '../store/test-shard.js';
import { statesOf, submitWorkflow, workflowEnd } from './workflow-tester.js';

const DAY = 86_400_000;

/** Workflows that wait for days, while everything else is stopped and started again. */

const ship = task('ship', {}, async (input: unknown) => input);

const ORDER = {
  checked: { task: 'ship', payload: 'checked' },
  paid: { wait: { event: 'paid', timeout: '3d' }, after: ['checked'] },
  ship: { task: 'ship', after: ['paid'], payload: { $from: 'paid.result.amount' } },
} as const;

it('a workflow that waits two days for an event survives restarts of everything, and takes no worker', async () => {
  const tester = await ScheduleTester.start();
  const worker = await tester.node.work([ship]);
  const { id, jobs } = await submitWorkflow(tester.node, { jobs: ORDER });
  const read = () => tester.node.get<Workflow>('GET', `/v1/workflows/${id}`);
  await until(async () => (await read()).jobs.checked!.state === 'succeeded');
  const { data } = await tester.node.get<Page<WorkerView>>('GET', '/v1/workers');
  expect(data).toMatchObject([{ running: 0 }]);
  await worker.stop();

  await tester.stopFor(DAY);
  await tester.stopFor(DAY);
  expect(statesOf(await read())).toEqual({ checked: 'succeeded', paid: 'blocked', ship: 'blocked' });

  await tester.node.work([ship]);
  const body = { event: 'paid', payload: { amount: 42 } };
  await tester.node.get('POST', `/v1/workflows/${id}/events`, { body });
  expect((await workflowEnd(tester.node, { id })).state).toBe('succeeded');
  const { result, lateBy } = await tester.node.job(jobs.ship!.id);
  // It is due from its release on, however long it was blocked.
  expect({ result, isLate: lateBy! > 60_000 }).toEqual({ result: 42, isLate: false });
});

it('a wait that ended while nothing ran ends when a leader comes back', async () => {
  const tester = await ScheduleTester.start();
  const { id } = await submitWorkflow(tester.node, {
    jobs: { late: { wait: '2d' }, never: { wait: { event: 'never', timeout: '3d' } } },
  });
  await tester.stopFor(4 * DAY);
  const ended = await workflowEnd(tester.node, { id });
  expect(ended.state).toBe('failed');
  expect(statesOf(ended)).toEqual({ late: 'succeeded', never: 'failed' });
});
