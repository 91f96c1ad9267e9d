import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { LifeLine } from '../../hostile-program.js';
import { TestNode, type TestTenant } from '../../node-for-tests.js';
import { PunctualProcess } from '../../punctual-process.js';
import { temporaryFolder } from '../../temporary-folder.js';

/** Workers in processes of their own that end, stop and come back while programs of theirs run. */

let test: TestNode;

beforeAll(async () => {
  const settings = { allowCommands: true, workerTimeout: '3s', heartbeatInterval: '300ms' };
  test = await TestNode.start({ settings });
});
afterAll(() => test.stop());

const STAY = 'exec 3>"$0"; echo up >&3; trap "" TERM; while :; do sleep 5; done';

/** A job whose program stays, and shows on the line whether it lives. */
const staying = (line: LifeLine, fields: object = {}) => ({
  target: { type: 'exec', command: 'sh', args: ['-c', STAY, line.path] },
  ...fields,
});

async function startWorker(tenant: TestTenant, folder: string): Promise<PunctualProcess> {
  const args = ['worker', 'run', '--name', 'w', '--targets', 'exec', '--queues', '*'];
  const own = ['--isolation', 'none', '--exec-folder', join(folder, 'exec')];
  const worker = new PunctualProcess([...args, ...own, '--tenant', tenant.tenant], {
    folder,
    environment: {
      PUNCTUAL_URL: test.url,
      PUNCTUAL_API_KEY: test.apiKey,
      PUNCTUAL_DATA: join(folder, 'data'),
      PUNCTUAL_ALLOW_COMMANDS: 'true',
    },
  });
  onTestFinished(async () => {
    worker.child.kill('SIGCONT');
    await worker.kill('SIGKILL');
  });
  await worker.prints('stderr', /registered/);
  return worker;
}

describe.runIf(process.platform === 'linux')('a worker', () => {
  it('that is killed takes its programs with it: one is run again, one that starts once is lost', async () => {
    const tenant = test.newTenant();
    const folder = await temporaryFolder();
    const first = await startWorker(tenant, folder);
    const [line, once] = [new LifeLine(), new LifeLine()];
    const again = await tenant.submit(staying(line));
    const lost = await tenant.submit(staying(once, { delivery: 'at-most-once' }));
    await Promise.all([line.up.times(1), once.up.times(1)]);
    await first.kill('SIGKILL');
    await Promise.all([line.gone, once.gone]);
    expect(await tenant.ended(lost.id)).toMatchObject({ state: 'failed', attempts: [{ outcome: 'lost' }] });
    const other = await startWorker(tenant, await temporaryFolder());
    await expect.poll(() => tenant.job(again.id)).toMatchObject({ state: 'running', attempt: 2 });
    await tenant.get('POST', `/v1/jobs/${again.id}/cancel`, { body: {} });
    await tenant.ended(again.id);
    await other.kill('SIGTERM');
  });

  it('that is stopped has its programs ended before they may start elsewhere', async () => {
    const tenant = test.newTenant();
    const worker = await startWorker(tenant, await temporaryFolder());
    const line = new LifeLine();
    const { id } = await tenant.submit(staying(line, { retry: { onWorkerLost: { maxAttempts: 1 } } }));
    await line.up.times(1);
    worker.child.kill('SIGSTOP');
    await line.gone;
    // It still counts as alive.
    expect((await tenant.job(id)).state).toBe('running');
    expect(await tenant.ended(id)).toMatchObject({ state: 'failed', attempts: [{ outcome: 'lost' }] });
    worker.child.kill('SIGCONT');
    const next = await tenant.submit({ target: { type: 'exec', command: 'echo', args: ['7'] } });
    expect(await tenant.ended(next.id)).toMatchObject({ state: 'succeeded', result: 7 });
  });

  it('ends what an earlier one could not, because its host hung', async () => {
    const tenant = test.newTenant();
    const folder = await temporaryFolder();
    const worker = await startWorker(tenant, folder);
    const line = new LifeLine();
    await tenant.submit(staying(line, { delivery: 'at-most-once' }));
    await line.up.times(1);
    const [, init] = JSON.parse(readFileSync(join(folder, 'exec', 'host.json'), 'utf8'));
    const host = Number(readFileSync(`/proc/${init.pid}/task/${init.pid}/children`, 'utf8').trim());
    process.kill(host, 'SIGSTOP');
    await worker.kill('SIGKILL');
    await startWorker(tenant, folder);
    await line.gone;
  });

  it('that is drained lets its programs end', async () => {
    const tenant = test.newTenant();
    const worker = await startWorker(tenant, await temporaryFolder());
    const { id } = await tenant.submit({
      target: { type: 'exec', command: 'sh', args: ['-c', 'sleep 1; echo 5'] },
    });
    await expect.poll(() => tenant.job(id)).toMatchObject({ state: 'running' });
    const ended = await worker.kill('SIGTERM');
    expect(ended.code).toBe(0);
    expect(await tenant.job(id)).toMatchObject({ state: 'succeeded', result: 5 });
  });
});
