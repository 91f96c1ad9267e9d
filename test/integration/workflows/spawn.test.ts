import { describe, expect, it, onTestFinished } from 'vitest';
import { task } from '../../../src/core/task.js';
import { workflow } from '../../../src/core/workflow/workflow-builder.js';
import type { Punctual } from '../../../src/sdk/punctual.js';
import { startNode } from '../../../src/server.js';
import { createTestDatabase } from '../../database.js';
import { nodeForTest } from '../../node-for-tests.js';

const render = task('render', async ({ page }: { page: number }) => ({ html: `<p>${page}</p>` }));
const list = task('list', async ({ pages }: { pages: string[] }) => pages.join(''));
const end = task('end', async () => 'end');

const publish = workflow('publish', (w, input: { pages: number }) => {
  const plan = w.run('plan', input);
  return w.run(end, undefined, { after: [plan] });
});

const plan = task('plan', async ({ pages }: { pages: number }, ctx) => {
  const first = await ctx.spawn((w) => {
    const rendered = Array.from({ length: pages }, (_, i) =>
      w.run(render, { page: i + 1 }, { name: `page-${i + 1}` }),
    );
    w.run(list, { pages: rendered.map(({ result }) => result.html) }, { name: 'list' });
  });
  await ctx.spawn((w) => w.run(list, { pages: [w.step<string>('plan').result] }, { name: 'last' }), {
    join: false,
  });
  return Object.keys(first).join(' ');
});

/** Runs the workflow with a worker of this connection. */
async function runWith(punctual: Punctual): Promise<void> {
  const worker = punctual.worker([render, list, plan, end], { slots: 5 });
  await worker.start();
  const handle = await punctual.start(publish, { pages: 3 });
  expect(await handle.result()).toBe('end');
  const { jobs } = await handle.wait();
  expect(Object.keys(jobs)).toEqual(['plan', 'end', 'page-1', 'page-2', 'page-3', 'list', 'last']);
  expect((await punctual.get(jobs.list!.id)).result).toBe('<p>1</p><p>2</p><p>3</p>');
  expect((await punctual.get(jobs.last!.id)).result).toBe('page-1 page-2 page-3 list');
  expect([...jobs.end!.after].sort()).toEqual(['list', 'page-1', 'page-2', 'page-3', 'plan']);
  await worker.drain();
}

describe('handlers add steps, with typed inputs and results', () => {
  it('through a worker of their own tenant, which has no tokens', async () => {
    await runWith((await nodeForTest()).connect());
  });

  it('through a worker in the process of a node', async () => {
    const database = await createTestDatabase();
    onTestFinished(() => database.drop(), 30_000);
    const node = await startNode({ databaseUrl: database.url, log: false });
    onTestFinished(() => node.stop(), 30_000);
    await runWith(node.punctual);
  }, 60_000);

  it('through a shared worker, with the token of the attempt', async () => {
    const node = await nodeForTest();
    const worker = node.connect().worker([render, list, plan, end], { slots: 5, shared: true });
    await worker.start();
    const handle = await node.connect('acme').start(publish, { pages: 2 });
    expect(await handle.result()).toBe('end');
    const { jobs, tenant } = await handle.wait();
    expect([tenant, Object.keys(jobs).length]).toEqual(['acme', 6]);
    await worker.drain();
  });
});

it('a handler of a job that is no step is told so', async () => {
  const node = await nodeForTest();
  await node.work([plan]);
  const { id } = await node.get<{ id: string }>('POST', '/v1/jobs', {
    body: { task: 'plan', payload: { pages: 1 }, retry: { maxAttempts: 1 } },
  });
  const job = await node.ended(id);
  expect(job).toMatchObject({ state: 'failed', error: { code: 'INVALID_REQUEST' } });
});
