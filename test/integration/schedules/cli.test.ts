import { afterAll, beforeAll, expect, it } from 'vitest';
import { runCli } from '../../../src/cli/program.js';
import { schedule as scheduleInCode } from '../../../src/client/schedules-as-code.js';
import type { Job } from '../../../src/core/job.js';
import { task } from '../../../src/core/task.js';
import type { Page, ScheduleView } from '../../../src/core/wire.js';
import { cliUnderTest } from '../../cli-under-test.js';
import { TestNode } from '../../node-for-tests.js';

let node: TestNode;
beforeAll(async () => {
  node = await TestNode.start();
});
afterAll(() => node.stop());

/** Runs `punctual schedule …` for a tenant. */
function shell(tenant: string) {
  return async (...args: string[]) => {
    const { cli, stdout, stderr } = cliUnderTest({
      environment: { PUNCTUAL_URL: node.url, PUNCTUAL_API_KEY: node.apiKey },
    });
    const code = await runCli(['schedule', ...args, '--tenant', tenant], cli);
    return { code, stdout: stdout(), stderr: stderr() };
  };
}

it('a schedule is made, listed, shown, paused, resumed, run, filled and deleted', async () => {
  const schedule = shell('all');
  const made = await schedule(
    ...['create', 'nightly', '--task', 'report', '--cron', '30 2 * * *', '--timezone', 'Europe/Berlin'],
    ...[
      '--dst-gap',
      'skip',
      '--catch-up',
      '6h',
      '--overlap',
      'queue',
      '--jitter',
      '10s',
      '--late-after',
      '1m',
    ],
    ...['--payload', '{"n":1}', '--queue', 'reports', '--max-attempts', '2', '--json'],
  );
  expect(made.code).toBe(0);
  expect(JSON.parse(made.stdout)).toMatchObject({
    ...{ name: 'nightly', task: 'report', cron: '30 2 * * *', timezone: 'Europe/Berlin', overlap: 'queue' },
    dst: { gap: 'skip', overlap: 'first' },
    catchUp: { within: '6h' },
    retry: { maxAttempts: 2 },
    payload: { n: 1 },
  } satisfies Partial<ScheduleView>);
  expect((await schedule('create', 'nightly', '--task', 'report', '--every', '1h')).code).toBe(6);

  const list = await schedule('list');
  expect(list.stdout).toContain('nightly');
  expect(list.stdout).toContain('30 2 * * * (Europe/Berlin)');
  expect((await schedule('pause', 'nightly')).stdout).toContain('paused');
  expect((await schedule('pause', 'nightly')).code).toBe(6);
  expect((await schedule('resume', 'nightly')).stdout).toContain('active');
  const run = await schedule('run', 'nightly');
  expect(run.stdout).toMatch(/^[0-9a-f-]{36}\n$/);
  const get = await schedule('get', 'nightly');
  expect(get.stdout).toContain('manual');
  expect(get.stdout).toContain(run.stdout.trim());

  const range = ['--from', '2026-10-24T12:00:00Z', '--to', '2026-10-26T12:00:00Z'];
  const dry = await schedule('backfill', 'nightly', ...range, '--dry-run');
  expect(dry).toMatchObject({ code: 0, stdout: '2026-10-25T00:30:00.000Z\n2026-10-26T01:30:00.000Z\n' });
  expect(dry.stderr).toContain('2 occurrences would run');
  expect((await schedule('backfill', 'nightly', ...range)).stderr).toContain('2 occurrences run now');

  expect((await schedule('delete', 'nightly')).stdout).toBe('deleted nightly\n');
  expect((await schedule('get', 'nightly')).code).toBe(5);
});

it('a schedule is shown with what its jobs get, its owner, and how its newest job ended', async () => {
  const tenant = 'failing';
  const schedule = shell(tenant);
  const broken = task('broken', async () => {
    throw Object.assign(new Error('no'), { code: 'E_BROKEN' });
  });
  await node.work([broken], { tenant, log: false });
  const body = {
    ...{ name: 'tick', task: 'broken', every: '1s', payload: { n: 1 }, timeout: '30s' },
    retry: { maxAttempts: 1, backoff: { base: '3s' } },
  };
  const made = await node.get<ScheduleView>('POST', '/v1/schedules', { tenant, body });
  expect(made.lastJob).toBeNull();
  const last = async () => (await node.get<ScheduleView>('GET', '/v1/schedules/tick', { tenant })).lastJob;
  await expect.poll(last, { timeout: 20_000 }).toMatchObject({ state: 'failed', errorCode: 'E_BROKEN' });
  await schedule('pause', 'tick');
  await expect.poll(last, { timeout: 20_000 }).toMatchObject({ state: 'failed' });
  const { stdout } = await schedule('get', 'tick');
  expect(stdout).toContain(`${(await last())!.id} failed (E_BROKEN)`);
  for (const text of ['{"n":1}', '30s', 'base 3s']) expect(stdout).toContain(text);
  const listed = await node.get<Page<ScheduleView>>('GET', '/v1/schedules', { tenant });
  expect(listed.data[0]).not.toHaveProperty('lastJob');

  const inCode = [scheduleInCode('broken', { name: 'mine', every: '1h' })];
  await node.connect(tenant).schedules(inCode, { owner: 'shop' });
  expect((await schedule('get', 'mine')).stdout).toMatch(/managed by +shop/);
}, 60_000);

