import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { PassThrough, Readable } from 'node:stream';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { runCli } from '../../../src/cli/program.js';
import type { NewSigningSecret, SecretView } from '../../../src/core/secret.js';
import { makeMasterKey } from '../../../src/core/secret-box.js';
import { cliUnderTest, type ShellOptions } from '../../cli-under-test.js';
import { createTestDatabase } from '../../database.js';
import { TestNode, TestTenant } from '../../node-for-tests.js';
import { temporaryFolder } from '../../temporary-folder.js';
import { callWith, HeldCall, ORIGIN } from './call-for-tests.js';

let node: TestNode;
beforeAll(async () => {
  node = await TestNode.start({ settings: { secretKey: makeMasterKey() } });
});
afterAll(() => node.stop());

async function punctual(args: readonly string[], options: ShellOptions = {}, at = node) {
  const environment = { PUNCTUAL_URL: at.url, PUNCTUAL_API_KEY: at.apiKey, ...options.environment };
  const shell = cliUnderTest({ ...options, environment });
  const code = await runCli(args, shell.cli);
  return { code, stdout: shell.stdout(), stderr: shell.stderr() };
}

/** What a secret of a tenant is worth to a worker. */
async function givenValue(tenant: string, name: string): Promise<string | undefined> {
  const user = new TestTenant(node, tenant);
  const call = await HeldCall.claim(node, user, callWith(name));
  const { body } = await call.ask([name]);
  await call.worker.succeed(call.assignment);
  return body.values?.[name];
}

it('a secret is set from stdin, a file or the terminal, and never from the command line', async () => {
  const set = ['secret', 'set', 'a', '--origin', ORIGIN, '--tenant', 'set'];
  const piped = await punctual(set, { stdin: Readable.from(['line 1\nline 2\n\n']) });
  expect(piped).toMatchObject({ code: 0, stderr: '' });
  expect(piped.stdout).toContain(ORIGIN);
  expect(piped.stdout).not.toContain('line');
  expect(await givenValue('set', 'a')).toBe('line 1\nline 2\n');

  const folder = await temporaryFolder();
  await writeFile(join(folder, 'value'), 'of a file\r\n');
  expect((await punctual([...set, '--value-file', 'value'], { folder })).code).toBe(0);
  expect(await givenValue('set', 'a')).toBe('of a file');

  const stdin = Object.assign(new PassThrough(), { isTTY: true, setRawMode: () => undefined });
  const typing = punctual(set, { stdin, isTTY: true });
  stdin.write('typed\r');
  const typed = await typing;
  expect(typed.code).toBe(0);
  expect(typed.stderr).toContain('Value of a: ');
  expect(typed.stdout + typed.stderr).not.toContain('typed');
  expect(await givenValue('set', 'a')).toBe('typed');

  expect((await punctual([...set, '--value', 'x'])).code).toBe(2);
  expect((await punctual([...set, 'x'])).code).toBe(2);
  expect(await punctual(set)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('No value was given'),
  });
  expect((await punctual(['secret', 'set', 'a'])).stderr).toContain('--origin');
  const wrong = await punctual([...set, '--origin', '*'], { stdin: Readable.from(['quoted-nowhere']) });
  expect(wrong).toMatchObject({ code: 2, stderr: expect.stringContaining('--origin') });
  expect(wrong.stderr).not.toContain('quoted-nowhere');
});

it('secrets are listed and deleted', async () => {
  for (const name of ['one', 'two']) {
    const args = [
      'secret',
      'set',
      name,
      '--origin',
      ORIGIN,
      '--origin',
      'http://b.example',
      '--tenant',
      'listed',
    ];
    await punctual(args, { stdin: Readable.from(['v']) });
  }
  const list = ['secret', 'list', '--tenant', 'listed'];
  expect((await punctual(list)).stdout).toMatch(/one +https:\/\/api\.example\.com, http:\/\/b\.example +1 /);
  const { data } = JSON.parse((await punctual([...list, '--json'])).stdout) as { data: SecretView[] };
  expect(data.map(({ name }) => name)).toEqual(['one', 'two']);
  const gone = ['secret', 'delete', 'one', '--tenant', 'listed'];
  expect(await punctual(gone)).toMatchObject({ code: 0, stdout: 'one  deleted\n' });
  expect((await punctual(gone)).code).toBe(5);
});

it('signing secrets are made, listed and deleted, also by the beginning of their ids', async () => {
  const noun = (...args: readonly string[]) => punctual(['signing-secret', ...args, '--tenant', 'signing']);
  expect((await noun('create')).stdout).toMatch(/^whsec_[A-Za-z0-9+/]{43}=\n$/);
  const made = JSON.parse(
    (await noun('create', '--keep-others-for', '1h', '--json')).stdout,
  ) as NewSigningSecret;
  const { stdout } = await noun('list');
  expect(stdout).toContain(made.id);
  expect(stdout).not.toContain(made.secret);
  expect(await noun('delete', made.id.slice(0, 18))).toMatchObject({
    code: 0,
    stdout: `${made.id}  deleted\n`,
  });
  expect((await noun('delete', made.id)).code).toBe(5);
  expect((await noun('create', '--keep-others-for', '1s')).code).toBe(2);
});

it('rekey says when the old key can be removed, and doctor says what is missing', async () => {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop(), 30_000);
  const [old, next] = [makeMasterKey(), makeMasterKey()];
  const start = (secretKey: string) => TestNode.start({ database, settings: { secretKey } });
  const checks = async (at: TestNode) => {
    const { stdout } = await punctual(['doctor', '--json'], { folder: await temporaryFolder() }, at);
    const all = JSON.parse(stdout).checks as { name: string; status: string; detail: string }[];
    return all.find(({ name }) => name === 'secrets');
  };
  const first = await start(old);
  await punctual(['secret', 'set', 'a', '--origin', ORIGIN], { stdin: Readable.from(['v']) }, first);
  expect(await checks(first)).toMatchObject({ status: 'ok' });
  await first.stop();

  for (const key of ['', next]) {
    const without = await start(key);
    expect(await checks(without)).toMatchObject({ status: 'warn' });
    const rekey = await punctual(['secret', 'rekey'], {}, without);
    if (key === '')
      expect(rekey).toMatchObject({ code: 7, stderr: expect.stringContaining('PUNCTUAL_SECRET_KEY') });
    else expect(rekey).toMatchObject({ code: 1, stdout: expect.stringContaining('does not have') });
    await without.stop();
  }

  const both = await start(`${next},${old}`);
  onTestFinished(() => both.stop(), 30_000);
  expect(await checks(both)).toMatchObject({
    status: 'warn',
    detail: expect.stringContaining('still encrypted'),
  });
  const done = await punctual(['secret', 'rekey'], {}, both);
  expect(done).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('1 values encrypted anew. Everything is under'),
  });
  expect(done.stdout).toContain('can be removed');
  expect(await checks(both)).toMatchObject({ status: 'ok' });
  expect((await punctual(['secret', 'rekey', '--tenant', 'acme'], {}, both)).code).toBe(2);
});
