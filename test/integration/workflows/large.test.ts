import { expect, it } from 'vitest';
import { task } from '../../../src/core/task.js';
import type { Workflow } from '../../../src/core/workflow.js';
import { readWorkflow } from '../../../src/store/read-workflows.js';
import { nodeForTest } from '../../node-for-tests.js';
import { until } from '../store/test-shard.js';
import { notingTask, statesOf, step, submitWorkflow, workflowEnd } from './workflow-tester.js';

it('a retry in the middle of the sweep of a workflow that stops lets every step run, each once', async () => {
  const node = await nodeForTest();
  const width = 4_000;
  const ran: string[] = [];
  let fails = true;
  const note = task('note', { retry: { maxAttempts: 1 } }, async ({ name }: { name: string }) => {
    if (name === 'bad' && fails) throw new Error('bad');
    ran.push(name);
  });
  const jobs: Record<string, object> = { bad: step('bad'), gate: step('gate', [], { hold: true }) };
  for (let i = 0; i < width; i++) jobs[`m${i}`] = step(`m${i}`, ['gate']);
  jobs.last = step('last', ['m0', `m${width - 1}`, 'bad']);
  const submitted = await submitWorkflow(node, { jobs: jobs as never, onFailure: 'stop' });
  const path = `/v1/workflows/${submitted.id}`;
  const { workflows } = await node.node.context.shards[0]!.leader();
  await node.work([note], { slots: 100 });
  // The sweep takes its pages one by one, alone: in between somebody else has his turn.
  const { hot } = node.node.context.shards[0]!;
  let left = 0;
  await until(async () => {
    left = (await readWorkflow(hot, submitted.tenant, submitted.id))!.steps_left;
    return left < width + 2;
  });
  fails = false;
  await workflows.retry(submitted.tenant, submitted.id, undefined);
  expect(left).toBeGreaterThan(0);
  const { run, stopping } = await node.get<Workflow>('GET', path);
  expect([run, stopping]).toEqual([2, null]);
  const gate = await node.job(submitted.jobs.gate!.id);
  if (gate.hold) await node.get('POST', `/v1/jobs/${gate.id}/release`);
  const ended = await workflowEnd(node, submitted);
  expect(ended).toMatchObject({
    state: 'succeeded',
    progress: { steps: width + 3, ended: width + 3, failed: 0 },
  });
  expect(new Set(Object.values(statesOf(ended)))).toEqual(new Set(['succeeded']));
  expect(ran).toHaveLength(width + 3);
  expect(new Set(ran).size).toBe(width + 3);
}, 60_000);

it('ends that memory has no room for are read from the table, and each is counted once', async () => {
  const node = await nodeForTest();
  const { workflows } = await node.node.context.shards[0]!.leader();
  workflows.executor.maxPending = 3;
  const width = 1_500;
  const jobs: Record<string, object> = { a: step('a'), b: step('b') };
  // Ends with more children than one statement takes are passed on in parts, which may find no room either.
  const middle = Array.from({ length: width }, (_, i) => `m${i}`);
  for (const name of middle) jobs[name] = step(name, ['a', 'b']);
  jobs.last = step('last', middle);
  const ran: string[] = [];
  await node.work([notingTask(ran)], { slots: 200 });
  const submitted = await submitWorkflow(node, { jobs: jobs as never });
  const ended = await workflowEnd(node, submitted);
  expect(ended).toMatchObject({ state: 'succeeded', progress: { ended: width + 3, failed: 0 } });
  expect(new Set(ran).size).toBe(width + 3);
  expect(ran).toHaveLength(width + 3);
  expect(ran.at(-1)).toBe('last');
}, 60_000);
