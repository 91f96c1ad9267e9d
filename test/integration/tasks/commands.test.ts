import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { expect, it } from 'vitest';
import { runCli } from '../../../src/cli/program.js';
import type { TaskView } from '../../../src/core/wire.js';
import { cliUnderTest } from '../../cli-under-test.js';
import { nodeForTest, type TestNode } from '../../node-for-tests.js';
import { temporaryFolder } from '../../temporary-folder.js';

/** Runs one command line against a node. */
function shell(node: TestNode, folder = import.meta.dirname) {
  return async (args: readonly string[], stdin = '') => {
    const environment = { PUNCTUAL_URL: node.url, PUNCTUAL_API_KEY: node.apiKey };
    const { cli, stdout, stderr } = cliUnderTest({ environment, folder, stdin: Readable.from([stdin]) });
    const code = await runCli(args, cli);
    return { code, stdout: stdout(), stderr: stderr() };
  };
}

it('a task is defined, listed, shown and deleted from the shell, and jobs by its name take it', async () => {
  const node = await nodeForTest();
  const run = shell(node);
  const defined = await run([
    ...[
      'task',
      'define',
      'send-mail',
      '--queue',
      'mail',
      '--priority',
      '7',
      '--timeout',
      '30s',
      '--max-attempts',
      '6',
    ],
    ...['--requires', 'region=eu', '--concurrency-key-path', 'to', '--description', 'Sends a mail.'],
    ...['--retry', '{"backoff": {"base": "1s"}}', '--delivery', 'at-least-once', '--handler', 'mailer'],
  ]);
  expect(defined.code).toBe(0);
  expect(defined.stdout).toMatch(/task +send-mail\n/);
  expect(await node.get('GET', '/v1/tasks/send-mail')).toMatchObject({
    ...{ queue: 'mail', priority: 7, timeout: '30s', retry: { maxAttempts: 6, backoff: { base: '1s' } } },
    ...{ requires: { region: 'eu' }, concurrencyKey: { path: 'to' }, description: 'Sends a mail.' },
    ...{ delivery: 'at-least-once', target: { type: 'handler', name: 'mailer' } },
  });
  const job = JSON.parse(
    (await run(['job', 'submit', '--task', 'send-mail', '--payload', '{"to":"a"}', '--json'])).stdout,
  );
  expect(job).toMatchObject({ queue: 'mail', maxAttempts: 6, concurrencyKey: 'a' });
  expect((await run(['job', 'get', job.id])).stdout).toContain('send-mail');
  expect((await run(['task', 'list'])).stdout).toMatch(/send-mail +mail +7 +6 +30s +at-least-once +tester/);
  expect(JSON.parse((await run(['task', 'list', '--json'])).stdout).data).toHaveLength(1);
  expect((await run(['task', 'get', 'send-mail'])).stdout).toMatch(/key +payload: to\n/);
  expect((await run(['__values', 'task'])).stdout).toBe('send-mail\n');
  expect(await run(['task', 'delete', 'send-mail'])).toMatchObject({
    code: 0,
    stdout: 'deleted send-mail\n',
  });
  expect(await run(['task', 'get', 'send-mail'])).toMatchObject({ code: 5 });
});

it('a definition and a schema come from files, or from stdin', async () => {
  const node = await nodeForTest();
  const folder = await temporaryFolder();
  const run = shell(node, folder);
  await writeFile(
    join(folder, 'task.json'),
    '{"queue": "mail", "retry": {"maxAttempts": 2, "backoff": {"base": "1s"}}}',
  );
  await writeFile(join(folder, 'schema.json'), '{"type": "object"}');
  await run([
    'task',
    'define',
    'a',
    '--file',
    'task.json',
    '--payload-schema',
    'schema.json',
    '--max-attempts',
    '5',
  ]);
  expect(await node.get('GET', '/v1/tasks/a')).toMatchObject({
    ...{
      queue: 'mail',
      retry: { maxAttempts: 5, backoff: { base: '1s' } },
      payloadSchema: { type: 'object' },
    },
  });
  expect((await run(['task', 'define', 'b', '--file', '-'], '{"priority": 2}')).code).toBe(0);
  expect(await node.get('GET', '/v1/tasks/b')).toMatchObject({ priority: 2 });
});

