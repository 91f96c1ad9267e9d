import { expect, it } from 'vitest';
import { cancelWorkflow, markSwept, readUnswept } from '../../../src/store/stop-workflow.js';
import { TestShard } from '../store/test-shard.js';

/** A workflow that stops because a step failed, as the sweeper reads it. */
async function stoppingWorkflow() {
  const shard = await TestShard.forTest();
  const term = await shard.lead();
  await shard.pool.query(`
    INSERT INTO punctual.workflows
      (id, tenant, name, steps, steps_left, on_failure, running, stopping, swept, created_at, created_by)
    VALUES (gen_random_uuid(), 'acme', 'w', 2, 1, 'stop', 'finish', 'failure', false, 0, 'test')`);
  const [found] = await readUnswept(shard.hot, 10);
  return { shard, term, found: found! };
}

it('a workflow that was swept is not swept again', async () => {
  const { shard, term, found } = await stoppingWorkflow();
  expect(await markSwept(shard.hot, term, found)).toBe(true);
  expect(await readUnswept(shard.hot, 10)).toEqual([]);
});

it('a cancel during the sweep after a failure is swept, too', async () => {
  const { shard, term, found } = await stoppingWorkflow();
  await cancelWorkflow(shard.hot, term, 'acme', found.id);
  expect(await markSwept(shard.hot, term, found)).toBe(false);
  expect(await readUnswept(shard.hot, 10)).toEqual([{ ...found, stopping: 'cancel' }]);
});

it('a workflow that was retried and stops again during a sweep is swept again', async () => {
  const { shard, term, found } = await stoppingWorkflow();
  await shard.pool.query('UPDATE punctual.workflows SET run = run + 1');
  expect(await markSwept(shard.hot, term, found)).toBe(false);
  expect(await readUnswept(shard.hot, 10)).toHaveLength(1);
});
