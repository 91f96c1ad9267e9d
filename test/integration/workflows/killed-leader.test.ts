import { rm } from 'node:fs/promises';
import { expect, it, onTestFinished } from 'vitest';
import { task } from '../../../src/core/task.js';
import type { ClusterView } from '../../../src/core/wire.js';
import type { Workflow } from '../../../src/core/workflow.js';
import { connect } from '../../../src/sdk/connect.js';
import { createOperatorKey } from '../../../src/store/operator-key.js';
import { createTestDatabase } from '../../database.js';
import { Door } from '../../happening.js';
import { PunctualProcess } from '../../punctual-process.js';
import { temporaryFolder } from '../../temporary-folder.js';
import { until } from '../store/test-shard.js';
import { statesOf } from './workflow-tester.js';

/** A leader and a follower in processes of their own. */
async function twoNodes() {
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
    const ask = async <T>(method: string, path: string, body?: unknown): Promise<T> => {
      const type = body === undefined ? {} : { 'content-type': 'application/json' };
      const headers = { authorization: `Bearer ${key}`, ...type };
      const answer = await fetch(url + path, {
        method,
        headers,
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
      if (!answer.ok) throw new Error(await answer.text());
      return (await answer.json()) as T;
    };
    return { server, url: url!, ask };
  };
  const leader = await start();
  await until(async () => (await leader.ask<ClusterView>('GET', '/v1/cluster')).shards[0]!.leader !== null);
  const follower = await start();

  return { key, leader, follower };
}

const step = (name: string, ...after: string[]) => ({ task: 'note', payload: { name }, after });

it('A > B, C > D with the leader killed between B and C: the order is kept, and each runs once', async () => {
  const { key, leader, follower } = await twoNodes();
  const ran: string[] = [];
  const door = new Door();
  const note = task('note', {}, async ({ name }: { name: string }) => {
    ran.push(name);
    if (name === 'c') await door.opened;
    return name;
  });
  const punctual = connect({ url: `${follower.url},${leader.url}`, apiKey: key });
  onTestFinished(() => punctual.close());
  const worker = punctual.worker([note], { slots: 4, stopGraceMs: 50 });
  await worker.start();
  onTestFinished(() => worker.stop());

  const { id } = await follower.ask<Workflow>('POST', '/v1/workflows', {
    name: 'diamond',
    jobs: { a: step('a'), b: step('b', 'a'), c: step('c', 'a'), d: step('d', 'b', 'c') },
  });
  await until(async () => {
    const states = statesOf(await follower.ask<Workflow>('GET', `/v1/workflows/${id}`));
    return states.b === 'succeeded' && states.c === 'running';
  });
  const waiting = follower.ask<Workflow>('GET', `/v1/workflows/${id}?wait=30s`);
  await leader.server.kill('SIGKILL');
  door.open();
  const ended = await waiting;
  expect(ended.state).toBe('succeeded');
  expect([...ran].sort()).toEqual(['a', 'b', 'c', 'd']);
  expect([ran[0], ran[3]]).toEqual(['a', 'd']);
}, 60_000);

it('a workflow on hold whose leader is killed starts no step until it is released, and then each once', async () => {
  const { key, leader, follower } = await twoNodes();
  const ran: string[] = [];
  const door = new Door();
  const note = task('note', {}, async ({ name }: { name: string }) => {
    ran.push(name);
    if (name === 'first') await door.opened;
  });
  const punctual = connect({ url: `${follower.url},${leader.url}`, apiKey: key });
  onTestFinished(() => punctual.close());
  const worker = punctual.worker([note], { slots: 20, stopGraceMs: 50 });
  const width = 400;
  const jobs: Record<string, object> = { first: step('first') };
  for (let i = 0; i < width; i++) jobs[`m${i}`] = step(`m${i}`, 'first');
  // Steps that could run at once, and that the leader is about to park when it dies.
  for (let i = 0; i < width; i++) jobs[`r${i}`] = step(`r${i}`);
  const { id } = await follower.ask<Workflow>('POST', '/v1/workflows', { name: 'held', jobs });
  await worker.start();
  onTestFinished(() => worker.stop());
  await until(() => ran.includes('first') && ran.length > 40);
  const held = await follower.ask<Workflow>('POST', `/v1/workflows/${id}/hold`);
  await leader.server.kill('SIGKILL');
  expect(held.held).toBe(true);
  door.open();
  const look = () => follower.ask<Workflow>('GET', `/v1/workflows/${id}`);
  // The end of the first step is counted by the next leader, which parks the steps behind it.
  const waits = (state: string) => state === 'blocked';
  await until(async () => {
    const states = statesOf(await look());
    const left = Object.values(states).filter((state) => state !== 'succeeded');
    return states.first === 'succeeded' && left.every(waits);
  });
  // What ran was counted, and nothing else runs.
  await until(async () => (await look()).progress.ended === ran.length);
  await follower.ask('POST', `/v1/workflows/${id}/release`);
  let ended = await look();
  while (ended.endedAt === null) ended = await follower.ask<Workflow>('GET', `/v1/workflows/${id}?wait=30s`);
  expect(ended.state).toBe('succeeded');
  expect(ran).toHaveLength(2 * width + 1);
  expect(new Set(ran).size).toBe(2 * width + 1);
}, 90_000);