it('what is wrong is refused with what was typed', async () => {
  const node = await nodeForTest();
  const folder = await temporaryFolder();
  const run = shell(node, folder);
  await writeFile(join(folder, 'schema.json'), '{"pattern": "(a)"}');
  for (const [args, word] of [
    [['--priority', '10'], '--priority'],
    [['--retry', '[1]'], 'maxAttempts'],
    [['--payload-schema', 'schema.json'], '--payload-schema (/pattern)'],
    [['--payload-schema', 'missing.json'], 'cannot be read'],
    [['--delivery', 'at-most-once', '--max-attempts', '3'], '--max-attempts'],
    [['--concurrency-key', 'a', '--concurrency-key-path', 'b'], 'cannot be used with'],
    [['--concurrency-key-path', 'a..b'], '--concurrency-key-path'],
    [['--file', '-', '--payload-schema', '-'], 'stdin'],
    [['--file', 'schema.json'], '/pattern'],
  ] as const) {
    const { code, stdout, stderr } = await run(['task', 'define', 'x', ...args], 'nothing');
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain(word);
  }
  expect(await node.get('GET', '/v1/tasks')).toMatchObject({ data: [] });
});

it('task set changes the fields that are named, and none takes one back to its default', async () => {
  const node = await nodeForTest();
  const run = shell(node);
  const retry = { maxAttempts: 2, backoff: { base: '1s' } };
  const before = { queue: 'mail', timeout: '30s', retry, requires: { a: 'b' }, description: 'old' };
  const define = (body: object) => node.get('POST', '/v1/tasks', { body: { name: 'a', ...body } });
  const definition = async () => {
    const { queue, timeout, retry, requires, description, target, delivery, ...rest } =
      await node.get<TaskView>('GET', '/v1/tasks/a');
    return { queue, timeout, retry, requires, description, target, delivery, key: rest.concurrencyKey };
  };
  await define(before);
  const set = await run(['task', 'set', 'a', '--timeout', '1m', '--max-attempts', '7']);
  expect(set).toMatchObject({ code: 0, stdout: expect.stringMatching(/timeout +1m\n/) });
  // The pauses of the rule for retries stay.
  expect(await definition()).toEqual({ ...before, timeout: '1m', retry: { ...retry, maxAttempts: 7 } });
  await run([
    'task',
    'set',
    'a',
    '--queue',
    'none',
    '--requires',
    'none',
    '--retry',
    'none',
    '--handler',
    'h',
  ]);
  expect(await definition()).toEqual({
    ...{ timeout: '1m', description: 'old', target: { type: 'handler', name: 'h' } },
  });
  await run(['task', 'set', 'a', '--handler', 'none', '--max-attempts', '3', '--concurrency-key-path', 'to']);
  expect(await definition()).toEqual({
    ...{ timeout: '1m', description: 'old', retry: { maxAttempts: 3 }, key: { path: 'to' } },
  });
  // A queue may have that name; a file has null for the default.
  const changes = '{"queue": "none", "timeout": null, "retry": {"backoff": {"base": "2s"}}}';
  const byFile = ['task', 'set', 'a', '--file', '-', '--concurrency-key', 'none', '--max-attempts', '4'];
  expect((await run(byFile, changes)).code).toBe(0);
  expect(await definition()).toEqual({
    ...{ queue: 'none', description: 'old', retry: { maxAttempts: 4, backoff: { base: '2s' } } },
  });
  await run(['task', 'set', 'a', '--delivery', 'at-least-once']);
  expect(await definition()).toMatchObject({ delivery: 'at-least-once' });
  await run(['task', 'set', 'a', '--delivery', 'none', '--description', 'none']);
  expect(await definition()).toMatchObject({ queue: 'none', delivery: undefined, description: undefined });
});

it('task set says what is missing or wrong, and define that it replaces', async () => {
  const node = await nodeForTest();
  const run = shell(node);
  expect(await run(['task', 'set', 'a'])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('--queue'),
  });
  for (const change of [
    ['--queue', 'mail'],
    ['--max-attempts', '3'],
  ])
    expect(await run(['task', 'set', 'a', ...change])).toMatchObject({ code: 5 });
  await run(['task', 'define', 'a', '--queue', 'none']);
  expect(await node.get('GET', '/v1/tasks/a')).toMatchObject({ queue: 'none' });
  const wrong = await run(['task', 'set', 'a', '--concurrency-key-path', 'a..b']);
  expect(wrong).toMatchObject({ code: 2, stderr: expect.stringContaining('--concurrency-key-path') });
  expect((await run(['task', 'define', '--help'])).stdout).toMatch(/replace its whole\s+definition/);
});