it('a preview shows both clocks and marks what a change of them has moved', async () => {
  const preview = await shell('preview')(
    ...['preview', '--cron', '30 2 * * *', '--timezone', 'Europe/Berlin', '--from', '2027-03-27T00:00:00Z'],
    ...['--count', '3'],
  );
  expect(preview.code).toBe(0);
  expect(preview.stdout).toContain('2027-03-28T01:30:00.000Z');
  expect(preview.stdout).toContain('Sun 2027-03-28 03:30:00');
  expect(preview.stdout).toMatch(/03:30:00.*02:30/);
});

it('a preview of a schedule shows when it is due, and when it would be if it were changed', async () => {
  const schedule = shell('previewed');
  await schedule('create', 'nightly', '--task', 'a', '--cron', '30 2 * * *', '--timezone', 'Europe/Berlin');
  const from = ['--from', '2027-01-01T00:00:00Z', '--count', '1'];
  const asItIs = await schedule('preview', 'nightly', ...from);
  expect(asItIs.stdout).toContain('2027-01-01T01:30:00.000Z');
  expect(asItIs.stdout).toContain('Fri 2027-01-01 02:30:00');
  const elsewhere = await schedule('preview', 'nightly', '--timezone', 'Asia/Tokyo', ...from);
  expect(elsewhere.stdout).toContain('2027-01-01T17:30:00.000Z');
  await schedule('create', 'often', '--task', 'a', '--every', '7m');
  const { nextAt } = JSON.parse((await schedule('get', 'often', '--json')).stdout);
  const next = JSON.parse((await schedule('preview', 'often', '--count', '1', '--json')).stdout);
  expect(next.data).toEqual([{ at: nextAt }]);
  expect((await schedule('preview', 'nobody')).code).toBe(5);
});

it('a preview of a schedule with jitter shows when its jobs will start', async () => {
  const tenant = 'jitter';
  const schedule = shell(tenant);
  await schedule('create', 'spread', '--task', 'a', '--every', '3s', '--jitter', '2s');
  const { data } = JSON.parse((await schedule('preview', 'spread', '--json')).stdout) as {
    data: { at: string; dueAt: string }[];
  };
  expect((await schedule('preview', 'spread')).stdout).toMatch(/^AT +STARTS +THERE/);
  const due = new Map(data.map(({ at, dueAt }) => [at, dueAt]));
  const jobs = async () => {
    const { data } = await node.get<Page<Job>>('GET', '/v1/jobs?schedule=spread', { tenant });
    return data.filter(({ scheduledAt }) => due.has(scheduledAt!));
  };
  await expect.poll(async () => (await jobs()).length).toBeGreaterThan(0);
  for (const { scheduledAt, runAt } of await jobs()) expect(runAt).toBe(due.get(scheduledAt!));
});

it.each([
  [['create', 'a', '--task', 'b'], 2, 'exactly one'],
  [['create', 'a', '--task', 'b', '--cron', '61 * * * *'], 2, '--cron: '],
  [['create', 'a', '--task', 'b', '--every', 'often'], 2, 'duration'],
  [['create', 'a', '--every', '1h'], 2, '--task'],
  [['create', 'a', '--task', 'b', '--every', '1h', '--catch-up', 'some'], 2, 'none, latest, all'],
  [['preview', '--cron', '0 0 30 2 *'], 2, '--cron: '],
  [['run', 'nobody'], 5, 'schedule list'],
] as const)('%j ends with %i and says why', async (args, code, text) => {
  const run = await shell('wrong')(...args);
  expect(run.code).toBe(code);
  expect(run.stderr).toContain(text);
  expect(run.stdout).toBe('');
});
