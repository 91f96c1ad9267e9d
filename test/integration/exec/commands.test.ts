import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runCli } from '../../../src/cli/program.js';
import type { Job } from '../../../src/core/job.js';
import type { Page, StoredLogLine } from '../../../src/core/wire.js';
import type { WorkerOptions } from '../../../src/index.js';
import { lookAtMachine, type Machine } from '../../../src/worker/runners/exec/machine.js';
import { cliUnderTest } from '../../cli-under-test.js';
import { TestNode, type TestTenant } from '../../node-for-tests.js';
import { temporaryFolder } from '../../temporary-folder.js';

let test: TestNode;
let machine: Machine;

const SECRET_KEY = Buffer.alloc(32, 7).toString('base64');

beforeAll(async () => {
  test = await TestNode.start({ settings: { allowCommands: true, secretKey: SECRET_KEY } });
  machine = await lookAtMachine();
});
afterAll(() => test.stop());

const ONCE = { retry: { maxAttempts: 1 } };

/** A tenant with a worker that runs commands. */
async function start(options: WorkerOptions = {}): Promise<TestTenant> {
  const tenant = test.newTenant();
  const defaults: WorkerOptions = { targets: ['exec'], queues: ['*'], stopGraceMs: 2_000 };
  const exec = { allowCommands: true, isolation: 'none' as const, ...options.exec };
  await tenant.work([], { ...defaults, ...options, exec });
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

const logOf = async (tenant: TestTenant, id: string): Promise<string[]> => {
  const { data } = await tenant.get<Page<StoredLogLine>>('GET', `/v1/jobs/${id}/logs`);
  return data.map(({ message }) => message);
};

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
    const names = (await logOf(tenant, job.id)).map((line) => line.split('=')[0]!).sort();
    const own = ['ATTEMPT', 'FENCE', 'JOB_ID', 'OUTPUT', 'PAYLOAD_FILE', 'TOKEN_FILE', 'URL', 'WORKER_ID'];
    // The shell adds PWD.
    const others = ['HOME', 'LANG', 'PATH', 'PWD', 'REGION', 'TMPDIR', 'TRACEPARENT'];
    expect(names).toEqual([...own.map((name) => `PUNCTUAL_${name}`), ...others].sort());
  });

  it('has a token with which it reports about its own attempt', async () => {
    const tenant = await start();
    const token = await run(tenant, shell('printf \'"%s"\' "$(wc -c < "$PUNCTUAL_TOKEN_FILE")"; pwd >&2'));
    expect(Number(token.result)).toBeGreaterThan(50);
    const job = await tenant.submit(
      shell('cat "$PUNCTUAL_TOKEN_FILE" | rev; echo; while :; do sleep 0.05; done', { timeout: '1m' }),
    );
    // Backwards, because the token itself is never kept in a log.
    await expect.poll(() => logOf(tenant, job.id)).toHaveLength(1);
    const [reversed] = await logOf(tenant, job.id);
    const key = [...reversed!].reverse().join('');
    const body = { fence: 1, progress: 0.5, message: 'half' };
    const answer = await test.ask('POST', `/v1/jobs/${job.id}/progress`, { key, body });
    expect(answer.status).toBe(204);
    const other = await test.ask('POST', `/v1/jobs/${token.id}/progress`, { key, body });
    expect(other.status).toBe(403);
    await test.ask('POST', `/v1/jobs/${job.id}/complete`, { key, body: { fence: 1, result: 'by itself' } });
    expect(await tenant.ended(job.id)).toMatchObject({ state: 'succeeded', result: 'by itself' });
  });

  it('may have secrets in its environment, which are not kept in what it prints', async () => {
    const tenant = await start();
    const set = (name: string, origins: string[]) =>
      tenant.get('PUT', `/v1/secrets/${name}`, { body: { value: 'hunter-42-value', origins } });
    await set('allowed', ['exec']);
    const env = { KEY: { $secret: 'allowed', prefix: 'Bearer ' } };
    const script = 'printf \'{"key": "%s"}\' "$KEY"; echo "$KEY" >&2; exit "$CODE"';
    const good = await run(tenant, shell(script, {}, { env: { ...env, CODE: '0' } }));
    expect(good).toMatchObject({ state: 'succeeded', result: { key: 'Bearer [secret allowed]' } });
    const bad = await run(tenant, shell(script, {}, { env: { ...env, CODE: '3' } }));
    expect(bad.error?.message).toContain('Bearer [secret allowed]');
    expect(JSON.stringify([good, bad, await logOf(tenant, bad.id)])).not.toContain('hunter');
    await set('elsewhere', ['https://example.com']);
    const refused = await run(tenant, shell('env', {}, { env: { KEY: { $secret: 'elsewhere' } } }));
    expect(refused).toMatchObject({ state: 'failed', error: { code: 'SECRET_ORIGIN' } });
  });

  it('tells its lines while it runs', async () => {
    const tenant = await start();
    const { id } = await tenant.submit(shell('echo first; while :; do sleep 0.05; done', { timeout: '1m' }));
    await expect.poll(() => logOf(tenant, id)).toEqual(['first']);
    await tenant.get('POST', `/v1/jobs/${id}/cancel`, { body: {} });
    expect(await tenant.ended(id)).toMatchObject({
      state: 'cancelled',
      attempts: [{ outcome: 'cancelled', execution: { stdout: 'first\n' } }],
    });
  });

  it.each([
    ['{"half": [1, 2', null],
    ['plain text', null],
    ['', null],
    ['"\\377"', null],
    [' [1, 2.50, "x"] \n', [1, 2.5, 'x']],
    ['0', 0],
  ])('that prints %j has the result %j', async (text, result) => {
    const tenant = await start();
    const job = await run(tenant, shell(`printf '${text.replaceAll('%', '%%')}'`));
    expect(job).toMatchObject({ state: 'succeeded', result });
  });

  it('that prints what can be read but not written again has no result', async () => {
    const tenant = await start();
    const nested = "head -c 100000 /dev/zero | tr '\\0' '['; head -c 100000 /dev/zero | tr '\\0' ']'";
    expect(await run(tenant, shell(nested))).toMatchObject({ state: 'succeeded', result: null });
  });

  it('that fails says so with the end of its stderr', async () => {
    const tenant = await start();
    const job = await run(tenant, shell('echo out; echo "no such thing" >&2; exit 4'));
    expect(job.error).toEqual({
      code: 'EXIT_STATUS',
      message: 'The program ended with exit code 4.\nno such thing',
    });
  });

  it.each([
    ['nonexistent-program', 'is no program on this machine'],
    ['./relative', 'must be a name, or a path from / on'],
    ['/etc/passwd', 'is no program on this machine'],
  ])('%s is not run, and never handed to a shell', async (command, why) => {
    const tenant = await start();
    const job = await run(tenant, { target: { type: 'exec', command }, ...ONCE });
    expect(job.error).toMatchObject({ code: 'NOT_RUNNABLE', message: expect.stringContaining(why) });
  });

  it('is refused by workers whose operator does not allow it', async () => {
    const tenant = await start({ exec: { allowCommands: false } });
    expect((await run(tenant, shell('true'))).error).toMatchObject({ code: 'TARGET_UNAVAILABLE' });
  });

  it('is shown with what it was given and the files that it left, which are downloaded with one command', async () => {
    const tenant = await start();
    const script =
      'mkdir "$PUNCTUAL_OUTPUT/a"; printf one > "$PUNCTUAL_OUTPUT/a/1"; printf two > "$PUNCTUAL_OUTPUT/2"';
    const given = { env: { REGION: 'eu-hidden' }, limits: { memory: 134_217_728, files: 64 } };
    const job = await run(tenant, shell(script, {}, given));
    const folder = await temporaryFolder();
    const punctual = async (...args: string[]) => {
      const environment = { PUNCTUAL_URL: test.url, PUNCTUAL_API_KEY: test.apiKey };
      const { cli, stdout } = cliUnderTest({ environment, folder });
      expect(await runCli([...args, '--tenant', tenant.tenant], cli)).toBe(0);
      return stdout();
    };
    const shown = await punctual('job', 'get', job.id);
    expect(shown).toMatch(/target +sh\n/);
    expect(shown).toContain('["-c","mkdir');
    expect(shown).toMatch(/env +REGION\n/);
    expect(shown).not.toContain('eu-hidden');
    expect(shown).toMatch(/limits .*memory 128 MiB \(approximated\)/);
    expect(shown).toMatch(/left .*a\/1 \(3 B\).*artifact pull --job/);
    await punctual('artifact', 'pull', '--job', job.id.slice(0, -1), '--output', 'all');
    expect(readFileSync(join(folder, 'all', 'a', '1'), 'utf8')).toBe('one');
    expect(readFileSync(join(folder, 'all', '2'), 'utf8')).toBe('two');
    expect(await punctual('artifact', 'pull', '--job', job.id, '--only', '2', '--output', '-')).toBe('two');
  });

  it('is run by tasks, schedules, steps of workflows and batches alike', async () => {
    const tenant = await start();
    const { target } = shell('cat');
    await tenant.get('POST', '/v1/tasks', { body: { name: 'cat', target } });
    const byTask = await tenant.submit({ task: 'cat', payload: 1 });
    const workflow = { name: 'w', jobs: { a: { target, payload: 2 }, b: { task: 'cat', after: ['a'] } } };
    const { id } = await tenant.get<{ id: string }>('POST', '/v1/workflows', { body: workflow });
    const batch = await tenant.get<{ id: string }>('POST', '/v1/batches', {
      body: { jobs: [{ target }, { target }] },
    });
    await tenant.get('POST', '/v1/schedules', { body: { name: 's', every: '1h', target } });
    await tenant.get('POST', '/v1/schedules/s/run', { body: {} });
    expect((await tenant.ended(byTask.id)).result).toBe(1);
    for (const path of [`/v1/workflows/${id}`, `/v1/batches/${batch.id}`]) {
      await expect.poll(() => tenant.get('GET', `${path}?wait=10s`)).toMatchObject({ state: 'succeeded' });
    }
    await expect
      .poll(() => tenant.get<Page<Job>>('GET', '/v1/jobs?schedule=s'))
      .toMatchObject({
        data: [{ state: 'succeeded' }],
      });
  });

  it('in bubblewrap has the files of the machine to read, and nothing of the worker', async ({ skip }) => {
    if ('why' in machine.bubblewrap) skip(machine.bubblewrap.why);
    const tenant = await start({ exec: { isolation: 'required' } });
    const script =
      'touch /etc/x 2>/dev/null && echo wrote; touch mine && echo own; ls "$HOME" | tr "\\n" " "; ls .. ; ps -e 2>/dev/null | wc -l';
    const job = await run(tenant, shell(script));
    expect(job.state).toBe('succeeded');
    const lines = await logOf(tenant, job.id);
    expect(lines[0]).toBe('own');
    expect(lines[1]).toMatch(/^mine output payload\.json token /);
    expect(job.attempts[0]!.execution).toMatchObject({ isolation: 'bubblewrap', exitCode: 0 });
  });
});
