import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { runCli } from '../../src/cli/program.js';
import type { AuditView } from '../../src/core/audit.js';
import type { Page } from '../../src/core/wire.js';
import { cliUnderTest } from '../cli-under-test.js';
import { TestNode } from '../node-for-tests.js';
import { temporaryFolder } from '../temporary-folder.js';

let node: TestNode;
beforeAll(async () => {
  node = await TestNode.start();
  const tenant = node.newTenant();
  await tenant.submit({ task: 'work', queue: 'mail' });
  for (const verb of ['pause', 'resume']) await tenant.get('POST', `/v1/queues/mail/${verb}`);
});
afterAll(() => node.stop());

async function punctual(...args: string[]) {
  const shell = cliUnderTest({ environment: { PUNCTUAL_URL: node.url, PUNCTUAL_API_KEY: node.apiKey } });
  const code = await runCli(['audit', ...args], shell.cli);
  return { code, stdout: shell.stdout(), stderr: shell.stderr() };
}

it('entries are listed as a table or as JSON, newest first, by filters', async () => {
  const { stdout } = await punctual('list');
  expect(stdout).toMatch(/^WHEN +ACTION +SUBJECT +TENANT +WHO +FROM +OUTCOME\n/);
  expect(stdout).toMatch(/queue\.resume +mail +tenant-1 +tester +127\.0\.0\.1 +done\n.*queue\.pause +mail/);
  const list = await punctual(
    'list',
    '--json',
    '--action',
    'queue.pause',
    '--tenant',
    'tenant-1',
    '--since',
    '1h',
  );
  const page: Page<AuditView> = JSON.parse(list.stdout);
  expect(page.data).toMatchObject([{ action: 'queue.pause', subject: 'mail', after: { paused: true } }]);
  const { stdout: one } = await punctual('list', '--limit', '1', '--json');
  expect(JSON.parse(one).data).toMatchObject([{ action: 'queue.resume' }]);
  expect(await punctual('list', '--action', 'queue.paint')).toMatchObject({ code: 2 });
});

it('the making of an operator key in the database is recorded too', async () => {
  const { stdout } = await punctual('list', '--json', '--action', 'key.create');
  expect(JSON.parse(stdout).data).toMatchObject([
    { keyId: null, keyName: 'database access', address: null, tenant: null, after: { name: 'tester' } },
  ]);
});

it('an export holds the whole chain, and is verified as the node and the database are', async () => {
  const lines = await vi.waitFor(
    async () => {
      const { stdout } = await punctual('export');
      const found = stdout.split('\n').slice(0, -1);
      expect(found).toHaveLength(3);
      return found;
    },
    { timeout: 20_000 },
  );
  const streamed = await node.get<string>('GET', '/v1/audit?format=ndjson');
  expect(streamed).toBe(lines.map((line) => `${line}\n`).join(''));
  const path = join(await temporaryFolder(), 'audit.jsonl');
  await writeFile(path, streamed);
  const whole = { code: 0, stdout: '3 entries, the chain is whole\n', stderr: '' };
  expect(await punctual('verify')).toEqual(whole);
  expect(await punctual('verify', '--file', path)).toEqual(whole);
  expect(await punctual('verify', '--database-url', node.database.url)).toEqual(whole);
  expect(await punctual('verify', '--file', path, '--database-url', 'postgres://x')).toMatchObject({
    code: 2,
  });
  expect(await punctual('verify', '--file', `${path}.gone`)).toMatchObject({ code: 2 });
  // Without its last entry an export looks whole: only a node or the database knows the end.
  await writeFile(path, lines.slice(0, -1).join('\n'));
  expect(await punctual('verify', '--file', path)).toMatchObject({ code: 0 });
  await writeFile(path, [lines[0], lines[2]].join('\n'));
  expect(await punctual('verify', '--file', path)).toMatchObject({
    code: 1,
    stdout: expect.stringContaining('missing: shard 0, entry 2 is missing before entry 3'),
  });
});
