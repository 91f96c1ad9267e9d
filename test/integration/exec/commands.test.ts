import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Job } from '../../../src/core/job.js';
import type { StoredLogLine } from '../../../src/core/wire.js';
import type { WorkerOptions } from '../../../src/index.js';
import { TestNode, type TestTenant } from '../../node-for-tests.js';

let test: TestNode;

beforeAll(async () => {
  test = await TestNode.start({ settings: { allowCommands: true } });
});
afterAll(() => test.stop());

const ONCE = { retry: { maxAttempts: 1 } };

/** A tenant with a worker that runs commands. */
async function start(options: WorkerOptions = {}): Promise<TestTenant> {
  const tenant = test.newTenant();
  await tenant.work([], {
    ...{ targets: ['exec'], queues: ['*'], stopGraceMs: 2_000 },
    exec: { allowCommands: true, isolation: 'none' },
    ...options,
  });
  return tenant;
}

/** A job that has the shell run a text. */
const shell = (script: string, fields: object = {}, target: object = {}) => ({
  target: { type: 'exec', command: 'sh', args: ['-c', script], ...target },
  ...ONCE,
  ...fields,
});

async function run(tenant: TestTenant, job: Record<string, unknown>): Promise<Job> {
  const { id } = await tenant.submit(job);
  return tenant.ended(id);
}

describe('a command', () => {
  it('gets its payload on stdin and as a file, and its stdout is the result', async () => {
    const tenant = await start();
    const job = await run(
      tenant,
      shell('cat; cat "$PUNCTUAL_PAYLOAD_FILE" >&2', { payload: { n: [1, 'é'] } }),
    );
    expect(job).toMatchObject({ state: 'succeeded', result: { n: [1, 'é'] } });
  });

  it('has an environment of its own', async () => {
    const tenant = await start();
    const job = await run(tenant, shell('env', {}, { env: { REGION: 'eu', PATH: '/bin' } }));
    expect(job.state).toBe('succeeded');
    const { data } = await tenant.get<{ data: StoredLogLine[] }>('GET', `/v1/jobs/${job.id}/logs`);
    const names = data.map(({ message }) => message.split('=')[0]!).sort();
    const own = ['ATTEMPT', 'FENCE', 'JOB_ID', 'OUTPUT', 'PAYLOAD_FILE', 'TOKEN_FILE', 'URL', 'WORKER_ID'];
    // The shell adds PWD.
    const others = ['HOME', 'LANG', 'PATH', 'PWD', 'REGION', 'TMPDIR', 'TRACEPARENT'];
    expect(names).toEqual([...own.map((name) => `PUNCTUAL_${name}`), ...others].sort());
  });
});
