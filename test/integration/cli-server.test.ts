import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../database.js';
import { BUILT_SDK, PunctualProcess, punctual } from '../punctual-process.js';
import { temporaryFolder } from '../temporary-folder.js';
import { testCertificate } from '../test-certificate.js';

let database: TestDatabase;
let folder: string;
const running: PunctualProcess[] = [];

beforeEach(async () => {
  [database, folder] = await Promise.all([createTestDatabase(), temporaryFolder()]);
});
afterEach(async () => {
  await Promise.all(running.splice(0).map((each) => each.kill('SIGTERM')));
  await database.drop();
  await rm(folder, { recursive: true });
});

function start(args: string[], environment: Record<string, string>): PunctualProcess {
  const each = new PunctualProcess(args, { folder, environment });
  running.push(each);
  return each;
}

/** A key, a node and the environment for commands that talk to it. */
async function startServer(...args: string[]): Promise<Record<string, string>> {
  const environment = { PUNCTUAL_DATABASE_URL: database.url };
  const made = await punctual(['key', 'create', '--operator', '--json'], { folder, environment });
  const { key } = JSON.parse(made.stdout);
  const server = start(['server', '--port', '0', ...args], environment);
  const [, url] = await server.prints('stdout', /^ready (\S+)\n/m);
  return { PUNCTUAL_URL: url!, PUNCTUAL_API_KEY: key };
}

it('a node and a worker run apart, and the worker drains on SIGTERM', async () => {
  const environment = await startServer();
  await writeFile(
    join(folder, 'tasks.mjs'),
    `import { task } from ${JSON.stringify(BUILT_SDK)};
     export const wait = task('wait', async (input, ctx) => {
       await ctx.log('waiting');
       console.log('waiting');
       await new Promise((resolve) => setTimeout(resolve, input.ms));
       return { labels: 'met' };
     });`,
  );
  const ask = (...args: string[]) => punctual(args, { folder, environment });
  const submitted = await ask(
    ...[
      'job',
      'submit',
      '--task',
      'wait',
      '--payload',
      '{"ms":500}',
      '--queue',
      'mail',
      '--requires',
      'region=eu',
    ],
  );
  expect(submitted).toMatchObject({ code: 0, stderr: '' });
  const id = submitted.stdout.trim();
  const why = JSON.parse((await ask('job', 'why', id, '--json')).stdout);
  expect(why).toMatchObject({ gate: 'no-fitting-worker' });

  const worker = start(
    [
      'worker',
      'run',
      '--module',
      'tasks.mjs',
      '--queues',
      'mail,default',
      '--label',
      'region=eu',
      '--slots',
      '3',
    ],
    environment,
  );
  await worker.prints('stdout', /waiting/);
  expect(await worker.kill('SIGTERM')).toMatchObject({ code: 0 });
  const job = JSON.parse((await ask('job', 'get', id, '--json')).stdout);
  expect(job).toMatchObject({ state: 'succeeded', result: { labels: 'met' }, attempt: 1 });
  expect((await ask('job', 'logs', id)).stdout).toContain('waiting');
});

it('queues and the whole cluster can be paused and resumed; doing it twice is a conflict', async () => {
  const environment = await startServer('--paused');
  const ask = (...args: string[]) => punctual(args, { folder, environment });
  expect((await ask('cluster', 'resume')).code).toBe(0);
  await ask('job', 'submit', '--task', 'nothing');
  for (const target of [['queue', 'default'], ['cluster']]) {
    const [noun, name] = target;
    const call = (verb: string) => ask(noun!, verb, ...(name ? [name] : []));
    expect((await call('pause')).code).toBe(0);
    expect((await call('pause')).code).toBe(6);
    expect((await call('resume')).code).toBe(0);
    expect((await call('resume')).code).toBe(6);
  }
  const status = JSON.parse((await ask('cluster', 'status', '--json')).stdout);
  expect(status).toMatchObject({ paused: false, shards: [{ id: 0, leader: expect.any(String) }] });
});

it('a worker with a wrong key says so and ends', async () => {
  const environment = { ...(await startServer()), PUNCTUAL_API_KEY: 'wrong' };
  const module = join(folder, 'tasks.mjs');
  await writeFile(
    module,
    `import { task } from ${JSON.stringify(BUILT_SDK)}; export const one = task('one', () => 1);`,
  );
  const args = ['worker', 'run', '--module', module, '--log-level', 'error'];
  const run = await punctual(args, { folder, environment });
  expect(run).toMatchObject({ code: 4, stdout: '' });
});

