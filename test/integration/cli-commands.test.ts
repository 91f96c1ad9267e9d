import { Readable } from 'node:stream';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { runCli } from '../../src/cli/program.js';
import type { Job } from '../../src/core/job.js';
import { PermanentError, task } from '../../src/core/task.js';
import { cliUnderTest } from '../cli-under-test.js';
import { TestNode } from '../node-for-tests.js';
import { withClient } from '../postgres-client.js';
import { ProtocolWorker } from '../protocol-worker.js';

/** Every command against a real node, as people and as programs use it; each test has a tenant of its own. */
let node: TestNode;

beforeAll(async () => {
  node = await TestNode.start();
});
afterAll(() => node.stop());

interface Run {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

interface Shell {
  (...args: string[]): Promise<Run>;
  /** Runs with `--json` and gives the documents that were printed, one per line. */
  json<T = Record<string, unknown>>(...args: string[]): Promise<T[]>;
  withInput(input: string, ...args: string[]): Promise<Run>;
}

function shell(tenant: string, url = node.url): Shell {
  const run = async (args: string[], input = ''): Promise<Run> => {
    const { cli, stdout, stderr } = cliUnderTest({
      environment: { PUNCTUAL_URL: url, PUNCTUAL_API_KEY: node.apiKey },
      stdin: Readable.from([input]),
    });
    const code = await runCli([...args, '--tenant', tenant], cli);
    return { code, stdout: stdout(), stderr: stderr() };
  };
  return Object.assign((...args: string[]) => run(args), {
    json: async <T>(...args: string[]) => {
      const { code, stdout, stderr } = await run([...args, '--json']);
      if (code !== 0) throw new Error(`exit code ${code}: ${stderr}`);
      return stdout
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => JSON.parse(line) as T);
    },
    withInput: (input: string, ...args: string[]) => run(args, input),
  });
}

const greet = task('greet', (input: { name: string }, ctx) => {
  ctx.log(`greeting ${input.name}`);
  return { text: `Hello ${input.name}` };
});
const gone = task('gone', () => {
  throw new PermanentError('it is gone', { code: 'GONE' });
});
const MISSING = '01890000-0000-7000-8000-000000000000';

it('job submit prints the id, with --wait the end; exit codes tell how it ended', async () => {
  const tenant = 'submit';
  const cli = shell(tenant);
  await node.work([greet, gone], { tenant });
  const plain = await cli('job', 'submit', '--task', 'greet', '--payload', '{"name":"Ada"}');
  expect(plain).toMatchObject({ code: 0, stderr: '' });
  expect(await node.ended(plain.stdout.trim(), tenant)).toMatchObject({ result: { text: 'Hello Ada' } });

  const [waited] = await cli.json<Job>(
    'job',
    'submit',
    '--task',
    'greet',
    '--payload',
    '{"name":"B"}',
    '--wait',
  );
  expect(waited).toMatchObject({ state: 'succeeded', result: { text: 'Hello B' }, attempts: [{ fence: 1 }] });
  const failed = await cli('job', 'submit', '--task', 'gone', '--wait');
  expect(failed.code).toBe(3);
  expect(failed.stdout).toContain('failed');
  expect(failed.stderr).toContain('it is gone');
  const late = await cli('job', 'submit', '--task', 'nobody', '--wait', '100ms');
  expect(late).toMatchObject({
    code: 124,
    stderr: expect.stringContaining('it is pending: No live worker serves'),
  });
});

