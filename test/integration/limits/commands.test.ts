import { expect, it } from 'vitest';
import { runCli } from '../../../src/cli/program.js';
import { cliUnderTest } from '../../cli-under-test.js';
import { nodeForTest, type TestNode } from '../../node-for-tests.js';
import { ProtocolWorker } from '../../protocol-worker.js';

/** Runs one command line against a node. */
function shell(node: TestNode) {
  return async (...args: string[]) => {
    const environment = { PUNCTUAL_URL: node.url, PUNCTUAL_API_KEY: node.apiKey };
    const { cli, stdout, stderr } = cliUnderTest({ environment });
    const code = await runCli(args, cli);
    return { code, stdout: stdout(), stderr: stderr() };
  };
}

it('queue limit sets what is named and leaves the rest; list and get show it', async () => {
  const run = shell(await nodeForTest());
  const set = await run(
    ...['queue', 'limit', 'mail', '--concurrency', '5', '--per-key', '2', '--rate', '100/1s', '--json'],
  );
  expect(JSON.parse(set.stdout)).toMatchObject({
    ...{ name: 'mail', concurrency: 5, keyConcurrency: 2, weight: 1 },
    rate: { limit: 100, per: '1s', burst: 5 },
  });
  const changed = await run('queue', 'limit', 'mail', '--weight', '3', '--rate', '6/1m', '--burst', '2');
  expect(changed.stdout).toMatch(/limit +5\nper key +2\nrate +6\/1m\nburst +2\nweight +3\n/);
  expect((await run('queue', 'list')).stdout).toMatch(/mail +open +0 +0 +0 +5 +6\/1m +3 +-/);
  const none = await run('queue', 'limit', 'mail', '--concurrency', 'none', '--rate', 'none', '--json');
  expect(JSON.parse(none.stdout)).toMatchObject({ concurrency: null, rate: null, weight: 3 });
  expect((await run('queue', 'get', 'mail')).stdout).toMatch(/limit +-\nper key +2\nrate +-\nweight +3\n/);
});

it('a limit that is none is refused before anything is changed', async () => {
  const node = await nodeForTest();
  const run = shell(node);
  for (const args of [
    ['queue', 'limit', 'q'],
    ['queue', 'limit', 'q', '--rate', '100'],
    ['queue', 'limit', 'q', '--concurrency', '0'],
    ['queue', 'limit', 'q', '--weight', '1001'],
    ['queue', 'limit', 'q', '--burst', '5'],
    ['queue', 'limit', 'q', '--rate', 'none', '--burst', '5'],
    ['tenant', 'limit', 'q'],
    ['tenant', 'list', '--tenant', 'q'],
    ['worker', 'run', '--rate', 'fast'],
  ]) {
    expect(await run(...args)).toMatchObject({ code: 2, stdout: '' });
  }
  expect(await node.get('GET', '/v1/queues')).toMatchObject({ data: [] });
});

it('tenant create, list and limit', async () => {
  const run = shell(await nodeForTest());
  const made = await run('tenant', 'create', 'acme', '--name', 'Acme Inc.', '--weight', '3');
  expect(made).toMatchObject({ code: 0, stdout: expect.stringMatching(/tenant +acme\nname +Acme Inc\.\n/) });
  expect(await run('tenant', 'create', 'acme')).toMatchObject({
    code: 6,
    stderr: expect.stringContaining('punctual tenant limit'),
  });
  await run('tenant', 'create', 'other');
  const limited = await run('tenant', 'limit', 'acme', '--rate', '50/1s', '--burst', '7', '--json');
  expect(JSON.parse(limited.stdout)).toMatchObject({ weight: 3, rate: { limit: 50, per: '1s', burst: 7 } });
  const { stdout } = await run('tenant', 'list');
  expect(stdout).toMatch(/acme +Acme Inc\. +0 +3 +50\/1s/);
  expect(stdout).toMatch(/other +other +0 +1 +-/);
  expect(await run('tenant', 'limit', 'nobody', '--weight', '2')).toMatchObject({ code: 5 });
});

it('worker list shows rates and whom a worker serves', async () => {
  const node = await nodeForTest();
  const rate = { limit: 10, per: '1s' } as const;
  await ProtocolWorker.register(node, { name: 'everywhere', queues: ['*'], shared: true, rate });
  await ProtocolWorker.register(node, { name: 'here' });
  const { stdout } = await shell(node)('worker', 'list');
  expect(stdout).toMatch(/everywhere +alive +0 +10 +10\/1s +all +\* +work/);
  expect(stdout).toMatch(/here +alive +0 +10 +- +own +default +work/);
});
