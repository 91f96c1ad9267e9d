import { randomBytes } from 'node:crypto';
import { readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { runCli } from '../../../src/cli/program.js';
import type { KeyScope, NewKeyView } from '../../../src/core/access.js';
import { type ArtifactView, PART_BYTES } from '../../../src/core/artifact.js';

import type { Page } from '../../../src/core/wire.js';
import { cliUnderTest, type ShellOptions } from '../../cli-under-test.js';
import { TestNode, TestTenant } from '../../node-for-tests.js';
import { handMadeElf } from '../../programs/hand-made-elf.js';
import { temporaryFolder } from '../../temporary-folder.js';
import { announce, push, send, sha256 } from './artifact-for-tests.js';

let node: TestNode;
beforeAll(async () => {
  node = await TestNode.start();
});
afterAll(() => node.stop());

async function newFolder(): Promise<string> {
  const folder = await temporaryFolder();
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

async function punctual(args: readonly string[], options: ShellOptions = {}) {
  const environment = { PUNCTUAL_URL: node.url, PUNCTUAL_API_KEY: node.apiKey };
  const shell = cliUnderTest({ ...options, environment });
  const code = await runCli(args, shell.cli);
  return { code, stdout: shell.stdout(), stderr: shell.stderr() };
}

const newElf = () => Buffer.concat([handMadeElf('x64', 0), randomBytes(16)]);

it('a program is pushed, listed, shown, pulled and deleted by its name', async () => {
  const folder = await newFolder();
  const elf = newElf();
  await writeFile(join(folder, 'packer'), elf);
  const named = ['--name', 'packer', '--version', '1.4.0', '--tenant', 'cli'];
  const pushed = await punctual(['artifact', 'push', 'packer', ...named], { folder });
  expect(pushed).toMatchObject({ code: 0, stdout: expect.stringContaining('packer@1.4.0') });
  expect(pushed.stdout).toContain(sha256(elf));
  const again = await punctual(['artifact', 'push', 'packer', ...named, '--json'], { folder });
  expect(JSON.parse(again.stdout)).toMatchObject({ name: 'packer', state: 'ready', kind: 'elf' });
  const list = await punctual(['artifact', 'list', '--tenant', 'cli']);
  expect(list.stdout).toMatch(/ARTIFACT .*\n.*packer .* 1\.4\.0 .* ready .* elf/);
  const user = new TestTenant(node, 'cli');
  await user.get('POST', '/v1/tasks', {
    body: { name: 'pack', target: { type: 'exec', artifact: 'packer' } },
  });
  const got = await punctual(['artifact', 'get', 'packer', '--tenant', 'cli']);
  expect(got.stdout).toContain('task pack');
  const pulled = await punctual(['artifact', 'pull', 'packer@1.4.0', '--output', 'copy', '--tenant', 'cli'], {
    folder,
  });
  expect(pulled).toMatchObject({ code: 0 });
  expect((await readFile(join(folder, 'copy'))).equals(elf)).toBe(true);
  expect((await stat(join(folder, 'copy'))).mode & 0o111).not.toBe(0);
  const refused = await punctual(['artifact', 'delete', 'packer', '--tenant', 'cli']);
  expect(refused).toMatchObject({ code: 6, stderr: expect.stringContaining('task pack') });
  await user.get('DELETE', '/v1/tasks/pack');
  expect((await punctual(['artifact', 'delete', 'packer', '--tenant', 'cli'])).code).toBe(0);
  expect((await punctual(['artifact', 'get', 'packer', '--tenant', 'cli'])).code).toBe(5);
});

it('the beginning of an id is enough, a name that looks like one is a name, and stdout takes the bytes', async () => {
  const folder = await newFolder();
  const user = node.newTenant();
  const run = (...args: string[]) => punctual(['artifact', ...args, '--tenant', user.tenant], { folder });
  const { id } = await push(user, Buffer.from('some bytes'), { runnable: false });
  const beginning = id.slice(0, -1);
  expect((await run('get', beginning)).stdout).toContain(id);
  expect(await run('pull', beginning, '--output', '-')).toEqual({
    ...{ code: 0, stdout: 'some bytes', stderr: '' },
  });
  expect(await run('pull', id, '--output', '.')).toMatchObject({
    ...{ code: 2, stderr: expect.stringContaining('is a folder') },
  });
  expect(await run('pull')).toMatchObject({ code: 2 });
  expect((await run('get', '00000000')).code).toBe(5);
  await push(user, Buffer.from('others'), { name: id.slice(0, 8), version: '1', runnable: false });
  expect((await run('pull', id.slice(0, 8), '--output', '-')).stdout).toBe('others');
  expect((await run('delete', beginning)).code).toBe(0);
  expect((await run('get', id)).code).toBe(5);
});

it('what cannot be pushed says why', async () => {
  const folder = await newFolder();
  await writeFile(join(folder, 'text'), 'hello');
  expect(await punctual(['artifact', 'push', 'nothing'], { folder })).toMatchObject({
    ...{ code: 2, stderr: expect.stringContaining('nothing cannot be used') },
  });
  expect(await punctual(['artifact', 'push', 'text'], { folder })).toMatchObject({
    ...{ code: 2, stderr: expect.stringContaining('no ELF file') },
  });
  expect(await punctual(['artifact', 'push', 'text', '--name', 'a'], { folder })).toMatchObject({ code: 2 });
  expect(await punctual(['artifact', 'push', 'text', '--data'], { folder })).toMatchObject({
    ...{ code: 0, stdout: expect.stringContaining('file') },
  });
});

it('a push that is refused leaves nothing, says what helps, and keeps what had been announced before', async () => {
  const folder = await newFolder();
  const user = node.newTenant();
  const refused = async (file: string, bytes: Uint8Array, ...names: string[]) => {
    await writeFile(join(folder, file), bytes);
    const args = ['artifact', 'push', file, ...names, '--tenant', user.tenant];
    const { code, stderr } = await punctual(args, { folder });
    expect(code).toBe(2);
    return stderr;
  };
  const left = async () =>
    (await user.get<Page<ArtifactView>>('GET', '/v1/artifacts')).data.map(({ name, state }) => [name, state]);
  expect(await refused('empty', Buffer.alloc(0))).toContain('empty is empty');
  const text = await refused('text', Buffer.from('hello'), '--name', 'text', '--version', '1');
  expect(text).toMatch(/no ELF file[\s\S]*--data/);
  expect(text).not.toMatch(/static/i);
  const cut = await refused('cut', newElf().subarray(0, 150));
  expect(cut).toMatch(/cut off[\s\S]*copy or build it again/);
  expect(cut).not.toMatch(/static/i);
  expect(await left()).toEqual([]);
  const before = { name: 'before', version: '1' };
  await announce(user, Buffer.from('before'), before);
  await refused('before', Buffer.from('before'), '--name', 'before', '--version', '1');
  expect(await left()).toEqual([['before', 'pending']]);
});

it('a key that submits takes back what it has announced itself, while it is not uploaded and nothing names it', async () => {
  const { tenant } = node.newTenant();
  const scopes: KeyScope[] = ['submit', 'read'];
  const keyFor = async (name: string) =>
    (await node.get<NewKeyView>('POST', '/v1/keys', { body: { name, tenant, scopes } })).key;
  const [own, other] = [await keyFor('own'), await keyFor('other')];
  const ask = async (key: string, method: string, path: string, body?: object) => {
    const headers = { authorization: `Bearer ${key}`, ...(body && { 'content-type': 'application/json' }) };
    const init = { method, headers, ...(body && { body: JSON.stringify(body) }) };
    const answer = await fetch(`${node.url}/v1${path}`, init);
    const text = await answer.text();
    return { status: answer.status, ...(text === '' ? {} : JSON.parse(text)) };
  };
  const announced = (bytes: Uint8Array, version: string, key = own) =>
    ask(key, 'POST', '/artifacts', {
      ...{ name: 'packer', version, sha256: sha256(bytes), size: bytes.length },
    });
  const withdraw = (key: string, id: string) => ask(key, 'DELETE', `/artifacts/${id}/announcement`);

  const vain = await announced(newElf(), '1');
  expect(await withdraw(other, vain.id)).toMatchObject({ status: 403, code: 'FORBIDDEN' });
  expect(await withdraw(own, vain.id)).toMatchObject({ status: 204 });
  expect(await withdraw(own, vain.id)).toMatchObject({ status: 404 });
  const elf = newElf();
  const sent = await announced(elf, '2');
  await send(sent.uploadUrl, elf);
  expect(await withdraw(own, sent.id)).toMatchObject({ status: 409, code: 'UPLOAD_DONE' });
  // What was announced again is of the one who did so.
  const taken = await announced(newElf(), '4');
  const anew = await announced(newElf(), '4', other);
  expect(anew).toMatchObject({ id: taken.id, createdBy: 'other' });
  expect(await withdraw(own, anew.id)).toMatchObject({ status: 403, code: 'FORBIDDEN' });
  expect(await withdraw(other, anew.id)).toMatchObject({ status: 204 });
  // One that is uploaded at the same moment is there, and not gone.
  const late = await announced(newElf(), '5');
  const { pool } = node.node.context.shards[0];
  const client = await pool.connect();
  await client.query('BEGIN');
  await client.query("UPDATE punctual.artifacts SET state = 'ready', ready_at = 1 WHERE id = $1", [late.id]);
  const lost = withdraw(own, late.id);
  const waits = `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
    AND query LIKE '%a.created_by = $3%'`;
  await expect.poll(async () => (await pool.query(waits)).rowCount).toBe(1);
  await client.query('COMMIT');
  client.release();
  expect(await lost).toMatchObject({ status: 409, code: 'UPLOAD_DONE' });
  await pool.query(
    "UPDATE punctual.artifacts SET state = 'gone', name = NULL, version = NULL WHERE id = $1",
    [late.id],
  );
  const awaited = await announced(newElf(), '3');
  await ask(own, 'POST', '/jobs', { target: { type: 'exec', artifact: 'packer@3' } });
  expect(await withdraw(own, awaited.id)).toMatchObject({ status: 409, code: 'ARTIFACT_IN_USE' });
  // What the command line pushes in vain with such a key is gone, too.
  const folder = await newFolder();
  await writeFile(join(folder, 'text'), 'hello');
  const names = ['--name', 'text', '--version', '1', '--api-key', own];
  expect((await punctual(['artifact', 'push', 'text', ...names], { folder })).code).toBe(2);
  const { data } = await ask(own, 'GET', '/artifacts');
  expect(data.map(({ version }: ArtifactView) => version)).toEqual(['3', '2']);
});

it('a large file goes in parts with a bar on a terminal, and goes on where it broke off', async () => {
  const folder = await newFolder();
  const size = 4 * PART_BYTES + 1_000;
  const bytes = Buffer.concat([randomBytes(PART_BYTES), Buffer.alloc(size - PART_BYTES, 7)]);
  await writeFile(join(folder, 'large'), bytes);
  const user = new TestTenant(node, 'large');
  const { body } = await announce(user, bytes, { runnable: false });
  expect(body).toMatchObject({
    ...{ parts: { size: PART_BYTES, count: 5, arrived: [] }, mustComplete: true },
  });
  const part = (number: number, from: number, to: number) =>
    send(`${body.uploadUrl}&part=${number}`, Buffer.from(bytes.subarray(from, to)));
  expect((await part(2, PART_BYTES, 2 * PART_BYTES)).status).toBe(200);
  expect((await part(5, 4 * PART_BYTES, size)).status).toBe(200);
  expect(await part(1, 0, 10)).toMatchObject({ status: 422, body: { code: 'ARTIFACT_SIZE' } });
  expect(await part(6, 0, 10)).toMatchObject({ status: 422, body: { code: 'INVALID_REQUEST' } });
  const early = await user.ask('POST', `/v1/artifacts/${body.id}/complete`);
  expect(early).toMatchObject({
    ...{ status: 409, body: { code: 'UPLOAD_INCOMPLETE', detail: expect.stringContaining('1, 3, 4') } },
  });
  const pushed = await punctual(['artifact', 'push', 'large', '--data', '--tenant', 'large'], {
    ...{ folder, isTTY: true },
  });
  expect(pushed).toMatchObject({ code: 0, stdout: expect.stringContaining(body.id) });
  expect(pushed.stderr).toMatch(/large {2}█+░* {2}\d+% of 64\.0 MiB/);
  expect(pushed.stderr).toContain('100%');
  const pulled = await punctual(['artifact', 'pull', body.id, '--output', 'copy', '--tenant', 'large'], {
    folder,
  });
  expect(pulled.code).toBe(0);
  expect(sha256(await readFile(join(folder, 'copy')))).toBe(sha256(bytes));
  const left = await readdir(join(node.node.context.artifacts.place, 'uploads')).catch(() => []);
  expect(left).toEqual([]);
  await user.get('DELETE', `/v1/artifacts/${body.id}`);
}, 30_000);

it('the parts of other bytes are refused when they are put together, and nothing is left', async () => {
  const user = node.newTenant();
  const bytes = Buffer.alloc(4 * PART_BYTES + 10, 1);
  const { body } = await announce(user, bytes, { runnable: false });
  const wrong = Buffer.alloc(PART_BYTES, 2);
  for (const number of [1, 2, 3, 4])
    expect((await send(`${body.uploadUrl}&part=${number}`, wrong)).status).toBe(200);
  expect((await send(`${body.uploadUrl}&part=5`, Buffer.alloc(10))).status).toBe(200);
  const refused = await user.ask('POST', `/v1/artifacts/${body.id}/complete`);
  expect(refused).toMatchObject({ status: 422, body: { code: 'ARTIFACT_HASH' } });
  expect((await announce(user, bytes, { runnable: false })).body.parts!.arrived).toEqual([]);
}, 30_000);

it('a program uses the same through the SDK, also when it has the bytes in memory', async () => {
  const folder = await newFolder();
  const { artifacts } = node.connect('sdk');
  const elf = newElf();
  const seen: number[] = [];
  const view = await artifacts.push(elf, {
    ...{ name: 'tool', version: '2', onProgress: (sent) => seen.push(sent) },
  });
  expect(view).toMatchObject({ state: 'ready', sha256: sha256(elf) });
  expect(seen.at(-1)).toBe(elf.length);
  const listed = [];
  for await (const each of artifacts.list({ name: 'tool' })) listed.push(each);
  expect(listed).toEqual([view]);
  await artifacts.pull('tool', join(folder, 'tool'));
  expect((await readFile(join(folder, 'tool'))).equals(elf)).toBe(true);
  await artifacts.delete('tool@2');
  await expect(artifacts.get('tool')).rejects.toMatchObject({ code: 'ARTIFACT_NOT_FOUND' });
  const other = new TestTenant(node, 'sdk');
  const json = await push(other, Buffer.from('{"a"'), { runnable: false });
  expect(await readFile(join(folder, 'tool')).then((bytes) => bytes.length)).toBe(elf.length);
  await artifacts.pull(json.id, join(folder, 'json'));
  expect(await readFile(join(folder, 'json'), 'utf8')).toBe('{"a"');
});