it('job submit takes everything that a submission can say', async () => {
  const cli = shell('options');
  const [job] = await cli.json<Job>(
    ...['job', 'submit', '--task', 'a', '--payload', '[1]', '--run-at', '2099-01-01T00:00:00Z'],
    ...['--queue', 'mail', '--priority', '9', '--key', 'k', '--timeout', '5m', '--max-attempts', '2'],
    ...['--concurrency-key', 'c', '--requires', 'a=b', '--requires', 'c=d', '--hold'],
    ...['--start-before', '2099-01-02T00:00:00Z', '--delivery', 'at-least-once'],
  );
  expect(job).toMatchObject({
    payload: [1],
    runAt: '2099-01-01T00:00:00.000Z',
    queue: 'mail',
    priority: 9,
    key: 'k',
    timeout: '5m',
    maxAttempts: 2,
    concurrencyKey: 'c',
    requires: { a: 'b', c: 'd' },
    hold: true,
    startBefore: '2099-01-02T00:00:00.000Z',
    delivery: 'at-least-once',
  });
  expect(await cli.json('job', 'submit', '--task', 'other', '--key', 'k')).toMatchObject([{ id: job!.id }]);
  expect(await cli.json('job', 'get', '--key', 'k')).toMatchObject([{ id: job!.id }]);
  const again = await cli('job', 'submit', '--task', 'other', '--key', 'k');
  expect(again).toMatchObject({ code: 0, stdout: `${job!.id}\n` });
  expect(again.stderr).toMatch(/has the key k already; this submission differs in: task, payload/);
  const debounced = ['--key', 'k', '--key-mode', 'debounce', '--key-window', '5m'];
  expect(await cli.json('job', 'submit', '--task', 'other', ...debounced)).toMatchObject([
    { id: job!.id, task: 'other', repeated: true, replaced: true },
  ]);
  expect((await cli('job', 'submit', '--task', 'other', '--key-mode', 'replace')).stderr).toContain('"key"');
  const lines = '{"task":"a","key":"k"}\n{"task":"a"}';
  const file = await cli.withInput(lines, 'job', 'submit', '--file', '-');
  expect(file.stderr).toContain('1 of 2 had keys that have jobs already');
});

it('job submit --file submits line by line and prints all ids', async () => {
  const cli = shell('file');
  const lines = Array.from({ length: 250 }, (_, n) => JSON.stringify({ task: 'a', payload: n })).join('\n');
  const { code, stdout } = await cli.withInput(lines, 'job', 'submit', '--file', '-');
  expect(code).toBe(0);
  expect(new Set(stdout.trim().split('\n')).size).toBe(250);
  const [page] = await cli.json<{ data: Job[]; next: null }>('job', 'list', '--all');
  expect(page!.data).toHaveLength(250);
  const bad = await cli.withInput('{"task":"a"}\n{"task":', 'job', 'submit', '--file', '-');
  expect(bad).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining('2') });
});

it('job list, get, why and watch show what there is', async () => {
  const tenant = 'show';
  const cli = shell(tenant);
  const { id } = await node.submit({ task: 'greet', payload: { name: 'C' }, delay: '1h' }, tenant);
  expect((await cli('job', 'list')).stdout).toMatch(new RegExp(`${id}.*greet`));
  const [page] = await cli.json<{ data: Job[] }>('job', 'list', '--state', 'pending', '--task', 'greet');
  expect(page!.data).toMatchObject([{ id }]);
  expect((await cli('job', 'get', id)).stdout).toContain('greet');
  expect(await cli.json('job', 'get', id)).toEqual([await node.job(id, tenant)]);
  expect((await cli('job', 'why', id)).stdout).toMatch(/due-time.*dueIn +(59m|60m|1h)/s);
  expect(await cli.json('job', 'why', id)).toMatchObject([{ jobId: id, gate: 'due-time' }]);

  await node.work([greet, gone], { tenant });
  const watching = cli.json<Job>('job', 'watch', id);
  await node.get('PATCH', `/v1/jobs/${id}`, { tenant, body: { runAt: new Date().toISOString() } });
  expect((await watching).at(-1)).toMatchObject({ id, state: 'succeeded' });
  const failing = await node.submit({ task: 'gone' }, tenant);
  const watched = await cli('job', 'watch', failing.id);
  expect(watched).toMatchObject({ code: 3, stdout: expect.stringContaining('it is gone') });
});

