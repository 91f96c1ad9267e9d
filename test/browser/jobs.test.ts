import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { NewKeyView } from '../../src/core/access.js';
import type { Job } from '../../src/core/job.js';
import { PermanentError, task } from '../../src/core/task.js';
import type { JobPage } from '../../src/core/wire.js';
import { TestNode } from '../node-for-tests.js';
import { ProtocolWorker } from '../protocol-worker.js';
import { expectAccessible } from './accessibility.js';
import { Visit } from './visit.js';

/** What would run if any text became markup. */
const SCRIPT = '<script>window.planted = 1</script><img src="x" onerror="window.planted = 1">';

const greet = task('greet', (input: { name: string }) => ({ text: `Hello ${input.name}` }));
const fail = task('fail', async (_: unknown, ctx) => {
  ctx.log.warn(`before ${SCRIPT}`);
  const cause = new Error(`the cause ${SCRIPT}`);
  throw new PermanentError(`no ${SCRIPT}`, { code: `BAD ${SCRIPT}`.slice(0, 60), cause });
});

let node: TestNode;
beforeAll(async () => {
  node = await TestNode.start({ settings: { workerTimeout: '2d', allowCommands: true } });
  await node.work([greet, fail], { queues: ['quick'] });
});
afterAll(() => node.stop());

const rowsOf = (page: Page) =>
  page.getByRole('table', { name: 'Jobs' }).locator('tbody tr:not([aria-hidden])');
const bar = (page: Page) => page.getByRole('combobox', { name: 'Filter jobs' });
const count = async (query: string) => (await node.get<JobPage>('GET', `/v1/jobs?${query}`)).data.length;

