import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { runCli } from '../../../src/cli/program.js';
import { cliUnderTest } from '../../cli-under-test.js';
import { HttpReceiver } from '../../http-receiver.js';
import { nodeForTest } from '../../node-for-tests.js';
import { temporaryFolder } from '../../temporary-folder.js';

it('a job and a schedule that call a URL are made on the command line', async () => {
  const node = await nodeForTest();
  await node.work([], { targets: ['http'], allowAddresses: ['127.0.0.1'], queues: ['*'] });
  const receiver = await HttpReceiver.start();
  const folder = await temporaryFolder();
  onTestFinished(() => rm(folder, { recursive: true }));
  const file = join(folder, 'order.json');
  await writeFile(file, '{"id": 7}');
  const environment = { PUNCTUAL_URL: node.url, PUNCTUAL_API_KEY: node.apiKey };
  const run = async (...args: string[]) => {
    const { cli, stdout, stderr } = cliUnderTest({ environment });
    return { code: await runCli(args, cli), stdout: stdout(), stderr: stderr() };
  };
  const url = `${receiver.url}/orders/7`;
  const submit = ['job', 'submit', '--http'];
  await run(...submit, 'put', url, '--header', 'X-Team: blue: 1', '--data', `@${file}`, '--wait');
  await run(...submit, url, '--data', 'plain', '--wait');
  expect(receiver.calls.all).toMatchObject([
    { method: 'PUT', path: '/orders/7', body: '{"id":7}', headers: { 'x-team': 'blue: 1' } },
    { method: 'POST', body: 'plain', headers: { 'content-type': 'text/plain; charset=utf-8' } },
  ]);

  const schedule = ['schedule', 'create', 'often', '--every', '1h', '--http', 'POST', url, '--data', '[1]'];
  expect(await run(...schedule)).toMatchObject({ code: 0 });
  expect(await run('schedule', 'run', 'often')).toMatchObject({ code: 0 });
  await receiver.calls.times(3);
  expect(receiver.calls.all[2]).toMatchObject({ method: 'POST', body: '[1]' });

  expect(await run(...submit, 'POST', url, 'x')).toMatchObject({ code: 2, stdout: '' });
  expect(await run('job', 'submit', 'task', '--data', '1')).toMatchObject({ code: 2 });
  expect(await run(...submit, url, '--header', 'nothing')).toMatchObject({ code: 2 });
  expect(await run(...submit, url, '--header', 'punctual-token: x')).toMatchObject({
    stdout: '',
    stderr: expect.stringContaining('is a header that the call itself sets'),
  });
  expect(receiver.calls.all).toHaveLength(3);
});