it('job hold, release, cancel, retry and redrive steer', async () => {
  const tenant = 'steer';
  const cli = shell(tenant);
  const { id } = await node.submit({ task: 'gone' }, tenant);
  expect((await cli('job', 'hold', id)).stdout).toContain('on hold');
  expect((await cli('job', 'hold', id)).code).toBe(6);
  expect(await cli.json('job', 'release', id)).toMatchObject([{ id, hold: false }]);
  expect(await cli.json('job', 'cancel', id)).toMatchObject([{ id, state: 'cancelled' }]);
  expect((await cli('job', 'cancel', id)).code).toBe(6);
  await node.work([gone], { tenant });
  // The worker waits for it, so by the time of the answer it may be pending, running or done.
  expect(await cli.json('job', 'retry', id)).toMatchObject([{ id }]);
  await node.ended(id, tenant);
  expect((await cli('job', 'get', id)).stdout).toMatch(/error +PermanentError: it is gone \(GONE\)/);
  expect((await cli('job', 'redrive')).stderr).toMatch(/Give filters .* or --all/);
  expect((await cli('job', 'list', '--error-code', 'GONE')).stdout).toMatch(/ERROR.*GONE: it is gone/s);
  expect(await cli.json('job', 'redrive', '--dry-run')).toEqual([
    { matched: 1, changed: 0, refused: [], dryRun: true, more: false },
  ]);
  expect((await cli('job', 'redrive', '--task', 'gone')).stdout).toBe('1 job sent round again\n');
  const again = await node.ended(id, tenant);
  expect(again.attempts.map(({ fence }) => fence)).toEqual([1, 2]);
});

it('job change moves a waiting job, gives it another priority and another payload', async () => {
  const tenant = 'change';
  const cli = shell(tenant);
  const { id } = await node.submit({ task: 'gone', payload: { to: 'ada' }, delay: '1h' }, tenant);
  const runAt = '2126-12-24T18:00:00.000Z';
  const changed = await cli.json(
    'job',
    'change',
    id,
    '--run-at',
    runAt,
    '--priority',
    '9',
    '--payload',
    '[1]',
  );
  expect(changed).toMatchObject([{ id, runAt, priority: 9, payload: [1] }]);
  expect(await cli('job', 'change', id)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('Give what to change'),
  });
  await cli('job', 'cancel', id);
  expect((await cli('job', 'change', id, '--priority', '1')).code).toBe(6);
});

it('a second cancel of a running job says that it was told to stop already', async () => {
  const tenant = 'twice';
  const cli = shell(tenant);
  const worker = await ProtocolWorker.register(node, {}, tenant);
  const { id } = await node.submit({ task: 'work' }, tenant);
  await worker.claimOne();
  expect((await cli('job', 'cancel', id)).stdout).toBe(`${id}  running, attempt 1; told to stop\n`);
  expect(await cli('job', 'cancel', id)).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/; was told to stop already, (now|\S+ ago), and has not confirmed yet\n$/),
  });
});

it('job cancel, hold, release, retry and delete take several ids, and tell about each', async () => {
  const tenant = 'several';
  const cli = shell(tenant);
  const [one, two, three] = await Promise.all([1, 2, 3].map(() => node.submit({ task: 'nobody' }, tenant)));
  expect(await cli('job', 'hold', one!.id, two!.id)).toEqual({
    ...{ code: 0, stdout: `${one!.id}  put on hold\n${two!.id}  put on hold\n`, stderr: '' },
  });
  expect(await cli.json('job', 'release', one!.id, two!.id)).toEqual([
    { matched: 2, changed: 2, refused: [], dryRun: false, more: false },
  ]);
  expect(await cli('job', 'cancel', one!.id, MISSING)).toEqual({
    code: 5,
    stdout: `${one!.id}  cancelled\n`,
    stderr: `There is no job ${MISSING}. (JOB_NOT_FOUND)\n`,
  });
  const mixed = await cli('job', 'delete', one!.id, two!.id, MISSING);
  expect(mixed).toMatchObject({ code: 1, stdout: `${one!.id}  deleted\n` });
  expect(mixed.stderr).toContain('cancel it first. (JOB_NOT_ENDED)');
  expect(await cli('job', 'delete', three!.id)).toMatchObject({
    ...{ code: 6, stdout: '', stderr: expect.stringContaining('JOB_NOT_ENDED') },
  });
  expect(await cli('job', 'cancel', two!.id, three!.id, '--dry-run')).toMatchObject({
    ...{ code: 0, stdout: `${two!.id}  matches\n${three!.id}  matches\n` },
  });
});