describe('the list', () => {
  it('is filtered in the bar, with completion and words for mistakes, and the address has the filter', async () => {
    const failed = await node.submit({
      task: 'fail',
      queue: 'quick',
      payload: { customer: 7 },
      key: 'first one',
    });
    const others = [1, 2].map((n) =>
      node.submit({ task: 'greet', queue: 'quick', payload: { name: `${n}` } }),
    );
    for (const { id } of [failed, ...(await Promise.all(others))]) await node.ended(id);
    const { page } = await Visit.begin(node, { path: '/jobs?queue=quick' });
    await expect.poll(() => rowsOf(page).count()).toBe(3);
    await expectAccessible(page);

    await page.keyboard.press('/');
    await bar(page).pressSequentially(' sta');
    await page.getByRole('option', { name: 'state' }).click();
    // At once: the caret is where the word goes on, whatever the page has drawn by then.
    await page.keyboard.type('fai');
    await bar(page).press('ArrowDown');
    await expectAccessible(page);
    await bar(page).press('Enter');
    await expect.poll(() => new URL(page.url()).search).toBe('?queue=quick&state=failed');
    await expect.poll(() => rowsOf(page).count()).toBe(1);

    await bar(page).fill('task:greet nonsense:1');
    await bar(page).press('Enter');
    await page.getByRole('alert').getByText('There is no filter nonsense').waitFor();
    await bar(page).fill('key:"first one" payload.customer=7');
    await bar(page).press('Enter');
    await expect.poll(() => rowsOf(page).count()).toBe(1);
    await page.goBack();
    await expect.poll(() => bar(page).inputValue()).toBe('queue:quick state:failed');

    await page.getByRole('button', { name: 'Succeeded' }).click();
    await expect.poll(() => rowsOf(page).count()).toBe(2);
    await page.getByRole('button', { name: 'Clear the filter' }).click();
    await bar(page).fill('task:nobody-has-it');
    await bar(page).press('Enter');
    await page.getByRole('heading', { name: 'No job fits' }).waitFor();
    await page.getByText('punctual job list --task nobody-has-it').waitFor();
    await bar(page).fill(failed.id);
    await bar(page).press('Enter');
    await expect.poll(() => page.url()).toContain(`/jobs/${failed.id}`);
  });

  it('keeps a view by its name', async () => {
    const { page } = await Visit.begin(node, { path: '/jobs?state=failed&task=fail' });
    await page.getByRole('button', { name: 'Views' }).click();
    await page.getByRole('button', { name: 'Keep this view' }).click();
    await page.getByLabel('Name').fill('Bad mail');
    await page.getByRole('button', { name: 'Keep', exact: true }).click();
    await page.goto(`${node.url}/jobs`);
    await page.getByRole('button', { name: 'Views' }).click();
    await page.getByRole('link', { name: 'Bad mail' }).click();
    await expect.poll(() => new URL(page.url()).search).toBe('?state=failed&task=fail');
  });

  it('changes rows as things happen, and announces new jobs instead of inserting them', async () => {
    const worker = await ProtocolWorker.register(node, { queues: ['live'] });
    const waiting = await node.submit({ task: 'work', queue: 'live' });
    const { page } = await Visit.begin(node, { path: '/jobs?queue=live' });
    await rowsOf(page).getByText('pending').waitFor();
    const { fence } = await worker.claimOne();
    await rowsOf(page).getByText('running').waitFor();
    await worker.report({ jobId: waiting.id, fence, outcome: 'succeeded' });
    await rowsOf(page).getByText('succeeded').waitFor();

    await node.submit({ task: 'work', queue: 'live' });
    await node.submit({ task: 'work', queue: 'elsewhere' });
    const news = page.getByRole('button', { name: '1 new job · show' });
    await news.waitFor();
    expect(await rowsOf(page).count()).toBe(1);
    await news.click();
    await expect.poll(() => rowsOf(page).count()).toBe(2);
    await news.waitFor({ state: 'detached' });
  });

  it('jobs are changed by the filter after they were counted, or one by one', async () => {
    const jobs = Array.from({ length: 40 }, () => ({ task: 'nobody', queue: 'many' }));
    await node.get('POST', '/v1/jobs/bulk', { body: { jobs } });
    const { page } = await Visit.begin(node, { path: '/jobs?queue=many' });
    await expect.poll(() => rowsOf(page).count()).toBeGreaterThan(10);

    for (const each of [0, 1]) await rowsOf(page).nth(each).getByRole('checkbox').check();
    await page.getByRole('group', { name: 'The chosen jobs' }).getByText('2 jobs chosen').waitFor();
    await page.getByRole('button', { name: 'Hold', exact: true }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText('2 jobs will be kept from starting.').waitFor();
    await dialog.getByRole('button', { name: 'Hold 2 jobs' }).click();
    await dialog.getByText('Done. Hold: 2 jobs.').waitFor();
    await expect.poll(() => rowsOf(page).getByText('on hold').count()).toBe(2);
    await dialog.getByRole('button', { name: 'Undo' }).click();
    await page.getByText('Taken back: 2 jobs.').waitFor();
    await expect.poll(() => rowsOf(page).getByText('on hold').count()).toBe(0);

    await page.getByRole('button', { name: 'Change all that fit' }).click();
    expect(await page.getByRole('button', { name: 'Retry …' }).isEnabled()).toBe(true);
    await page.getByRole('button', { name: 'Cancel …' }).click();
    await dialog.getByText('40 jobs will be cancelled.').waitFor();
    expect(await count('queue=many&state=pending')).toBe(40);
    await expectAccessible(page);
    await dialog.getByRole('button', { name: 'Cancel 40 jobs' }).click();
    await dialog.getByText('Done. Cancel: 40 jobs.').waitFor();
    expect(await count('queue=many&state=cancelled')).toBe(40);
    await dialog.getByRole('button', { name: 'Close' }).last().click();
    await page.getByRole('button', { name: 'Waiting' }).click();
    await page.getByRole('heading', { name: 'No job fits' }).waitFor();
    await page.getByRole('button', { name: 'Change all that fit' }).click();
    // Jobs that wait have not ended.
    expect(await page.getByRole('button', { name: 'Delete …' }).isEnabled()).toBe(false);
  });
});

describe('a job', () => {
  it('is steered from its page, and says why it waits', async () => {
    const { id } = await node.submit({
      task: 'nobody',
      queue: 'alone',
      payload: { big: 1 },
      delay: '1h',
      priority: 3,
    });
    const { page } = await Visit.begin(node, { path: `/jobs/${id}` });
    const state = (text: string) => page.getByRole('heading', { level: 1 }).getByText(text).waitFor();
    await state('pending');
    await page.getByRole('region', { name: 'Why it waits' }).getByText('due in').waitFor();
    await page.getByRole('button', { name: 'Hold', exact: true }).click();
    await state('on hold');
    await page.getByRole('button', { name: 'Undo' }).click();
    await state('pending');

    await page.getByRole('button', { name: 'Change …' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Priority').selectOption('8');
    await dialog.getByLabel('Payload').fill('{"big": 12345678901234567890}');
    await expectAccessible(page);
    await dialog.getByRole('button', { name: 'Change the job' }).click();
    await page.getByText('12345678901234567890').waitFor();
    expect(await node.job(id)).toMatchObject({ priority: 8 });
    await page.getByRole('button', { name: 'Undo' }).last().click();
    await expect.poll(async () => (await node.job(id)).priority).toBe(3);
    expect((await node.job(id)).payload).toEqual({ big: 1 });

    await page.getByRole('button', { name: 'Change …' }).click();
    await dialog.getByLabel('Due').fill('2020-01-01T00:00:00');
    await dialog.getByRole('button', { name: 'Change the job' }).click();
    await page.getByText('No live worker serves queue alone').waitFor();

    await page.getByRole('button', { name: 'Cancel', exact: true }).click();
    await page.getByRole('button', { name: 'Keep as it is' }).click();
    await page.getByRole('button', { name: 'Cancel', exact: true }).click();
    await page.getByRole('button', { name: 'Cancel the job' }).click();
    await state('cancelled');
    await page.getByRole('button', { name: 'Retry', exact: true }).click();
    await dialog.getByRole('button', { name: 'Retry' }).click();
    await state('pending');
    await page.getByRole('button', { name: 'Cancel', exact: true }).click();
    await page.getByRole('button', { name: 'Cancel the job' }).click();
    await state('cancelled');
    await page.getByRole('button', { name: 'Delete', exact: true }).click();
    await page.getByRole('button', { name: 'Delete the job' }).click();
    await expect.poll(() => new URL(page.url()).pathname).toBe('/jobs');
    expect((await node.ask('GET', `/v1/jobs/${id}`)).status).toBe(404);
  });

  it('shows its attempts, progress and log while it runs, and its result when it has ended', async () => {
    const worker = await ProtocolWorker.register(node, { queues: ['slow'] });
    const { id } = await node.submit({
      ...{ task: 'work', queue: 'slow', payload: {} },
      retry: { backoff: { base: '1ms' } },
    });
    const first = await worker.claimOne();
    const error = {
      message: 'the first time',
      stack: 'Error: the first time\n    at a.ts:1\nCaused by: Error: deeper\n    at b.ts:2',
    };
    await worker.report({ jobId: id, fence: first.fence, outcome: 'failed', error });
    const { fence } = await worker.claimOne();
    const { page } = await Visit.begin(node, { path: `/jobs/${id}` });
    const attempts = page.getByRole('region', { name: 'Attempts' });
    await attempts.getByText('failed', { exact: true }).waitFor();
    expect(await attempts.getByRole('img', { name: /backoff .*running/ }).count()).toBe(1);
    await attempts.getByRole('button', { name: 'more about attempt 1' }).click();
    await attempts.getByText('Caused by').waitFor();
    await attempts.getByText('at b.ts:2').waitFor();

    await page.getByText('No lines yet.').waitFor();
    const log = (message: string) =>
      node.get('POST', `/v1/jobs/${id}/logs`, {
        body: { fence, lines: [{ at: new Date().toISOString(), level: 'info', message }] },
      });
    await log('the first line');
    await page.getByRole('log').getByText('the first line').waitFor();
    await node.get('POST', `/v1/jobs/${id}/progress`, {
      body: { fence, progress: 0.25, message: 'a quarter' },
    });
    await page.getByText('a quarter').waitFor();
    await page.getByText('25 %').waitFor();
    await expectAccessible(page);
    await page.getByRole('button', { name: 'Pause' }).click();
    await log('the second line');
    await worker.report({ jobId: id, fence, outcome: 'succeeded', result: { answer: 42 } });
    await page.getByRole('region', { name: 'Result' }).first().getByText('42').waitFor();
    await attempts.getByText('succeeded', { exact: true }).waitFor();
    await expectAccessible(page);
  });

  it('that was a program shows how it ended, what kept it apart, its limits and the end of what it printed', async () => {
    const worker = await ProtocolWorker.register(node, {
      ...{ queues: ['programs'], targets: ['exec'], tasks: [] },
    });
    const target = { type: 'exec', command: '/bin/packer', limits: { memory: 67_108_864 } } as const;
    const { id } = await node.submit({ target, queue: 'programs', retry: { maxAttempts: 1 } });
    const { fence } = await worker.claimOne();
    const execution = {
      isolation: 'none',
      notIsolated: 'unshare failed (EPERM)',
      limits: {
        memory: { value: 67_108_864, how: 'enforced' },
        cpuTime: { value: '10s', how: 'approximated' },
        disk: { value: 1_048_576, how: 'absent' },
      },
      ...{ exitCode: 3, stderr: `cannot read ${SCRIPT}`, cut: true },
    } as const;
    const error = { message: 'exit 3', code: 'EXIT_STATUS' };
    await worker.report({ jobId: id, fence, outcome: 'failed', error, execution });
    const { page } = await Visit.begin(node, { path: `/jobs/${id}` });
    await page.getByText('exit 3, not isolated').waitFor();
    await page.getByRole('button', { name: 'more about attempt 1' }).click();
    const ran = page.getByRole('region', { name: 'How attempt 1 ran' });
    await ran.getByText('with exit code 3').waitFor();
    const text = await ran.textContent();
    for (const part of [
      'none: unshare failed (EPERM)',
      'Memory64.0 MiBkept by the kernel',
      'Processor time10smeasured now and then',
      'Disk1.0 MiBnot kept',
      `cannot read ${SCRIPT}`,
      'lines in between were left out',
    ])
      expect(text).toContain(part);
    expect(await page.evaluate('window.planted')).toBeUndefined();
    await expectAccessible(page);
    await page.setViewportSize({ width: 360, height: 740 });
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(360);
  });

  it('of a workflow shows the steps around it; one that is not there says so', async () => {
    const jobs = {
      first: { task: 'nobody', queue: 'steps' },
      second: { task: 'nobody', queue: 'steps', after: ['first'] },
      third: { task: 'nobody', queue: 'steps', after: ['second'] },
    };
    const { jobs: steps } = await node.get<{ jobs: Record<string, { id: string }> }>(
      'POST',
      '/v1/workflows',
      {
        body: { name: 'flow', jobs },
      },
    );
    const visit = await Visit.begin(node, { path: `/jobs/${steps.second!.id}` });
    const { page } = visit;
    await page.getByRole('region', { name: 'Step second of a workflow' }).waitFor();
    await page.getByRole('region', { name: 'Why it waits' }).getByText('step first').waitFor();
    await page.getByRole('link', { name: 'third' }).first().click();
    await page.getByRole('region', { name: 'Step third of a workflow' }).waitFor();
    expect(await page.getByRole('link', { name: 'first' }).count()).toBe(1);
    visit.expects(/status of 404/);
    await page.goto(`${node.url}/jobs/01890000-0000-7000-8000-000000000000`);
    await page.getByRole('heading', { name: 'There is no such job' }).waitFor();
  });
});

it('a script that is planted in key, payload, error, log and labels is shown as text', async () => {
  const job = await node.submit({
    ...{ task: 'fail', queue: 'quick', key: SCRIPT, concurrencyKey: SCRIPT },
    payload: { [SCRIPT]: SCRIPT },
  });
  await node.ended(job.id);
  const held = await node.submit({
    task: 'fail',
    queue: 'quick',
    requires: { [SCRIPT.slice(0, 120)]: SCRIPT },
    hold: true,
  });
  const call = await node.submit({
    target: { type: 'http', url: `https://example.com/?${SCRIPT}`, headers: { 'x-a': SCRIPT } },
    ...{ hold: true, queue: 'quick' },
  });
  const { page } = await Visit.begin(node, { path: '/jobs' });
  for (const path of [
    '/jobs',
    `/jobs/${job.id}`,
    `/jobs/${held.id}`,
    `/jobs/${call.id}`,
    '/errors',
    `/submit?from=${job.id}`,
  ]) {
    await page.goto(node.url + path);
    await page.getByText('window.planted').first().waitFor({ state: 'attached' });
    if (path === `/jobs/${job.id}`) await page.getByRole('log').getByText('window.planted').waitFor();
    expect(
      await page.evaluate('[window.planted, document.querySelectorAll("main img, main script").length]'),
    ).toEqual([undefined, 0]);
  }
});

it('a key that may only read sees no buttons that change anything', async () => {
  const body = { name: 'reader', scopes: ['read'], tenant: 'default' };
  const { key } = await node.get<NewKeyView>('POST', '/v1/keys', { body });
  const { id } = await node.submit({ task: 'nobody', queue: 'readers', hold: true });
  const { page } = await Visit.begin(node, { key, path: '/jobs?queue=readers' });
  await expect.poll(() => rowsOf(page).count()).toBe(1);
  expect(await page.getByRole('checkbox').count()).toBe(0);
  for (const name of ['Change all that fit', 'Submit a job'])
    expect(await page.getByText(name).count(), name).toBe(0);
  await rowsOf(page).getByRole('link').first().click();
  await page.getByRole('heading', { level: 1 }).getByText('on hold').waitFor();
  for (const name of ['Release', 'Cancel', 'Change …', 'Edit and run again'])
    expect(await page.getByText(name, { exact: true }).count(), name).toBe(0);
  expect((await node.job(id)).hold).toBe(true);
});

it('on a phone the list and a job can be read without scrolling sideways', async () => {
  const job: Job = await node.submit({ task: 'fail', queue: 'quick' });
  await node.ended(job.id);
  const { page } = await Visit.begin(node, { path: '/jobs', size: { width: 360, height: 740 } });
  for (const path of ['/jobs', `/jobs/${job.id}`, '/errors', '/submit']) {
    await page.goto(node.url + path);
    await page.getByRole('heading', { level: 1 }).waitFor();
    expect(await page.evaluate('document.documentElement.scrollWidth'), path).toBe(360);
    await expectAccessible(page);
  }
});
