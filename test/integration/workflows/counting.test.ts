import { expect, it } from 'vitest';
import {
  applyPortion,
  type PendingEnd,
  type Portion,
  readPortion,
} from '../../../src/store/workflow-portions.js';
import { planPortion, released } from '../../../src/workflow/plan-portion.js';
import { createTestDatabase } from '../../database.js';
import { nodeForTest } from '../../node-for-tests.js';
import { withClient } from '../../postgres-client.js';
import { TestShard, until } from '../store/test-shard.js';
import { notingTask, statesOf, step, submitWorkflow, workflowEnd } from './workflow-tester.js';

it('an end that was counted is not counted again by another pass', async () => {
  const shard = await TestShard.forTest();
  const term = await shard.lead();
  const { rows } = await shard.pool.query(`
    WITH w AS (
      INSERT INTO punctual.workflows (id, tenant, name, steps, steps_left, on_failure, running, created_at, created_by)
      VALUES (gen_random_uuid(), 'acme', 'w', 3, 3, 'continue', 'finish', 0, 'test') RETURNING id
    ), s AS (
      INSERT INTO punctual.steps (id, workflow, tenant, name, place, run_if, parents, parents_left, released)
      SELECT gen_random_uuid(), id, 'acme', 's' || n, n, 'all-succeeded', CASE n WHEN 3 THEN 2 ELSE 0 END,
        CASE n WHEN 3 THEN 2 ELSE 0 END, n < 3 FROM w, generate_series(1, 3) n RETURNING id, workflow, place
    ), e AS (
      INSERT INTO punctual.edges SELECT a.id, b.id FROM s a, s b WHERE a.place < 3 AND b.place = 3
    ), o AS (
      INSERT INTO punctual.outbox SELECT id, workflow, 'succeeded', 0 FROM s WHERE place = 1
    ) SELECT id, workflow, place FROM s ORDER BY place`);
  const [a, , c] = rows as { id: string; workflow: string }[];
  const ends: PendingEnd[] = [
    { job: a!.id, workflow: a!.workflow, state: 'succeeded', finishedAt: 0, place: null },
  ];
  // Two passes read the same end before either writes.
  const plans = await Promise.all(
    [1, 2].map(async (): Promise<Portion> => {
      const { ready, taken: _, ...plan } = planPortion(ends, await readPortion(shard.hot, ends, 100), 100);
      return { ...plan, released: ready.map((each) => released(each, 0)) };
    }),
  );
  const applied = [];
  for (const plan of plans) applied.push(await applyPortion(shard.hot, term, plan, Date.now(), 0));
  expect(applied.map(({ isOwn }) => isOwn)).toEqual([true, false]);
  const steps = await shard.pool.query('SELECT parents_left, ok FROM punctual.steps WHERE id = $1', [c!.id]);
  expect(steps.rows).toEqual([{ parents_left: 1, ok: 1 }]);
  const workflows = await shard.pool.query('SELECT steps_left FROM punctual.workflows');
  expect(workflows.rows).toEqual([{ steps_left: 2 }]);
});

it('an end whose leader died before it was counted is counted by the next leader', async () => {
  const database = await createTestDatabase();
  const first = await nodeForTest({ database });
  const submitted = await submitWorkflow(first, { jobs: { a: step('a'), b: step('b', ['a']) } });
  await first.node.stop();
  // The end of `a` as its statement leaves it, with nobody to count it.
  const run = (text: string, values: unknown[]) =>
    withClient(database.url, (client) => client.query(text, values));
  await run(
    `WITH gone AS (DELETE FROM punctual.jobs WHERE id = $1 RETURNING *)
     INSERT INTO punctual.job_history (id, tenant, queue, needs, lane, rank, run_at, attempts, failures, losses, max_attempts,
       max_losses, at_most_once, timeout_ms, created_at, created_by, task, payload, state, finished_at, workflow)
     SELECT id, tenant, queue, needs, lane, rank, run_at, 1, 0, 0, max_attempts, max_losses, at_most_once, timeout_ms,
       created_at, created_by, task, payload, 'succeeded', $2, workflow FROM gone`,
    [submitted.jobs.a!.id, Date.now()],
  );
  await run(`INSERT INTO punctual.outbox VALUES ($1, $2, 'succeeded', $3)`, [
    ...[submitted.jobs.a!.id, submitted.id, Date.now()],
  ]);
  const second = await nodeForTest({ database });
  const ran: string[] = [];
  await second.work([notingTask(ran)]);
  const ended = await workflowEnd(second, submitted);
  expect(statesOf(ended)).toEqual({ a: 'succeeded', b: 'succeeded' });
  expect(ran).toEqual(['b']);
});

it('hold, release and changes of a blocked job do not let it start; its own hold outlasts its parents', async () => {
  const node = await nodeForTest();
  const jobs = { a: step('a', [], { hold: true }), b: step('b', ['a']) };
  const submitted = await submitWorkflow(node, { jobs });
  const b = submitted.jobs.b!.id;
  const ran: string[] = [];
  await node.work([notingTask(ran)]);
  await node.get('POST', `/v1/jobs/${b}/hold`);
  await node.get('POST', `/v1/jobs/${b}/release`);
  await node.get('PATCH', `/v1/jobs/${b}`, { body: { priority: 9 } });
  await node.get('POST', '/v1/jobs/hold', { body: { filter: { workflow: submitted.id, state: 'blocked' } } });
  await node.get('POST', '/v1/jobs/release', {
    body: { filter: { workflow: submitted.id, state: 'blocked' } },
  });
  expect((await node.job(b)).state).toBe('blocked');
  await node.get('POST', `/v1/jobs/${b}/hold`);
  await node.get('POST', `/v1/jobs/${submitted.jobs.a!.id}/release`);
  await node.ended(submitted.jobs.a!.id);
  await until(async () => (await node.job(b)).state === 'pending');
  expect(ran).toEqual(['a']);
  await node.get('POST', `/v1/jobs/${b}/release`);
  expect((await workflowEnd(node, submitted)).state).toBe('succeeded');
});

it('a blocked job that is cancelled counts as failed, and a parent that ends afterwards changes nothing', async () => {
  const node = await nodeForTest();
  const jobs = {
    a: step('a', [], { hold: true }),
    b: step('b', ['a']),
    c: step('c', ['b'], { runIf: 'any-failed' }),
  };
  const submitted = await submitWorkflow(node, { jobs });
  const ran: string[] = [];
  await node.work([notingTask(ran)]);
  await node.get('POST', `/v1/jobs/${submitted.jobs.b!.id}/cancel`);
  await node.ended(submitted.jobs.c!.id);
  await node.get('POST', `/v1/jobs/${submitted.jobs.a!.id}/release`);
  const ended = await workflowEnd(node, submitted);
  expect(statesOf(ended)).toEqual({ a: 'succeeded', b: 'cancelled', c: 'succeeded' });
  expect(ran).toEqual(['c', 'a']);
});