it('job cancel with filters counts first, asks on a terminal, and refuses elsewhere without --yes', async () => {
  const tenant = 'filters';
  const cli = shell(tenant);
  const asked = async (answer: string, ...args: string[]) => {
    const stdin = Object.assign(Readable.from([answer]), { isTTY: true });
    const environment = { PUNCTUAL_URL: node.url, PUNCTUAL_API_KEY: node.apiKey, NO_COLOR: '1' };
    const { cli: terminal, stdout, stderr } = cliUnderTest({ stdin, environment, isTTY: true });
    const code = await runCli([...args, '--tenant', tenant], terminal);
    return { code, stdout: stdout(), stderr: stderr() };
  };
  const filters = ['--queue', 'mail', '--since', '1h'];
  for (let n = 0; n < 3; n++) await node.submit({ task: 'nobody', queue: 'mail' }, tenant);
  const kept = await node.submit({ task: 'nobody' }, tenant);
  expect(await cli('job', 'cancel', ...filters, '--dry-run')).toMatchObject({ stdout: '3 jobs match\n' });
  expect(await cli('job', 'cancel', ...filters)).toMatchObject({
    ...{ code: 2, stdout: '', stderr: expect.stringMatching(/no terminal: add --yes to cancel/) },
  });
  for (const answer of ['n\n', '\n', '', 'yesterday\n']) {
    expect(await asked(answer, 'job', 'cancel', ...filters)).toMatchObject({
      ...{ code: 1, stdout: '', stderr: expect.stringContaining('3 jobs match. Cancel them? [y/N] ') },
    });
  }
  expect(await asked('y\n', 'job', 'cancel', ...filters)).toMatchObject({
    code: 0,
    stdout: '3 jobs cancelled\n',
  });
  expect(await asked('', 'job', 'cancel', ...filters)).toMatchObject({ code: 0, stdout: '0 jobs match\n' });
  expect(await cli.json('job', 'delete', '--state', 'cancelled', '--yes')).toEqual([
    { matched: 3, changed: 3, refused: [], dryRun: false, more: false },
  ]);
  expect(await node.job(kept.id, tenant)).toMatchObject({ state: 'pending' });
  expect((await cli('job', 'list', '--since', '1h')).stdout).toContain(kept.id);
  expect((await cli('job', 'list', '--until', '1h')).stdout).not.toContain(kept.id);
  expect((await cli('job', 'list', '--error-code', 'GONE')).stdout).not.toContain(kept.id);
});

it('job logs prints the log, and follows it to the end', async () => {
  const tenant = 'logs';
  const cli = shell(tenant);
  const { id } = await node.submit({ task: 'greet', payload: { name: 'D' } }, tenant);
  const following = cli('job', 'logs', id, '--follow');
  await node.work([greet], { tenant });
  expect(await following).toMatchObject({ code: 0, stdout: expect.stringContaining('greeting D') });
  expect(await cli.json('job', 'logs', id)).toMatchObject([
    { level: 'info', message: 'greeting D', fence: 1 },
  ]);
});

it('queue list, get, pause and resume', async () => {
  const tenant = 'queues';
  const cli = shell(tenant);
  await node.submit({ task: 'a', queue: 'mail' }, tenant);
  expect((await cli('queue', 'list')).stdout).toMatch(/mail\s+open/);
  expect(await cli.json('queue', 'pause', 'mail')).toMatchObject([{ name: 'mail', paused: true }]);
  expect((await cli('queue', 'pause', 'mail')).code).toBe(6);
  expect((await cli('queue', 'get', 'mail')).stdout).toContain('paused');
  expect((await cli('queue', 'resume', 'mail')).code).toBe(0);
  expect(await cli('queue', 'get', 'nowhere')).toMatchObject({ code: 5, stdout: '' });
});

it('cluster status tells who leads', async () => {
  const [status] = await shell('cluster').json('cluster', 'status');
  expect(status).toMatchObject({
    paused: false,
    shards: [{ id: 0, leader: node.node.id, epoch: 1 }],
    nodes: [{ id: node.node.id, url: node.url, state: 'alive', leads: [0] }],
  });
});