it('a node without a database, or with one that does not answer, says what to do', async () => {
  const missing = await punctual(['server'], { folder });
  expect(missing).toMatchObject({ code: 2, stderr: expect.stringContaining('--database-url') });
  const url = 'postgres://nobody@127.0.0.1:1/none';
  const unreachable = await punctual(['db', 'status', '--database-url', url], { folder });
  expect(unreachable).toMatchObject({ code: 7, stderr: expect.stringContaining('DATABASE_UNAVAILABLE') });
});

it('shows and applies what the database lacks', async () => {
  const args = (verb: string) => ['db', verb, '--database-url', database.url, '--json'];
  const status = JSON.parse((await punctual(args('status'), { folder })).stdout);
  expect(status).toMatchObject({ pending: [], at: status.applied.length });
  const migrated = JSON.parse((await punctual(args('migrate'), { folder })).stdout);
  expect(migrated).toMatchObject({ applied: [], pending: [], at: status.at });
});

/** A worker that ends when it has read its module, because it finds no node. */
const work = (module: string) => punctual(['worker', 'run', '--module', module], { folder });

/** Does what tsx does, for the one kind of type in the module of the test. */
const SMALL_TSX = `
import { register } from 'node:module';
const hooks = \`
  import { readFile } from 'node:fs/promises';
  export async function load(url, context, next) {
    if (!url.endsWith('.ts')) return next(url, context);
    const source = String(await readFile(new URL(url))).replaceAll(': string', '');
    return { format: 'module', source, shortCircuit: true };
  }\`;
register('data:text/javascript,' + encodeURIComponent(hooks));`;

it('a module in TypeScript is read by the tsx of its project, or by Node, or the error says what to do', async () => {
  await writeFile(
    join(folder, 'tasks.ts'),
    `import { task } from ${JSON.stringify(BUILT_SDK)};
     const name: string = 'typed';
     console.log('the module is read');
     export const typed = task(name, async () => 1);`,
  );
  await writeFile(join(folder, 'package.json'), '{"type": "module"}');
  const { typescript } = process.features as { readonly typescript?: string | false };
  const alone = await work('tasks.ts');
  if (typescript) expect(alone.stdout).toBe('the module is read\n');
  else expect(alone).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining('Install tsx') });

  await mkdir(join(folder, 'node_modules', 'tsx'), { recursive: true });
  const manifest = { name: 'tsx', version: '4.0.0', exports: { '.': './loader.mjs' } };
  await writeFile(join(folder, 'node_modules', 'tsx', 'package.json'), JSON.stringify(manifest));
  await writeFile(join(folder, 'node_modules', 'tsx', 'loader.mjs'), SMALL_TSX);
  expect((await work('tasks.ts')).stdout).toBe('the module is read\n');
});

it('a module that is taken for CommonJS is refused with the remedy', async () => {
  await writeFile(join(folder, 'tasks.js'), `import 'node:fs';`);
  await writeFile(join(folder, 'package.json'), '{"type": "commonjs"}');
  const remedy = expect.stringContaining('"type": "module"');
  expect(await work('tasks.js')).toMatchObject({ code: 2, stderr: remedy });
});

it('a node with a certificate is reached by commands and workers that trust it', async () => {
  const { cert, key } = testCertificate('node');
  await Promise.all([
    writeFile(join(folder, 'node.pem'), cert),
    writeFile(join(folder, 'node.key'), key),
    writeFile(
      join(folder, 'tasks.mjs'),
      `import { task } from ${JSON.stringify(BUILT_SDK)};
       export const hello = task('hello', async () => 'over TLS');`,
    ),
  ]);
  const untrusting = await startServer('--tls-cert', 'node.pem', '--tls-key', 'node.key');
  expect(untrusting.PUNCTUAL_URL).toMatch(/^https:/);
  const refused = await punctual(['job', 'list'], { folder, environment: untrusting });
  expect(refused).toMatchObject({ code: 7, stderr: expect.stringContaining('self-signed certificate') });
  const environment = { ...untrusting, NODE_EXTRA_CA_CERTS: join(folder, 'node.pem') };
  start(['worker', 'run', '--module', 'tasks.mjs'], environment);
  const done = await punctual(['job', 'submit', '--task', 'hello', '--wait'], { folder, environment });
  expect(done).toMatchObject({ code: 0, stdout: expect.stringContaining('over TLS') });
});
