import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { removeEmbeddedPostgres } from '../../src/embedded/embedded-postgres.js';
import { ONE_ORDER_MS } from '../../src/host/processes.js';
import { createTestDatabase, type TestDatabase } from '../database.js';
import { withClient } from '../postgres-client.js';
import { BUILT_SDK, PunctualProcess, punctual } from '../punctual-process.js';
import { temporaryFolder } from '../temporary-folder.js';

const TASKS = `
import { task } from ${JSON.stringify(BUILT_SDK)};
export const double = task('double', async (input) => ({ value: input.value * 2 }));
export const broken = task('broken', async () => { throw new Error('no luck'); });
export const slow = task('slow', (input) => new Promise((resolve) => setTimeout(resolve, input.ms)));
`;

const folders: string[] = [];
const running: PunctualProcess[] = [];

let database: TestDatabase;

beforeEach(async () => {
  database = await createTestDatabase();
});

afterEach(async () => {
  await Promise.all(
    running.splice(0).map((each) => (each.child.exitCode === null ? each.kill('SIGTERM') : each.ended)),
  );
  for (const folder of folders.splice(0)) await removeEmbeddedPostgres(folder);
  await database.drop();
});

/** A folder with tasks; it doubles as the data folder, so that removing it ends what was left behind. */
async function newFolder(): Promise<string> {
  const folder = await temporaryFolder();
  folders.push(folder);
  await writeFile(join(folder, 'tasks.mjs'), TASKS);
  return folder;
}

async function up(folder: string, port: string, ...args: string[]): Promise<PunctualProcess> {
  const each = new PunctualProcess(['up', '--data', '.', '--port', port, '--module', 'tasks.mjs', ...args], {
    folder,
  });
  running.push(each);
  await each.prints('stdout', /^ready /m);
  return each;
}

/** A command against the `up` of the same folder. */
const ask = (folder: string, ...args: string[]) =>
  punctual(args, { folder, environment: { PUNCTUAL_DATA: '.' } });

