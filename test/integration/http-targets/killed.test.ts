import { rm } from 'node:fs/promises';
import pg from 'pg';
import { expect, it, onTestFinished } from 'vitest';
import type { Job } from '../../../src/core/job.js';
import type { ClusterView } from '../../../src/core/wire.js';
import { createOperatorKey } from '../../../src/store/operator-key.js';
import { createTestDatabase } from '../../database.js';
import { type Answering, HttpReceiver } from '../../http-receiver.js';
import { PunctualProcess } from '../../punctual-process.js';
import { temporaryFolder } from '../../temporary-folder.js';
import { until } from '../store/test-shard.js';

/** Two nodes and a receiver; workers are started by the test. */
async function startCluster(answer: Answering) {
  const [database, folder] = await Promise.all([createTestDatabase(), temporaryFolder()]);
  onTestFinished(async () => {
    await database.drop();
    await rm(folder, { recursive: true });
  });
  const receiver = await HttpReceiver.start(answer);
  const { key } = await createOperatorKey(database.url, 'tester');
  const run = (args: readonly string[], environment: Record<string, string>) => {
    const started = new PunctualProcess(args, { folder, environment });
    onTestFinished(async () => void (await started.kill('SIGKILL')));
    return started;
  };
  const startNode = async () => {
    const server = run(['server', '--port', '0'], {
      ...{ PUNCTUAL_DATABASE_URL: database.url, PUNCTUAL_SECRET_KEY: 'ab'.repeat(32) },
      ...{ PUNCTUAL_HEARTBEAT_INTERVAL: '500ms', PUNCTUAL_WORKER_TIMEOUT: '5s' },
    });
    const [, url] = await server.prints('stdout', /^ready (\S+)\n/m);
    return { server, url: url! };
  };
  const nodes = await Promise.all([startNode(), startNode()]);
  const urls = nodes.map(({ url }) => url).join(',');
  const startWorker = async () => {
    const args = ['worker', 'run', '--targets', 'http', '--allow-address', '127.0.0.1'];
    const worker = run(args, { PUNCTUAL_URL: urls, PUNCTUAL_API_KEY: key });
    await worker.prints('stderr', /registered; waiting for jobs/);
    return worker;
  };
  /** Asks a node that lives. */
  const ask = async (method: string, path: string, body?: object, credential = key) => {
    const { url } = nodes.find(({ server }) => server.child.signalCode === null)!;
    const answered = await fetch(url + path, {
      method,
      headers: { authorization: `Bearer ${credential}`, 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    });
    const text = await answered.text();
    return { status: answered.status, body: (text === '' ? {} : JSON.parse(text)) as object };
  };
  const leader = async () => {
    let view: ClusterView | undefined;
    await until(async () => {
      view = (await ask('GET', '/v1/cluster')).body as ClusterView;
      return view.ok;
    });
    const { url } = view!.nodes.find(({ id }) => id === view!.shards[0]!.leader)!;
    return nodes.find((node) => node.url === url)!.server;
  };
  const submit = async (fields: object = {}) => {
    const target = { type: 'http', url: `${receiver.url}/hook` };
    const answered = await ask('POST', '/v1/jobs', { target, payload: null, ...fields });
    expect(answered).toMatchObject({ status: 201 });
    return (answered.body as Job).id;
  };
  const job = async (id: string) => (await ask('GET', `/v1/jobs/${id}?wait=20s`)).body as Job;
  const handedOn = async () => {
    const client = new pg.Client(database.url);
    await client.connect();
    const { rows } = await client.query('SELECT FROM punctual.claims WHERE handed_on_at IS NOT NULL');
    await client.end();
    return rows.length;
  };
  return { receiver, startWorker, ask, leader, submit, job, handedOn };
}

it('a receiver that answered 202 completes the job although leader and worker were killed, and no other job', async () => {
  const { receiver, startWorker, ask, leader, submit, job, handedOn } = await startCluster(() => 202);
  const worker = await startWorker();
  const first = await submit({ timeout: '5m' });
  await receiver.calls.times(1);
  const { 'punctual-token': token, 'punctual-fence': fence } = receiver.calls.all[0]!.headers;
  const second = await submit({ timeout: '5m' });
  await receiver.calls.times(2);
  await until(async () => (await handedOn()) === 2);
  await worker.kill('SIGKILL');
  await (await leader()).kill('SIGKILL');
  await leader();
  const report = { fence: Number(fence), result: { rows: 42 } };
  expect(await ask('POST', `/v1/jobs/${second}/complete`, report, token)).toMatchObject({ status: 403 });
  expect(await ask('POST', `/v1/jobs/${first}/complete`, report, token)).toMatchObject({ status: 204 });
  expect(await job(first)).toMatchObject({ state: 'succeeded', attempt: 1, result: { rows: 42 } });
  expect((await ask('GET', `/v1/jobs/${second}`)).body).toMatchObject({ state: 'running' });
  expect(receiver.calls.all).toHaveLength(2);
}, 90_000);

it('a worker that is killed in a call: at-least-once calls again with a higher fence, at-most-once is lost', async () => {
  const held = { isHeld: true };
  const { receiver, startWorker, ask, submit, job } = await startCluster(() =>
    held.isHeld ? undefined : 200,
  );
  const worker = await startWorker();
  const again = await submit();
  const once = await submit({ delivery: 'at-most-once' });
  await receiver.calls.times(2);
  held.isHeld = false;
  await worker.kill('SIGKILL');
  await startWorker();
  expect(await job(again)).toMatchObject({ state: 'succeeded', result: { status: 200 } });
  expect(await job(once)).toMatchObject({ state: 'failed', error: { code: 'LOST' } });
  const fencesOf = (id: string) =>
    receiver.calls.all
      .filter(({ headers }) => headers['punctual-job-id'] === id)
      .map(({ headers }) => Number(headers['punctual-fence']));
  const [before, after, ...others] = fencesOf(again);
  expect(after).toBeGreaterThan(before!);
  expect(others).toEqual([]);
  expect(fencesOf(once)).toHaveLength(1);
  // What the first receiver of either says comes too late.
  for (const { headers } of receiver.calls.all.slice(0, 2)) {
    const report = { fence: Number(headers['punctual-fence']), result: 'late' };
    const path = `/v1/jobs/${headers['punctual-job-id']}/complete`;
    expect(await ask('POST', path, report, headers['punctual-token'])).toMatchObject({ status: 409 });
  }
}, 90_000);