it('cluster status marks a node that is silent, and says which shard a node leads', async () => {
  await withClient(node.database.url, async (db) => {
    await db.query(`INSERT INTO punctual.nodes (id, url, version, started_at, last_seen)
      VALUES ('node-silent', 'http://127.0.0.1:1', '0.0.0', 0, extract(epoch FROM now()) * 1000 - 120000)`);
    try {
      const { stdout } = await shell('cluster')('cluster', 'status');
      expect(stdout).toMatch(new RegExp(`${node.node.id}.* alive +shard 0 `));
      expect(stdout).toMatch(/node-silent.* dead +- +2m/);
    } finally {
      await db.query(`DELETE FROM punctual.nodes WHERE id = 'node-silent'`);
    }
  });
});

it('worker list and drain', async () => {
  const tenant = 'workers';
  const cli = shell(tenant);
  const worker = await ProtocolWorker.register(node, { name: 'mailer' }, tenant);
  expect((await cli('worker', 'list')).stdout).toMatch(/mailer\s+alive/);
  expect(await cli.json('worker', 'drain', worker.id)).toMatchObject([{ id: worker.id, state: 'draining' }]);
  expect((await cli('worker', 'drain', MISSING)).code).toBe(5);
});

it('an id may be shortened to its beginning, as long as only one of the tenant begins so', async () => {
  const tenant = 'short-ids';
  const cli = shell(tenant);
  // One request makes ids that begin alike: they hold the time of the request.
  const jobs = '{"task":"a","delay":"1h"}\n{"task":"a"}\n{"task":"a"}';
  const submitted = await cli.withInput(jobs, 'job', 'submit', '--file', '-');
  const [id, live, ended] = submitted.stdout.split('\n') as [string, string, string];
  await cli('job', 'cancel', ended);
  await node.submit({ task: 'a' }, 'another-tenant');
  for (const each of [id, live, ended]) {
    expect(await cli.json('job', 'get', each.slice(0, 18))).toMatchObject([{ id: each }]);
    expect(await cli.json('job', 'get', each.replaceAll('-', '').toUpperCase())).toMatchObject([
      { id: each },
    ]);
  }
  expect((await cli('job', 'hold', id.slice(0, 18))).stdout).toContain(id);
  const several = await cli('job', 'why', id.slice(0, 8));
  expect(several).toMatchObject({ code: 6, stdout: '' });
  for (const each of [id, live, ended]) expect(several.stderr).toContain(each);
  expect(await shell('nobody')('job', 'get', id.slice(0, 18))).toMatchObject({ code: 5, stdout: '' });
  const none = await cli('job', 'get', 'order-42');
  expect(none).toMatchObject({ code: 2, stderr: expect.stringContaining('<id>: must be the id of a job') });

  const worker = await ProtocolWorker.register(node, { name: 'short' }, tenant);
  expect(await cli.json('worker', 'drain', worker.id.slice(0, 18))).toMatchObject([{ id: worker.id }]);
  expect(await cli.json('job', 'list', '--worker', worker.id.slice(0, 18))).toMatchObject([{ data: [] }]);
});

it('errors name what was typed, not the field of the request', async () => {
  const cli = shell('inputs');
  const errorOf = async (...args: string[]) => (await cli(...args)).stderr.split('\n')[0];
  expect(await errorOf('job', 'submit', '--task', 'a b')).toMatch(/^error: --task: must be /);
  expect(await errorOf('job', 'submit', '--task', 'a', '--timeout', '2h')).toBe(
    'error: --timeout: must be at most 20m, the limit that PUNCTUAL_MAX_JOB_TIMEOUT sets on the nodes (INVALID_REQUEST)',
  );
  expect(await errorOf('queue', 'get', 'a b')).toMatch(/^error: <name>: must be /);
  expect(await errorOf('schedule', 'create', 's', '--task', 'a', '--cron', 'x')).toMatch(/^error: --cron: /);
  const lines = '{"task":"a"}\n\n{"task":"a","timeout":"2h"}\n';
  const file = await cli.withInput(lines, 'job', 'submit', '--file', '-');
  expect(file).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('error: line 3 of the file (/timeout): '),
  });
});

