import { readdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { runCli } from '../../../src/cli/program.js';
import type { ArtifactView } from '../../../src/core/artifact.js';
import type { Job } from '../../../src/core/job.js';
import type { Page, StoredLogLine } from '../../../src/core/wire.js';
import { exec, type WorkerOptions } from '../../../src/index.js';
import { lookAtMachine, type Machine } from '../../../src/worker/runners/exec/machine.js';
import { cliUnderTest } from '../../cli-under-test.js';
import { hostileProgram, LifeLine, NO_COMPILER } from '../../hostile-program.js';
import { TestNode, type TestTenant } from '../../node-for-tests.js';
import { handMadeElf } from '../../programs/hand-made-elf.js';
import { temporaryFolder } from '../../temporary-folder.js';
import { push } from '../artifacts/artifact-for-tests.js';

let test: TestNode;
let machine: Machine;
let hostile: Buffer;

const IS_LINUX = process.platform === 'linux';
const ARCHITECTURE = process.arch === 'arm64' ? 'arm64' : 'x64';
const ONCE = { retry: { maxAttempts: 1 } };

beforeAll(async () => {
  test = await TestNode.start();
  machine = await lookAtMachine();
  if (NO_COMPILER === null) hostile = hostileProgram();
});
afterAll(() => test.stop());

async function start(options: WorkerOptions = {}): Promise<TestTenant> {
  const tenant = test.newTenant();
  const defaults: WorkerOptions = { targets: ['exec'], queues: ['*'], stopGraceMs: 2_000 };
  await tenant.work([], { ...defaults, ...options, exec: { isolation: 'none', ...options.exec } });
  return tenant;
}

/** A tenant that has the hostile program, and how it submits one that does something. */
async function startHostile(options: WorkerOptions = {}) {
  const tenant = await start(options);
  await push(tenant, hostile, { name: 'hostile', version: '1' });
  const submit = (args: readonly string[], fields: object = {}, target: object = {}): Promise<Job> =>
    tenant.submit({ target: { type: 'exec', artifact: 'hostile', args, ...target }, ...ONCE, ...fields });
  const run = async (args: readonly string[], fields: object = {}, target: object = {}): Promise<Job> =>
    tenant.ended((await submit(args, fields, target)).id);
  return { tenant, submit, run };
}

const logOf = async (tenant: TestTenant, id: string): Promise<string[]> => {
  const { data } = await tenant.get<Page<StoredLogLine>>('GET', `/v1/jobs/${id}/logs`);
  return data.map(({ message }) => message);
};

/** The folders of the programs of a worker; they are in several parts. */
function foldersOfJobs(folder: string): string[] {
  const parts = readdirSync(join(folder, 'jobs')).map((part) => join(folder, 'jobs', part));
  return parts.flatMap((part) => readdirSync(part).map((name) => join(part, name)));
}

describe.runIf(IS_LINUX)('an artifact', () => {
  it('is downloaded once, checked, and run with the payload on its stdin', async () => {
    const folder = await temporaryFolder();
    const tenant = await start({ exec: { folder } });
    await push(tenant, handMadeElf(ARCHITECTURE), { name: 'echo', version: '1.0' });
    const sdk = tenant.connect();
    for (const n of [1, 2]) {
      const job = await sdk.submit(exec({ artifact: 'echo@1.0' }), { n });
      expect(await job.result()).toEqual({ n });
    }
    expect(readdirSync(join(folder, 'cache'))).toHaveLength(1);
    expect(foldersOfJobs(folder)).toEqual([]);
  });

  it('is shown by its name and its id, and by its id alone when it is gone', async () => {
    const tenant = await start();
    const { id: artifact } = await push(tenant, handMadeElf(ARCHITECTURE), { name: 'shown', version: '1.0' });
    const { id } = await tenant.submit({ target: { type: 'exec', artifact: 'shown' } });
    await tenant.ended(id);
    const show = async () => {
      const environment = { PUNCTUAL_URL: test.url, PUNCTUAL_API_KEY: test.apiKey };
      const { cli, stdout } = cliUnderTest({ environment });
      expect(await runCli(['job', 'get', id, '--tenant', tenant.tenant], cli)).toBe(0);
      return stdout();
    };
    expect(await show()).toContain(`shown@1.0 (${artifact})`);
    await tenant.get('DELETE', `/v1/artifacts/${artifact}`);
    expect(await show()).toMatch(new RegExp(`target +${artifact}\\n`));
  });

  it('keeps every digit of its payload', async () => {
    const tenant = await start();
    await push(tenant, handMadeElf(ARCHITECTURE), { name: 'echo', version: '1' });
    const body = '{"target":{"type":"exec","artifact":"echo"},"payload":{"id":12345678901234567890}}';
    const { id } = await tenant.get<Job>('POST', '/v1/jobs', { body });
    await tenant.ended(id);
    expect(await logOf(tenant, id)).toEqual(['{"id":12345678901234567890}']);
  });

  it('that was changed in the cache is downloaded again', async () => {
    const folder = await temporaryFolder();
    const tenant = await start({ exec: { folder } });
    await push(tenant, handMadeElf(ARCHITECTURE), { name: 'echo', version: '1' });
    const run = async () => {
      const { id } = await tenant.submit({ target: { type: 'exec', artifact: 'echo' }, payload: 7, ...ONCE });
      return tenant.ended(id);
    };
    expect((await run()).result).toBe(7);
    const [cached] = readdirSync(join(folder, 'cache'));
    writeFileSync(join(folder, 'cache', cached!), 'echo hacked');
    expect((await run()).result).toBe(7);
  });

  it('with another exit code fails, and is told with how it ended', async () => {
    const tenant = await start();
    await push(tenant, handMadeElf(ARCHITECTURE, 5), { name: 'five', version: '1' });
    const limits = { memory: 1 << 26, files: 64, cpuTime: '5s', output: 1_000 };
    const target = { type: 'exec', artifact: 'five', limits };
    const { id } = await tenant.submit({
      target,
      payload: 'said',
      retry: { maxAttempts: 2, backoff: { base: '1ms' } },
    });
    const job = await tenant.ended(id);
    expect(job).toMatchObject({
      state: 'failed',
      error: { code: 'EXIT_STATUS', message: 'The program ended with exit code 5.' },
    });
    expect(job.attempts).toHaveLength(2);
    for (const { execution } of job.attempts) {
      expect(execution).toEqual({
        ...{ isolation: 'none', exitCode: 5, stdout: '"said"' },
        limits: {
          memory: { value: 1 << 26, how: 'approximated' },
          files: { value: 64, how: 'enforced' },
          cpuTime: { value: '5s', how: 'approximated' },
          output: { value: 1_000, how: 'enforced' },
        },
      });
    }
    const { data } = await tenant.get<Page<Job>>('GET', '/v1/jobs');
    expect(data[0]!.attempts.at(-1)!.execution).toMatchObject({ exitCode: 5 });
  });
});

describe.skipIf(NO_COMPILER !== null)('a hostile program', () => {
  it('is ended at its timeout, with what it has hidden', async () => {
    const { submit, tenant } = await startHostile({ stopGraceMs: 500 });
    const [child, grandchild] = [new LifeLine(), new LifeLine()];
    const { id } = await submit(['daemon', grandchild.path, child.path], { timeout: '1s' });
    await Promise.all([child.up.times(1), grandchild.up.times(1)]);
    const job = await tenant.ended(id);
    expect(job).toMatchObject({ state: 'failed', error: { code: 'TIMED_OUT' } });
    expect(job.attempts[0]).toMatchObject({ outcome: 'timed-out', execution: { isolation: 'none' } });
    await Promise.all([child.gone, grandchild.gone]);
  });

  it('is ended when it is cancelled, and has its TERM ignored', async () => {
    const { submit, tenant } = await startHostile({ stopGraceMs: 500 });
    const line = new LifeLine();
    const { id } = await submit(['stay', line.path]);
    await line.up.times(1);
    await tenant.get('POST', `/v1/jobs/${id}/cancel`, { body: {} });
    expect(await tenant.ended(id)).toMatchObject({ state: 'cancelled' });
    await line.gone;
  });

  it('leaves no daemon behind when it succeeds', async () => {
    const { run } = await startHostile();
    const line = new LifeLine();
    expect(await run(['daemon', line.path])).toMatchObject({ state: 'succeeded' });
    await line.gone;
  });

  it('fails when it uses too much memory, and is told so', async () => {
    const { run } = await startHostile();
    expect(await run(['memory'], {}, { limits: { memory: 50 << 20 } })).toMatchObject({
      state: 'failed',
      error: { code: 'OUT_OF_MEMORY' },
      attempts: [{ execution: { outOfMemory: true } }],
    });
  });

  it('fails when it fills the disk, or uses too much time of processors', async () => {
    const { run } = await startHostile();
    const refused = { state: 'failed', error: { code: 'LIMIT_EXCEEDED' } };
    expect(await run(['disk'], {}, { limits: { disk: 10 << 20 } })).toMatchObject(refused);
    expect(await run(['spins'], {}, { limits: { cpuTime: '1s' } })).toMatchObject(refused);
  });

  it('starts no more processes than it may', async ({ skip }) => {
    if ('why' in machine.users) skip(machine.users.why);
    const { run } = await startHostile();
    expect(await run(['forks'], {}, { limits: { processes: 20 } })).toMatchObject({ state: 'succeeded' });
  });

  it('does not fill memories with what it prints', async () => {
    const { run } = await startHostile();
    const job = await run(['flood']);
    expect(job).toMatchObject({ state: 'succeeded', result: null, attempts: [{ execution: { cut: true } }] });
  });

  it('that ends by a signal fails, whether the signal is that of a mistake or of somebody', async () => {
    const { run } = await startHostile();
    for (const [number, name] of [
      [11, 'SIGSEGV'],
      [9, 'SIGKILL'],
    ] as const) {
      const { error } = await run(['itself', String(number)]);
      expect(error).toMatchObject({ code: 'SIGNALLED', message: `The program was ended by ${name}.` });
    }
  });

  it('cannot end what runs it', async () => {
    const { run } = await startHostile();
    const job = await run(['kills-parent']);
    expect(job.state === 'succeeded' || job.error?.code === 'SIGNALLED').toBe(true);
    expect(await run(['half-json'])).toMatchObject({ state: 'succeeded', result: null });
  });

  it('reads nothing of other jobs, if attempts have users of their own', async ({ skip }) => {
    if ('why' in machine.users) skip(machine.users.why);
    const folder = await temporaryFolder();
    const { run, submit, tenant } = await startHostile({ exec: { folder } });
    const line = new LifeLine();
    const other = await submit(['stay', line.path]);
    await line.up.times(1);
    const [path] = foldersOfJobs(folder) as [string];
    expect(path).toContain(other.id);
    for (const name of ['payload.json', 'token', '.']) {
      expect(await run(['read', join(path, name)])).toMatchObject({ result: 'refused' });
    }
    await tenant.get('POST', `/v1/jobs/${other.id}/cancel`, { body: {} });
    await tenant.ended(other.id);
  });

  it('in bubblewrap has no network, and none of the files of the machine', async ({ skip }) => {
    if ('why' in machine.bubblewrap) skip(machine.bubblewrap.why);
    const { run } = await startHostile({ exec: { isolation: 'required' } });
    const server = createServer().listen(0, '127.0.0.1');
    onTestFinished(() => void server.close());
    await new Promise((resolve) => server.once('listening', resolve));
    const { port } = server.address() as { port: number };
    expect(await run(['network', String(port)])).toMatchObject({
      result: 'refused',
      attempts: [{ execution: { isolation: 'bubblewrap' } }],
    });
    for (const path of ['/etc/passwd', '/bin/sh']) {
      expect(await run(['read', path])).toMatchObject({ result: 'refused' });
    }
    // A filter refuses calls to the kernel that programs have no business with.
    expect(await run(['traces'])).toMatchObject({ result: 'refused' });
    const open = await startHostile({ exec: { isolation: 'none' } });
    expect(await open.run(['traces'])).toMatchObject({ result: 'traced' });
    expect(await open.run(['network', String(port)])).toMatchObject({ result: 'connected' });
  });

  it('in bubblewrap is ended at its timeout, with what it has hidden', async ({ skip }) => {
    if ('why' in machine.bubblewrap) skip(machine.bubblewrap.why);
    const { submit, tenant } = await startHostile({ stopGraceMs: 500, exec: { isolation: 'required' } });
    const { id } = await submit(['spins'], { timeout: '1s' });
    expect(await tenant.ended(id)).toMatchObject({ state: 'failed', error: { code: 'TIMED_OUT' } });
    const again = await submit(['itself', '11']);
    expect(await tenant.ended(again.id)).toMatchObject({
      error: { message: 'The program ended with exit code 139 (probably SIGSEGV).' },
    });
  });
});

describe.runIf(IS_LINUX)('what a program leaves', () => {
  it('in its folder output is kept with the job, and links are not followed', async () => {
    const own = await TestNode.start({ settings: { allowCommands: true } });
    onTestFinished(() => own.stop());
    const tenant = own.newTenant();
    const options = {
      targets: ['exec'],
      queues: ['*'],
      exec: { allowCommands: true, isolation: 'none' },
    } as const;
    await tenant.work([], options);
    const script =
      'echo one > output/a.txt; mkdir output/deep; echo two > "$PUNCTUAL_OUTPUT/deep/b"; ln -s /etc/shadow output/shadow; ln -s / output/root';
    const { id } = await tenant.submit({
      target: { type: 'exec', command: 'sh', args: ['-c', script] },
      ...ONCE,
    });
    expect(await tenant.ended(id)).toMatchObject({ state: 'succeeded' });
    const { data } = await tenant.get<Page<ArtifactView>>('GET', `/v1/jobs/${id}/outputs`);
    expect(data.map(({ output, size }) => [output, size]).sort()).toEqual([
      ['a.txt', 4],
      ['deep/b', 4],
    ]);
  });
});
