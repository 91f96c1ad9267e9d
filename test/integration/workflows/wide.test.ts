import { expect, it } from 'vitest';
import { nodeForTest, type TestNode } from '../../node-for-tests.js';
import { notingTask, step, submitWorkflow, workflowEnd } from './workflow-tester.js';

const WIDTH = 5_000;

/** One step, then many, of which one fails, then one. */
function wide(): Record<string, object> {
  const middle = Array.from({ length: WIDTH }, (_, i) => `m${i}`);
  const jobs: Record<string, object> = { first: step('first') };
  for (const [i, name] of middle.entries()) {
    jobs[name] = step(name, ['first'], { payload: { name, fails: i === WIDTH / 2 } });
  }
  jobs.last = step('last', middle, { runIf: 'all-finished' });
  return jobs;
}

async function run(node: TestNode, policy: object) {
  const ran: string[] = [];
  await node.work([notingTask(ran)], { slots: 500 });
  const before = performance.now();
  const submitted = await submitWorkflow(node, { jobs: wide() as never, ...policy });
  const submittedMs = performance.now() - before;
  const ended = await workflowEnd(node, submitted);
  const states = Object.values(ended.jobs).map(({ state }) => state);
  const count = (state: string) => states.filter((each) => each === state).length;
  return { ran, ended, count, submittedMs, tookMs: performance.now() - before };
}

it('a wide workflow with `continue` runs every step once, whatever one of them comes to', async () => {
  const { ran, ended, count, submittedMs, tookMs } = await run(await nodeForTest(), {
    onFailure: 'continue',
  });
  console.log(`submitted in ${Math.round(submittedMs)} ms, ended after ${Math.round(tookMs)} ms`);
  expect(ended.state).toBe('failed');
  expect([count('succeeded'), count('failed')]).toEqual([WIDTH + 1, 1]);
  expect(new Set(ran).size).toBe(WIDTH + 2);
  expect(ran).toHaveLength(WIDTH + 2);
  expect(ran.at(-1)).toBe('last');
}, 60_000);

it('a wide workflow with `stop` skips what has not started, and every step ends once', async () => {
  const { ran, ended, count } = await run(await nodeForTest(), { onFailure: 'stop' });
  expect(ended).toMatchObject({
    state: 'failed',
    stopping: 'failure',
    progress: { ended: WIDTH + 2, failed: 1 },
  });
  expect(count('succeeded') + count('failed') + count('skipped')).toBe(WIDTH + 2);
  expect(ended.jobs.last!.state).toBe('skipped');
  expect(new Set(ran).size).toBe(ran.length);
}, 60_000);
