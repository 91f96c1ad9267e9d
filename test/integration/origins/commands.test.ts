import { expect, it } from 'vitest';
import { runCli } from '../../../src/cli/program.js';
import { cliUnderTest } from '../../cli-under-test.js';
import { OriginTester } from './origin-tester.js';

const NAME = 'https://example.com';

it('origin limit, list and reset', async () => {
  const tester = await OriginTester.start();
  const environment = { PUNCTUAL_URL: tester.node.url, PUNCTUAL_API_KEY: tester.node.apiKey };
  const run = async (...args: string[]) => {
    const { cli, stdout, stderr } = cliUnderTest({ environment });
    const code = await runCli(['origin', ...args], cli);
    return { code, stdout: stdout(), stderr: stderr() };
  };
  const limited = await run('limit', NAME, '--concurrency', '2', '--rate', '100/1s', '--json');
  expect(JSON.parse(limited.stdout)).toMatchObject({ origin: NAME, concurrency: 2, rate: { limit: 100 } });
  expect((await run('limit', NAME, '--concurrency', 'none')).stdout).toMatch(/limit +-\nrate +-\n/);
  expect(await run('limit', NAME)).toMatchObject({ code: 2, stdout: '' });
  expect(await run('limit', 'example.com', '--concurrency', '2')).toMatchObject({ code: 2, stdout: '' });

  await tester.open(`${NAME}/hook`);
  await tester.call(`${NAME}/hook`);
  expect((await run('list')).stdout).toMatch(
    /https:\/\/example\.com +open +5 +0 +1 +\d+ms +\d+ms +- +- +\d{4}-/,
  );
  expect((await run('reset', NAME)).stdout).toMatch(/state +closed\n/);
  await tester.claim(1);
  expect((await run('limit', NAME, '--usual')).stdout).toBe(`${NAME} has the usual limits\n`);
  expect(await run('limit', NAME, '--usual')).toMatchObject({ code: 5 });
});
