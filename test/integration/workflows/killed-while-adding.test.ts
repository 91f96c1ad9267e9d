import { rm } from 'node:fs/promises';
import { expect, it, onTestFinished } from 'vitest';
import { task } from '../../../src/core/task.js';
import type { ClusterView } from '../../../src/core/wire.js';
import { workflow } from '../../../src/core/workflow/workflow-builder.js';
import { connect } from '../../../src/sdk/connect.js';
import { createOperatorKey } from '../../../src/store/operator-key.js';
import { createTestDatabase } from '../../database.js';
import { Door } from '../../happening.js';
import { PunctualProcess } from '../../punctual-process.js';
import { temporaryFolder } from '../../temporary-folder.js';
import { until } from '../store/test-shard.js';

it('the leader is killed between what a step adds and its end, and while a workflow inside runs: each runs once, in order', async () => {
  const [database, folder] = await Promise.all([createTestDatabase(), temporaryFolder()]);
  onTestFinished(async () => {
    await database.drop();
    await rm(folder, { recursive: true });
  });
  const { key } = await createOperatorKey(database.url, 'tester');
  const start = async () => {
    const environment = { PUNCTUAL_DATABASE_URL: database.url };
    const server = new PunctualProcess(['server', '--port', '0'], { folder, environment });
    onTestFinished(async () => void (await server.kill('SIGKILL')));
    const [, url] = await server.prints('stdout', /^ready (\S+)\n/m);
    return { server, url: url! };
  };
  const leader = await start();
  await until(async () => {
    const answer = await fetch(`${leader.url}/v1/cluster`, { headers: { authorization: `Bearer ${key}` } });
    return ((await answer.json()) as ClusterView).shards[0]!.leader !== null;
  });
  const follower = await start();

  const ran: string[] = [];
  const added = new Door();
  const killed = new Door();
  const note = task('note', async ({ name }: { name: string }) => void ran.push(name));
  const inner = workflow('part', (w) => {
    const first = w.run(note, { name: 'inner-1' });
    w.wait('1s', { after: [first], name: 'rest' });
    w.run(note, { name: 'inner-2' }, { after: [w.run(note, { name: 'inner-0' })], name: 'last' });
  });
  const plan = task('plan', async (_: unknown, ctx) => {
    ran.push('plan');
    await ctx.spawn((w) => {
      w.run(note, { name: 'page' }, { name: 'page' });
      w.workflow(inner, undefined, { name: 'part' });
    });
    added.open();
    await killed.opened;
    // The same again: an answer that was lost with the leader.
    await ctx.spawn((w) => w.run(note, { name: 'page' }, { name: 'page' }));
  });
  const outer = workflow('outer', (w) => {
    w.run(note, { name: 'end' }, { after: [w.run(plan)], name: 'end' });
  });
  const punctual = connect({ url: `${follower.url},${leader.url}`, apiKey: key });
  onTestFinished(() => punctual.close());
  const worker = punctual.worker([note, plan], { slots: 4, stopGraceMs: 50 });
  await worker.start();
  onTestFinished(() => worker.stop());

  const handle = await punctual.start(outer);
  await added.opened;
  await until(async () => (await handle.get()).jobs.part?.workflow != null);
  await leader.server.kill('SIGKILL');
  killed.open();
  const ended = await handle.wait();
  expect(ended).toMatchObject({ state: 'succeeded', progress: { steps: 4, ended: 4 } });
  expect([...ran].sort()).toEqual(['end', 'inner-0', 'inner-1', 'inner-2', 'page', 'plan']);
  expect([ran[0], ran.at(-1)]).toEqual(['plan', 'end']);
  const part = await punctual.workflow(ended.jobs.part!.workflow!).get();
  expect(part).toMatchObject({ state: 'succeeded', parent: { workflow: handle.id } });
}, 60_000);
