import { expect, it } from 'vitest';
import type { Workflow } from '../../../src/core/workflow.js';
import { type PendingEnd, readPortion } from '../../../src/store/workflow-portions.js';
import { nodeForTest } from '../../node-for-tests.js';
import { withClient } from '../../postgres-client.js';
import { TestShard } from '../store/test-shard.js';
import { notingTask, statesOf, step, submitWorkflow, workflowEnd } from './workflow-tester.js';

/** Edges as an older program stored them, and as steps that are added later have them. */
const AS_ROWS = `
  WITH rows AS (
    INSERT INTO punctual.edges SELECT s.id, c FROM punctual.steps s CROSS JOIN LATERAL unnest(s.child_ids) c
  ) UPDATE punctual.steps SET parent_ids = NULL, child_ids = NULL`;

it('a workflow whose edges an older program stored is shown as any other, and goes on', async () => {
  const ran: string[] = [];
  const user = await nodeForTest();
  const workflow = await submitWorkflow(user, {
    jobs: {
      a: step('a', [], { hold: true }),
      b: step('b', ['a']),
      c: step('c', ['a']),
      d: step('d', ['b', 'c']),
    } as never,
  });
  const look = async () => {
    const jobs = Object.values(workflow.jobs).map(({ id }) => user.get('GET', `/v1/jobs/${id}`));
    // What the critical path took goes on counting.
    const { criticalPath: _, ...shown } = await user.get<Workflow>('GET', `/v1/workflows/${workflow.id}`);
    return [shown, ...(await Promise.all(jobs))];
  };
  const before = await look();
  const held = (sql: string) => withClient(user.database.url, (client) => client.query(sql));
  expect((await held('SELECT 1 FROM punctual.edges')).rows).toHaveLength(0);
  await held(AS_ROWS);
  expect((await held('SELECT 1 FROM punctual.edges')).rows).toHaveLength(4);
  expect(await look()).toEqual(before);
  await user.work([notingTask(ran)]);
  await user.get('POST', `/v1/jobs/${workflow.jobs.a!.id}/release`);
  expect(statesOf(await workflowEnd(user, workflow))).toEqual({
    ...{ a: 'succeeded', b: 'succeeded', c: 'succeeded', d: 'succeeded' },
  });
  expect([ran[0], ran.slice(1, 3).sort(), ran[3]]).toEqual(['a', ['b', 'c'], 'd']);
  // A rerun is stored like any other submission, with the same graph.
  const again = await user.get<Workflow>('POST', `/v1/workflows/${workflow.id}/rerun`);
  const after = ({ jobs }: Workflow) => Object.values(jobs).map((each) => each.after);
  expect(after(again)).toEqual(after(workflow));
});

it('a portion has the first edges of its ends, submitted ones and added ones, from where each was passed on', async () => {
  const shard = await TestShard.forTest();
  await shard.lead();
  const steps = 40;
  const { rows } = await shard.pool.query<{ id: string; workflow: string }>(
    `WITH w AS (
      INSERT INTO punctual.workflows (id, tenant, name, steps, steps_left, on_failure, running, created_at, created_by)
      VALUES (gen_random_uuid(), 'acme', 'w', $1, $1, 'continue', 'finish', 0, 'test') RETURNING id
    ) INSERT INTO punctual.steps (id, workflow, tenant, name, place, run_if, parents, parents_left, released)
      SELECT gen_random_uuid(), id, 'acme', 's' || n, n, 'all-succeeded', n % 3, n % 3, false FROM w, generate_series(1, $1) n
      RETURNING id, workflow`,
    [steps],
  );
  const ids = rows.map(({ id }) => id).sort();
  const [parents, others] = [ids.slice(0, 12), ids.slice(12)];
  for (let round = 0; round < 40; round++) {
    const kinds = parents.map((_, i) => ['none', 'submitted', 'added', 'both', 'same'][(i + round) % 5]!);
    const children = kinds.map((kind) =>
      kind === 'none' ? [] : kind === 'same' ? others.slice(3, 9) : others.filter(() => Math.random() < 0.3),
    );
    await shard.pool.query('DELETE FROM punctual.edges');
    for (const [i, parent] of parents.entries()) {
      const isAdded = () => kinds[i] === 'added' || (kinds[i] === 'both' && Math.random() < 0.5);
      const added = children[i]!.filter(isAdded);
      const submitted = children[i]!.filter((id) => !added.includes(id));
      await shard.pool.query('UPDATE punctual.steps SET child_ids = $2 WHERE id = $1', [
        parent,
        submitted.length === 0 ? null : submitted,
      ]);
      await shard.pool.query('INSERT INTO punctual.edges SELECT $1, unnest($2::uuid[])', [parent, added]);
    }
    const ends = parents
      .map(
        (job, i): PendingEnd => ({
          ...{ job, workflow: rows[0]!.workflow, state: 'succeeded', finishedAt: 0 },
          place: Math.random() < 0.3 ? (children[i]![1] ?? null) : null,
        }),
      )
      .sort(() => Math.random() - 0.5);
    const all = ends.flatMap(({ job, place }, i) =>
      children[parents.indexOf(job)]!.flatMap((child) =>
        place === null || child > place ? [[i + 1, child]] : [],
      ),
    );
    for (const limit of [1, 3, 10, all.length, all.length + 1, 1_000]) {
      if (limit === 0) continue;
      const { edges } = await readPortion(shard.hot, ends, limit);
      expect(edges.map(({ n, child }) => [n, child.id])).toEqual(all.slice(0, limit));
    }
  }
});