/** The processes that an `up` has started, by the names of their logs. */
async function pidsOf(folder: string): Promise<number[]> {
  const lines = execFileSync('ps', ['-eo', 'pid=,args='], { encoding: 'utf8' }).split('\n');
  const { url } = JSON.parse(await readFile(join(folder, 'credentials.json'), 'utf8'));
  const port = new URL(url).port;
  return lines
    .filter(
      (line) => line.includes(`--url ${url}`) || line.includes(`server --host 127.0.0.1 --port ${port}`),
    )
    .map((line) => Number.parseInt(line, 10));
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

async function until(condition: () => Promise<boolean> | boolean): Promise<void> {
  while (!(await condition())) await sleep(50);
}

describe('punctual up', () => {
  it('runs jobs, keeps its key and its data over a restart, and leaves nothing running', async () => {
    const folder = await newFolder();
    const first = await up(folder, '0');
    expect(first.stdout.match(/^ready /gm)).toHaveLength(1);
    expect((await stat(join(folder, 'credentials.json'))).mode & 0o777).toBe(0o600);
    const before = JSON.parse(await readFile(join(folder, 'credentials.json'), 'utf8'));

    const done = await ask(
      folder,
      'job',
      'submit',
      '--task',
      'double',
      '--payload',
      '{"value":21}',
      '--wait',
      '--json',
    );
    expect(done.code).toBe(0);
    const job = JSON.parse(done.stdout);
    expect(job).toMatchObject({ state: 'succeeded', result: { value: 42 } });

    const failed = await ask(
      folder,
      'job',
      'submit',
      '--task',
      'broken',
      '--max-attempts',
      '1',
      '--wait',
      '20s',
    );
    expect(failed).toMatchObject({ code: 3, stderr: expect.stringContaining('no luck') });
    const late = await ask(folder, 'job', 'submit', '--task', 'double', '--delay', '1h', '--wait', '100ms');
    expect(late.code).toBe(124);
    expect((await ask(folder, 'job', 'get', '01900000-0000-7000-8000-000000000000')).code).toBe(5);
    expect((await ask(folder, '--api-key', 'wrong', 'job', 'list')).code).toBe(4);
    const health = JSON.parse((await ask(folder, 'doctor', '--data', '.', '--json')).stdout);
    expect(health).toMatchObject({ ok: true });
    const status = JSON.parse((await ask(folder, 'cluster', 'status', '--json')).stdout);
    expect(status).toMatchObject({ shards: [{ leader: 'node-1' }], nodes: [{ id: 'node-1' }] });

    const administrator = JSON.parse((await ask(folder, 'db', 'url', '--administrator', '--json')).stdout);
    await withClient(administrator.url, (client) => client.query('CREATE ROLE shop'));
    const granted = await ask(folder, 'db', 'grant', 'submit', 'shop', '--json');
    expect(JSON.parse(granted.stdout)).toMatchObject({ role: 'shop', tenant: 'default' });
    const { stdout: url } = await ask(folder, 'db', 'url');
    await withClient(url.trim(), async (client) => {
      await client.query(`SELECT punctual.submit_job('default', '{"task": "double", "hold": true}')`);
    });

    expect((await stat(join(folder, 'secret-key'))).mode & 0o777).toBe(0o600);
    const secretKey = (await readFile(join(folder, 'secret-key'), 'utf8')).trim();
    const setting = ['secret', 'set', 'stripe', '--origin', 'https://api.example.com', '--value-file'];
    expect((await ask(folder, ...setting, 'tasks.mjs')).code).toBe(0);

    const pids = await pidsOf(folder);
    expect(pids).toHaveLength(2);
    if (process.platform === 'linux') {
      // The nodes are given the master key, the workers, which run the code of others, are not.
      const environments = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/environ`, 'utf8')));
      expect(environments.filter((text) => text.includes(secretKey))).toHaveLength(1);
    }
    for (const log of await readdir(join(folder, 'logs'))) {
      expect(await readFile(join(folder, 'logs', log), 'utf8')).not.toContain(secretKey);
    }
    expect(await first.kill('SIGTERM')).toMatchObject({ code: 0 });
    expect(pids.filter(isAlive)).toEqual([]);
    expect((await ask(folder, 'job', 'list')).code).toBe(7);
    expect((await ask(folder, 'db', 'url')).code).toBe(7);

    await up(folder, '0');
    const after = JSON.parse(await readFile(join(folder, 'credentials.json'), 'utf8'));
    expect(after.apiKey).toBe(before.apiKey);
    expect((await readFile(join(folder, 'secret-key'), 'utf8')).trim()).toBe(secretKey);
    const { checks } = JSON.parse((await ask(folder, 'doctor', '--data', '.', '--json')).stdout);
    expect(checks).toContainEqual({
      ...{ name: 'secrets', status: 'ok', detail: expect.stringContaining('encrypted with the master key') },
    });
    const again = await ask(folder, 'job', 'get', job.id, '--json');
    expect(JSON.parse(again.stdout)).toMatchObject({ id: job.id, state: 'succeeded' });
  });

  it('stops everything at once when it is interrupted twice, its database too', async () => {
    const folder = await newFolder();
    const each = await up(folder, '0');
    await ask(folder, 'job', 'submit', '--task', 'slow', '--payload', '{"ms":60000}');
    await until(async () =>
      (await ask(folder, 'job', 'list', '--state', 'running', '--json')).stdout.includes('slow'),
    );
    const postmaster = Number.parseInt(
      await readFile(join(folder, 'postgres', 'postmaster.pid'), 'utf8'),
      10,
    );
    const pids = [...(await pidsOf(folder)), postmaster];
    each.child.kill('SIGINT');
    await each.prints('stderr', /stopping/);
    // Two signals in a row are one order.
    await sleep(ONE_ORDER_MS + 50);
    expect(await each.kill('SIGINT')).toMatchObject({ code: 130 });
    await until(() => !pids.some(isAlive));
  });

  it('starts killed processes again, and a cluster that was started paused is not paused again', async () => {
    const folder = await newFolder();
    const each = await up(folder, '0', '--database-url', database.url, '--paused');
    await each.prints('stderr', /dispatch is paused/);
    expect((await ask(folder, 'cluster', 'resume')).code).toBe(0);
    const workers = JSON.parse((await ask(folder, 'worker', 'list', '--json')).stdout).data;
    expect(workers).toHaveLength(1);
    for (const pid of await pidsOf(folder)) process.kill(pid, 'SIGKILL');
    await each.prints('stderr', /node-1 runs again/);
    await each.prints('stderr', /worker-1 runs again/);
    const done = await ask(
      folder,
      'job',
      'submit',
      '--task',
      'double',
      '--payload',
      '{"value":1}',
      '--wait',
      '30s',
    );
    expect(done.code).toBe(0);
  });

  it('killed in the middle, its processes stop by themselves, and the next start finishes everything', async () => {
    const folder = await newFolder();
    const each = await up(folder, '0', '--slots', '2');
    const { port } = new URL(JSON.parse(await readFile(join(folder, 'credentials.json'), 'utf8')).url);
    const lines = Array.from({ length: 20 }, () => '{"task":"slow","payload":{"ms":300}}').join('\n');
    const submitted = await punctual(['job', 'submit', '--file', '-'], {
      folder,
      environment: { PUNCTUAL_DATA: '.' },
      input: lines,
    });
    expect(submitted.stdout.trim().split('\n')).toHaveLength(20);
    const pids = await pidsOf(folder);
    await each.kill('SIGKILL');

    // On the same port, so that the old worker can still deliver what it finishes.
    const next = await up(folder, port, '--until-idle');
    expect(await next.ended).toMatchObject({ code: 0 });
    expect(next.stderr).toContain('no job is left to run');
    await until(() => pids.every((pid) => !isAlive(pid)));

    await up(folder, port);
    const { data } = JSON.parse((await ask(folder, 'job', 'list', '--task', 'slow', '--json')).stdout);
    expect(data).toHaveLength(20);
    expect(data.every((job: { state: string }) => job.state === 'succeeded')).toBe(true);
  });

  it('refuses a taken port before it starts anything, and names the option', async () => {
    const folder = await newFolder();
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const run = await punctual(['up', '--data', 'data', '--port', String(port)], { folder });
    server.close();
    expect(run).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining('--port') });
    await expect(stat(join(folder, 'data'))).rejects.toMatchObject({ code: 'ENOENT' });
  });

  it('ends with the error of a module that cannot be loaded', async () => {
    const folder = await newFolder();
    const args = [
      'up',
      '--data',
      '.',
      '--database-url',
      database.url,
      '--port',
      '0',
      '--module',
      'broken.mjs',
    ];
    await writeFile(join(folder, 'broken.mjs'), 'export const = 1;');
    const run = await punctual(args, { folder });
    expect(run).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining('broken.mjs') });
  });

  it('with --demo, an interrupt removes the schedule of the demo: a later start would have nobody for its jobs', async () => {
    const folder = await newFolder();
    const own = ['--database-url', database.url, '--nodes', '1', '--workers', '0'];
    const demo = await up(folder, '0', '--demo', ...own);
    for (const line of [/a nap is scheduled/, /a workflow A > B, C > D is/, /a batch of 3 naps .* is/])
      await demo.prints('stderr', line);
    const names = () =>
      withClient(database.url, async (client) => {
        const { rows } = await client.query('SELECT name FROM punctual.schedules WHERE deleted_at IS NULL');
        return rows.map(({ name }) => name as string);
      });
    expect(await names()).toEqual(['demo']);
    expect(await demo.kill('SIGINT')).toMatchObject({
      stderr: expect.stringContaining('the schedule demo was removed'),
    });
    expect(await names()).toEqual([]);
  });

  it('looks for its modules before it makes anything', async () => {
    const folder = await newFolder();
    const run = await punctual(['up', '--data', 'data', '--port', '0', '--module', 'missing.mjs'], {
      folder,
    });
    expect(run).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining('missing.mjs') });
    await expect(stat(join(folder, 'data'))).rejects.toMatchObject({ code: 'ENOENT' });
  });
});