it('completion gets the names that a tenant has', async () => {
  const tenant = 'completion';
  const worker = await ProtocolWorker.register(node, { name: 'w', tasks: ['listed'] }, tenant);
  const { id } = await node.submit({ task: 'submitted', queue: 'mail:high' }, tenant);
  const values = async (kind: string) =>
    (await shell(tenant)('__values', kind)).stdout.split('\n').filter((line) => line !== '');
  expect(await values('queue')).toEqual(['mail:high']);
  expect(await values('task')).toEqual(['listed', 'submitted']);
  expect(await values('job')).toEqual([id]);
  expect(await values('worker')).toEqual([worker.id]);
  expect(await values('schedule')).toEqual([]);
});

it('--watch shows it again until it is interrupted', async () => {
  const interruption = new AbortController();
  const { cli, stdout } = cliUnderTest({
    environment: { PUNCTUAL_URL: node.url, PUNCTUAL_API_KEY: node.apiKey },
    interrupted: interruption.signal,
  });
  const watching = runCli(['queue', 'list', '--json', '--watch', '--tenant', 'watch'], cli);
  await expect.poll(() => stdout().split('\n').length).toBeGreaterThan(2);
  interruption.abort();
  expect(await watching).toBe(130);
});

it('doctor finds a node well, and says what to do when there is none', async () => {
  const [healthy] = await shell('doctor').json<{ ok: boolean; checks: { status: string }[] }>(
    ...['doctor', '--database-url', node.database.url],
  );
  expect(healthy!.ok).toBe(true);
  expect(healthy!.checks.every((check) => check.status !== 'fail')).toBe(true);
  const ill = await shell('doctor', 'http://127.0.0.1:1')('doctor');
  expect(ill.code).toBe(1);
  expect(ill.stdout).toMatch(/fail .*127\.0\.0\.1:1/);
});

it.each([
  ['a job that is not there', 5, 'JOB_NOT_FOUND', ['job', 'get', MISSING]],
  ['an id that is none', 2, 'INVALID_REQUEST', ['job', 'get', '42']],
  ['a bad name', 2, 'INVALID_REQUEST', ['job', 'submit', '--task', 'a b']],
  ['a bad priority', 2, 'USAGE', ['job', 'submit', '--task', 'a', '--priority', '10']],
  ['nothing to submit', 2, 'USAGE', ['job', 'submit']],
  ['no choice of jobs', 2, 'USAGE', ['job', 'cancel', '--yes']],
  ['ids and filters at once', 2, 'USAGE', ['job', 'cancel', MISSING, '--queue', 'mail', '--yes']],
  ['everything and filters at once', 2, 'USAGE', ['job', 'hold', '--all', '--queue', 'mail', '--yes']],
  ['a state that cannot be cancelled', 2, 'USAGE', ['job', 'cancel', '--state', 'failed', '--yes']],
  ['a time that is none', 2, 'USAGE', ['job', 'list', '--since', 'yesterday']],
  ['an unknown option', 2, 'USAGE', ['job', 'list', '--everything']],
  ['an unknown command', 2, 'USAGE', ['job', 'frobnicate']],
  ['a job that cannot be retried', 5, 'JOB_NOT_FOUND', ['job', 'retry', MISSING]],
])('%s ends with exit code %i and an error that programs can read', async (_, code, error, args) => {
  const run = await shell('errors')(...args, '--json');
  expect(run).toMatchObject({ code, stdout: '' });
  const document = JSON.parse(run.stderr) as { error: { code: string; detail: string } };
  expect(document.error.code).toBe(error);
  expect(document.error.detail).not.toBe('');
});

it('a node that cannot be reached is exit code 7, a wrong key 4', async () => {
  expect((await shell('away', 'http://127.0.0.1:1')('job', 'list')).code).toBe(7);
  const { cli } = cliUnderTest({ environment: { PUNCTUAL_URL: node.url, PUNCTUAL_API_KEY: 'pk_op_wrong' } });
  expect(await runCli(['job', 'list'], cli)).toBe(4);
});
