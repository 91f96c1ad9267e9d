import { randomBytes } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { expect, it } from 'vitest';
import type { ArtifactView } from '../../../src/core/artifact.js';
import type { Page } from '../../../src/core/wire.js';
import { type ApiUser, nodeForTest, type TestNode } from '../../node-for-tests.js';
import { withClient } from '../../postgres-client.js';
import { handMadeElf } from '../../programs/hand-made-elf.js';
import { ProtocolWorker } from '../../protocol-worker.js';
import { TestClock } from '../../test-clock.js';
import { announce, push, sha256 } from './artifact-for-tests.js';

const DAY_MS = 86_400_000;
const newElf = () => Buffer.concat([handMadeElf('x64', 0), randomBytes(16)]);
const FILE = { runnable: false };

async function ids(user: ApiUser): Promise<string[]> {
  return (await user.get<Page<ArtifactView>>('GET', '/v1/artifacts?limit=1000')).data.map(({ id }) => id);
}

async function bytesOf({ node: { context } }: TestNode): Promise<string[]> {
  const entries = await readdir(context.artifacts.place, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map(({ name }) => name);
}

/** A pass of the leader, which is otherwise made every minute. */
async function forget({ node: { context } }: TestNode): Promise<void> {
  await (await context.shards[0].leader()).forgetArtifacts();
}

it('what nobody needs goes by rule, and what is named stays', async () => {
  const clock = new TestClock();
  const test = await nodeForTest({ clock, settings: { historyRetention: '2d' } });
  const exec = (artifact: string) => ({ type: 'exec', artifact });
  const named = await push(test, newElf(), { name: 'packer', version: '1' });
  const unused = newElf();
  const forgotten = await push(test, unused);
  const inTask = await push(test, newElf());
  await test.get('POST', '/v1/tasks', { body: { name: 't', target: exec(inTask.id) } });
  const inSchedule = await push(test, newElf());
  await test.get('POST', '/v1/schedules', {
    body: { name: 's', target: exec(inSchedule.id), every: '30d' },
  });
  const inDefinition = await push(test, newElf());
  await test.get('PUT', '/v1/workflow-definitions/d', {
    body: { jobs: { a: { target: exec(inDefinition.id) } } },
  });
  const inGraph = await push(test, newElf());
  const inner = { jobs: { c: { target: exec(inGraph.id) } } };
  await test.get('POST', '/v1/workflows', {
    body: { name: 'w', jobs: { a: { task: 't2', delay: '300d' }, b: { workflow: inner, after: ['a'] } } },
  });
  const inJob = await push(test, newElf());
  await test.submit({ target: exec(inJob.id), delay: '300d' });
  const expired = (await announce(test, newElf(), { name: 'packer', version: '2' })).body;
  const awaited = (await announce(test, newElf(), { name: 'packer', version: '3' })).body;
  await test.submit({ target: { ...exec('packer@3'), artifactTimeout: '90d' } });
  expect(await ids(test)).toHaveLength(9);
  // The time for uploads is over.
  clock.advance(2 * 3_600_000);
  await forget(test);
  expect(await ids(test)).not.toContain(expired.id);
  expect(await ids(test)).toContain(awaited.id);
  clock.advance(3 * DAY_MS);
  await forget(test);
  expect(await ids(test)).not.toContain(forgotten.id);
  const kept = [named, inTask, inSchedule, inDefinition, inGraph, inJob, awaited].map(({ id }) => id);
  expect((await ids(test)).sort()).toEqual(kept.sort());
  expect(await bytesOf(test)).not.toContain(sha256(unused));
});

it('what a job left goes when the job is not in history any more', async () => {
  const clock = new TestClock();
  const test = await nodeForTest({ clock, settings: { historyRetention: '1d' } });
  await push(test, newElf(), { name: 'packer', version: '1' });
  const worker = await ProtocolWorker.register(test, { targets: ['exec'] });
  await test.submit({ target: { type: 'exec', artifact: 'packer' } });
  const { jobId, fence, token } = await worker.claimOne();
  const left = await fetch(`${test.url}/v1/jobs/${jobId}/outputs/a`, {
    ...{ method: 'PUT', headers: { authorization: `Bearer ${token}` }, body: 'bytes of a job' },
  });
  const { id } = (await left.json()) as ArtifactView;
  await worker.succeed({ jobId, fence });
  expect(await ids(test)).toContain(id);
  clock.advance(4 * DAY_MS);
  await forget(test);
  expect(await ids(test)).toContain(id);
  await withClient(test.database.url, (client) => client.query('DELETE FROM punctual.job_history'));
  await forget(test);
  expect(await ids(test)).not.toContain(id);
  expect(await bytesOf(test)).not.toContain(sha256(Buffer.from('bytes of a job')));
});

it('bytes that another artifact has stay', async () => {
  const clock = new TestClock();
  const test = await nodeForTest({ clock, settings: { historyRetention: '1d' } });
  const bytes = randomBytes(100);
  const [one, two] = [test.newTenant(), test.newTenant()];
  const unnamed = await push(one, bytes, FILE);
  const named = await push(two, bytes, { ...FILE, name: 'a', version: '1' });
  clock.advance(2 * DAY_MS);
  await forget(test);
  expect(await ids(one)).not.toContain(unnamed.id);
  expect((await two.ask('GET', `/v1/artifacts/${named.id}/content`)).status).toBe(200);
});
