import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { expect, it } from 'vitest';
import { runCli } from '../../src/cli/program.js';
import type { NewKeyView } from '../../src/core/access.js';
import { connect } from '../../src/sdk/connect.js';
import { cliUnderTest } from '../cli-under-test.js';
import { nodeForTest } from '../node-for-tests.js';
import { temporaryFolder } from '../temporary-folder.js';

it('login keeps address and key per profile, for its owner alone, once a node has taken the key', async () => {
  const node = await nodeForTest();
  const home = await temporaryFolder();
  const environment = { HOME: home };
  const path = join(home, '.config', 'punctual', 'profiles.json');
  const body = { name: 'shop', tenant: 'acme', scopes: ['submit', 'read'] };
  const { key } = await node.get<NewKeyView>('POST', '/v1/keys', { body });
  const punctual = async (args: readonly string[], stdin?: string) => {
    const shell = cliUnderTest({
      environment,
      folder: home,
      ...(stdin !== undefined && { stdin: Readable.from([stdin]) }),
    });
    const code = await runCli(args, shell.cli);
    return { code, stdout: shell.stdout(), stderr: shell.stderr() };
  };
  const refused = await punctual(['login', node.url], 'pk_op_made_up\n');
  expect(refused.code).toBe(4);
  expect(refused.stderr).toContain('Type or pipe in a valid key');
  expect(refused.stderr).not.toContain('--api-key');
  await expect(stat(path)).rejects.toThrow('ENOENT');

  const login = await punctual(['login', node.url, '--profile', 'shop'], `${key}\n`);
  expect([login.code, login.stdout]).toEqual([0, `Logged in to ${node.url} as profile shop.\n`]);
  expect((await stat(path)).mode & 0o777).toBe(0o600);
  expect(JSON.parse(await readFile(path, 'utf8'))).toEqual({
    profiles: { shop: { url: node.url, apiKey: key } },
  });
  const submitted = await punctual(['job', 'submit', '--task', 'greet', '--profile', 'shop']);
  expect(submitted.code).toBe(0);
  expect((await punctual(['job', 'list'])).code).not.toBe(0);
  expect((await punctual(['job', 'list', '--profile', 'other'])).stderr).toContain(
    'There is no profile other',
  );

  // A second profile, without the end of the line, stays beside the first.
  expect((await punctual(['login', node.url], node.apiKey)).code).toBe(0);
  expect((await punctual(['tenant', 'list'])).code).toBe(0);
  expect((await punctual(['tenant', 'create', 'other', '--profile', 'shop'])).code).toBe(4);
  expect((await punctual(['logout'])).code).toBe(0);
  expect((await punctual(['tenant', 'list'])).code).not.toBe(0);
  expect((await punctual(['job', 'list', '--profile', 'shop'])).code).toBe(0);
  expect((await punctual(['logout', '--profile', 'shop'])).code).toBe(0);
  await expect(stat(path)).rejects.toThrow('ENOENT');
});

it('the SDK connects with a profile', async () => {
  const node = await nodeForTest();
  const home = await temporaryFolder();
  const stdin = Readable.from([node.apiKey]);
  const { cli } = cliUnderTest({ environment: { XDG_CONFIG_HOME: home }, folder: home, stdin });
  expect(await runCli(['login', node.url, '--profile', 'here'], cli)).toBe(0);
  const before = process.env.XDG_CONFIG_HOME;
  process.env.XDG_CONFIG_HOME = home;
  const punctual = connect({ profile: 'here' });
  if (before === undefined) delete process.env.XDG_CONFIG_HOME;
  else process.env.XDG_CONFIG_HOME = before;
  try {
    expect((await punctual.submit('greet', null)).id).toMatch(/^[0-9a-f-]{36}$/);
  } finally {
    await punctual.close();
  }
});
