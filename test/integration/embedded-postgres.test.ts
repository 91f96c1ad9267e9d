import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, cp, lstat, mkdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { afterEach, describe, expect, it } from 'vitest';
import { chooseAccount, runsAsRoot } from '../../src/embedded/account.js';
import {
  type EmbeddedPostgres,
  type EmbeddedPostgresOptions,
  removeEmbeddedPostgres,
  startEmbeddedPostgres,
} from '../../src/embedded/embedded-postgres.js';
import { findBinaryPackage, prepareBinaries } from '../../src/embedded/postgres-binaries.js';
import { isAlive } from '../../src/embedded/server-process.js';
import { processMark } from '../../src/host/processes.js';
import { migrate } from '../../src/store/migrate.js';
import { createOperatorKey, verifyOperatorKey } from '../../src/store/operator-key.js';
import { temporaryFolder } from '../temporary-folder.js';

const folders: string[] = [];
const servers: EmbeddedPostgres[] = [];

async function newFolder(): Promise<string> {
  const folder = await temporaryFolder();
  folders.push(folder);
  return folder;
}

async function start(
  dataFolder: string,
  options: Partial<EmbeddedPostgresOptions> = {},
): Promise<EmbeddedPostgres> {
  const server = await startEmbeddedPostgres({ dataFolder, ...options });
  servers.push(server);
  return server;
}

afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.stop()));
  for (const folder of folders.splice(0)) await removeEmbeddedPostgres(folder);
});

async function ask<T>(url: string, statement: string): Promise<T[]> {
  const client = new pg.Client({ connectionString: url });
  client.on('error', () => {});
  await client.connect();
  try {
    return (await client.query<{ value: T }>(statement)).rows.map((row) => row.value);
  } finally {
    await client.end();
  }
}

async function serverPid(server: EmbeddedPostgres): Promise<number> {
  const file = await readFile(join(server.home, 'postgres', 'postmaster.pid'), 'utf8');
  return Number(file.split('\n')[0]);
}

async function killed(server: EmbeddedPostgres, signal: NodeJS.Signals): Promise<void> {
  const pid = await serverPid(server);
  const mark = processMark(pid);
  process.kill(pid, signal);
  await expect.poll(() => isAlive(pid, mark!), { timeout: 20_000 }).toBe(false);
}

async function logged(folder: string, text: string): Promise<void> {
  await expect
    .poll(() => readFile(join(folder, 'postgres.log'), 'utf8'), { timeout: 20_000 })
    .toContain(text);
}

interface Said {
  readonly url?: string;
  readonly adopted?: boolean;
  readonly code?: string;
  readonly message?: string;
}

/** Another program that starts a server on the folder, and what it says came of that. */
async function otherProgram(dataFolder: string): Promise<{ child: ChildProcess; said: Said }> {
  const program = fileURLToPath(new URL('../programs/start-embedded-postgres.mjs', import.meta.url));
  const child = spawn(process.execPath, [program, dataFolder], { stdio: ['pipe', 'pipe', 'inherit'] });
  const [line] = (await once(child.stdout!, 'data')) as [Buffer];
  return { child, said: JSON.parse(line.toString()) as Said };
}

const NUMBERS = 'SELECT n AS value FROM numbers ORDER BY n';

describe('the embedded Postgres', () => {
  it('makes a durable, closed UTF-8 database on first use', async () => {
    const server = await start(join(await newFolder(), 'data'));
    expect(server.adopted).toBe(false);
    expect(server.url).toMatch(/^postgres:\/\/punctual_node:[0-9a-f]{48}@127\.0\.0\.1:\d+\/punctual$/);
    const settings = await ask<string>(
      server.administratorUrl,
      `SELECT name || '=' || setting AS value FROM pg_settings WHERE name IN
       ('fsync', 'synchronous_commit', 'full_page_writes', 'data_checksums', 'listen_addresses',
        'unix_socket_directories', 'password_encryption', 'server_encoding') ORDER BY name`,
    );
    expect(settings).toEqual([
      'data_checksums=on',
      'fsync=on',
      'full_page_writes=on',
      'listen_addresses=127.0.0.1',
      'password_encryption=scram-sha-256',
      'server_encoding=UTF8',
      'synchronous_commit=on',
      'unix_socket_directories=',
    ]);
  });

  it('lets nobody in without the password, and keeps that where others cannot read it', async () => {
    const folder = await newFolder();
    const server = await start(folder);
    const wrong = new URL(server.url);
    wrong.password = 'wrong';
    await expect(ask(wrong.href, 'SELECT 1 AS value')).rejects.toMatchObject({ code: '28P01' });
    const password = new URL(server.url).password;
    expect(await readFile(join(folder, 'postgres.json'), 'utf8')).toContain(password);
    for (const name of ['postgres.json', 'postgres.log']) {
      expect((await stat(join(folder, name))).mode & 0o077).toBe(0);
    }
    expect((await stat(join(server.home, 'postgres'))).mode & 0o077).toBe(0);
    expect(await readFile(join(folder, 'postgres.log'), 'utf8')).not.toContain(password);
  });

  it('gives nodes a role that owns the database and is nobody on the server', async () => {
    const server = await start(await newFolder());
    const rights = await ask<string>(
      server.url,
      `SELECT concat_ws(' ', rolsuper, rolcreaterole, rolcreatedb, rolreplication, rolbypassrls) AS value
       FROM pg_roles WHERE rolname = current_user`,
    );
    expect(rights).toEqual(['f f f f f']);
    await migrate(server.url);
    expect((await createOperatorKey(server.url, 'ann')).key).toMatch(/^pk_op_/);
    const superuser = `COPY (SELECT 1) TO PROGRAM 'true'`;
    await expect(ask(server.url, superuser)).rejects.toMatchObject({ code: '42501' });
  });

  it('hands a database that an older version made over to the role of the nodes', async () => {
    const folder = await newFolder();
    const first = await start(folder);
    await ask(first.administratorUrl, 'ALTER DATABASE punctual OWNER TO punctual');
    await ask(first.administratorUrl, 'DROP ROLE punctual_node');
    await migrate(first.administratorUrl);
    const { key } = await createOperatorKey(first.administratorUrl, 'ann');
    await ask(first.administratorUrl, 'CREATE TABLE public.numbers AS SELECT generate_series(1, 3) AS n');
    await first.stop();
    const { nodePassword: _, ...state } = JSON.parse(await readFile(join(folder, 'postgres.json'), 'utf8'));
    await writeFile(join(folder, 'postgres.json'), JSON.stringify(state));
    const second = await start(folder);
    expect(await verifyOperatorKey(second.url, key)).toBe(true);
    expect(await ask<number>(second.url, NUMBERS)).toEqual([1, 2, 3]);
    const notHandedOver = await ask<string>(
      second.url,
      `SELECT c.oid::regclass::text AS value FROM pg_class c
       WHERE c.relnamespace::regnamespace::text !~ '^(pg_|information_schema)' AND c.relowner <> current_user::regrole
       UNION ALL SELECT p.oid::regprocedure::text FROM pg_proc p
       WHERE p.pronamespace::regnamespace::text !~ '^(pg_|information_schema)' AND p.proowner <> current_user::regrole`,
    );
    expect(notHandedOver).toEqual([]);
    // What a later version changes about the tables is for their owner to do.
    await ask(second.url, 'ALTER TABLE punctual.jobs ADD COLUMN later_version int');
    await second.stop();
    expect((await start(folder)).url).toBe(second.url);
  });

  it('keeps data, address and password from one start to the next', async () => {
    const folder = await newFolder();
    const first = await start(folder);
    await ask(first.url, 'CREATE TABLE numbers AS SELECT generate_series(1, 3) AS n');
    await first.stop();
    const begin = performance.now();
    const second = await start(folder);
    expect(performance.now() - begin).toBeLessThan(10_000);
    expect(second.url).toBe(first.url);
    expect(await ask<number>(second.url, NUMBERS)).toEqual([1, 2, 3]);
  });

  it('takes another port, and remembers that, when the remembered one is taken', async () => {
    const folder = await newFolder();
    const first = await start(folder);
    await first.stop();
    const squatter = createServer().listen(first.port, '127.0.0.1');
    await once(squatter, 'listening');
    const second = await start(folder);
    expect(second.port).not.toBe(first.port);
    await second.stop();
    squatter.close();
    await once(squatter, 'close');
    expect((await start(folder)).port).toBe(second.port);
  });

  it('reports a server that dies, and recovers what was committed', async () => {
    const folder = await newFolder();
    let detail = '';
    const first = await start(folder, {
      onUnexpectedExit: (text) => {
        detail = text;
      },
    });
    await ask(first.url, 'CREATE TABLE numbers AS SELECT generate_series(1, 1000) AS n');
    await killed(first, 'SIGKILL');
    await expect.poll(() => detail).toContain('ended');
    await first.stop();
    const second = await start(folder);
    expect(await ask<number>(second.url, NUMBERS)).toHaveLength(1000);
  });

  it('does not start beside a child of the dead server that is still at work', async () => {
    const folder = await newFolder();
    const first = await start(folder);
    const client = new pg.Client({ connectionString: first.url });
    client.on('error', () => {});
    await client.connect();
    const [child] = (await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')).rows;
    process.kill(child!.pid, 'SIGSTOP');
    await killed(first, 'SIGKILL');
    await first.stop();
    let continued = false;
    const second = start(folder).then((server) => ({ server, continued }));
    await logged(folder, 'pre-existing shared memory block');
    continued = true;
    process.kill(child!.pid, 'SIGCONT');
    expect(await second).toMatchObject({ continued: true });
    await client.end().catch(() => {});
  });

  it('starts although the process number of the dead server now belongs to another process', async () => {
    const folder = await newFolder();
    const first = await start(folder);
    const account = await chooseAccount();
    const stranger = spawn('sleep', ['60'], account === null ? {} : { uid: account.uid, gid: account.gid });
    try {
      await killed(first, 'SIGKILL');
      await first.stop();
      const path = join(first.home, 'postgres', 'postmaster.pid');
      const file = await readFile(path, 'utf8');
      await writeFile(path, file.replace(/^\d+/, String(stranger.pid)));
      const second = await start(folder);
      expect(await ask(second.url, 'SELECT 1 AS value')).toEqual([1]);
      expect(stranger.exitCode).toBeNull();
    } finally {
      stranger.kill();
    }
  });

  it('starts beside a process file that a power cut left empty', async () => {
    const folder = await newFolder();
    const first = await start(folder);
    await killed(first, 'SIGKILL');
    await first.stop();
    await writeFile(join(first.home, 'postgres', 'postmaster.pid'), '');
    expect(await ask((await start(folder)).url, 'SELECT 1 AS value')).toEqual([1]);
  });

  it('takes over the server of a program that was killed', async () => {
    const folder = await newFolder();
    const { child, said } = await otherProgram(folder);
    await ask(said.url!, 'CREATE TABLE numbers AS SELECT generate_series(1, 3) AS n');
    child.kill('SIGKILL');
    await once(child, 'exit');
    const server = await start(folder);
    expect(server).toMatchObject({ adopted: true, url: said.url });
    expect(await ask<number>(server.url, NUMBERS)).toEqual([1, 2, 3]);
    await server.stop();
    await expect(ask(server.url, 'SELECT 1 AS value')).rejects.toMatchObject({ code: 'ECONNREFUSED' });
  });

  it('tells when a server that was taken over dies', async () => {
    const folder = await newFolder();
    const { child } = await otherProgram(folder);
    child.kill('SIGKILL');
    await once(child, 'exit');
    let detail = '';
    const server = await start(folder, {
      onUnexpectedExit: (text) => {
        detail = text;
      },
    });
    await killed(server, 'SIGQUIT');
    await expect.poll(() => detail, { timeout: 5_000 }).toContain('ended');
  });

  it('ends a server left behind that was started with other settings', async () => {
    const folder = await newFolder();
    const { child, said } = await otherProgram(folder);
    child.kill('SIGKILL');
    await once(child, 'exit');
    const server = await start(folder, { settings: { work_mem: '7MB' } });
    expect(server).toMatchObject({ adopted: false, url: said.url });
    expect(await ask(server.url, "SELECT current_setting('work_mem') AS value")).toEqual(['7MB']);
  });

  it('refuses a folder that is in use and names the process that uses it', async () => {
    const folder = await newFolder();
    const { child, said } = await otherProgram(folder);
    const refused = expect.objectContaining({
      code: 'EMBEDDED_POSTGRES',
      message: expect.stringContaining(`process ${child.pid} `),
    });
    await expect(start(folder)).rejects.toEqual(refused);
    await expect(removeEmbeddedPostgres(folder)).rejects.toEqual(refused);
    expect(await ask(said.url!, 'SELECT 1 AS value')).toEqual([1]);
    child.stdin!.end();
    await once(child, 'exit');
    expect((await start(folder)).adopted).toBe(false);
  });

  it('lets exactly one of several programs that start at the same moment win', async () => {
    const folder = await newFolder();
    const programs = await Promise.all([1, 2, 3, 4].map(() => otherProgram(folder)));
    expect(programs.filter(({ said }) => said.url !== undefined)).toHaveLength(1);
    expect(programs.filter(({ said }) => said.code === 'EMBEDDED_POSTGRES')).toHaveLength(3);
    await Promise.all(
      programs.map(async ({ child }) => {
        child.stdin!.end();
        if (child.exitCode === null) await once(child, 'exit');
      }),
    );
  });

  it('gets in again when the file with the password was lost', async () => {
    const folder = await newFolder();
    const first = await start(folder);
    await ask(first.url, 'CREATE TABLE numbers AS SELECT 1 AS n');
    await first.stop();
    await rm(join(folder, 'postgres.json'));
    const second = await start(folder);
    expect(await ask<number>(second.url, NUMBERS)).toEqual([1]);
    await expect(ask(first.url, 'SELECT 1 AS value')).rejects.toThrow();
  });

  it('makes the database anew when making it was interrupted', async () => {
    const folder = await newFolder();
    await mkdir(join(folder, 'postgres.draft-abcdef', 'base'), { recursive: true });
    const server = await start(folder);
    expect(await ask(server.url, 'SELECT 1 AS value')).toEqual([1]);
    await expect(stat(join(folder, 'postgres.draft-abcdef'))).rejects.toMatchObject({ code: 'ENOENT' });
  });

  it('says what the server said when it does not start', async () => {
    const start = startEmbeddedPostgres({
      dataFolder: await newFolder(),
      settings: { max_connections: 'plenty' },
    });
    await expect(start).rejects.toMatchObject({
      code: 'EMBEDDED_POSTGRES',
      message: expect.stringMatching(/invalid value for parameter "max_connections"[\s\S]*--database-url/),
    });
  });

  it('refuses a database of another Postgres version', async () => {
    const folder = await newFolder();
    const first = await start(folder);
    await first.stop();
    await writeFile(join(first.home, 'postgres', 'PG_VERSION'), '12\n');
    await expect(start(folder)).rejects.toMatchObject({
      code: 'EMBEDDED_POSTGRES',
      message: expect.stringContaining('made by Postgres 12'),
    });
  });

  it('refuses a data folder that is a file', async () => {
    const path = join(await newFolder(), 'data');
    await writeFile(path, '');
    await expect(start(path)).rejects.toMatchObject({
      code: 'EMBEDDED_POSTGRES',
      message: expect.stringContaining('--data'),
    });
  });
});

describe('the Postgres programs', () => {
  it('run from a package whose install script did not run', async () => {
    const folder = await newFolder();
    const native = join(folder, 'package', 'native');
    await copyPackage(native);
    const binaries = await prepareBinaries({ native, version: '1' }, folder, await chooseAccount());
    expect(dirname(dirname(binaries.postgres))).toBe(native);
  });

  it.runIf(runsAsRoot())('are copied out of a folder that their account may not enter', async () => {
    const folder = await newFolder();
    const closed = join(folder, 'closed');
    await copyPackage(join(closed, 'native'));
    await chmod(closed, 0o700);
    const installed = { native: join(closed, 'native'), version: '1' };
    const binaries = await prepareBinaries(installed, folder, await chooseAccount());
    expect(binaries.postgres).toBe(join(folder, 'postgres-binaries-1', 'native', 'bin', 'postgres'));
    expect(await prepareBinaries(installed, folder, await chooseAccount())).toEqual(binaries);
  });

  async function copyPackage(native: string): Promise<void> {
    const installed = await findBinaryPackage();
    // The package as it is published holds no links at all.
    await cp(installed.native, native, {
      recursive: true,
      filter: async (path) => !(await lstat(path)).isSymbolicLink(),
    });
  }
});

describe.runIf(runsAsRoot())('below a folder that only root may enter', () => {
  it('keeps the data where the account of the server can reach it, and finds it again', async () => {
    const folder = await newFolder();
    const closed = join(folder, 'closed');
    await mkdir(closed, { mode: 0o700 });
    const reachableFolder = join(folder, 'reachable');
    const dataFolder = join(closed, 'data');
    const first = await start(dataFolder, { reachableFolder });
    expect(dirname(first.home)).toBe(reachableFolder);
    await ask(first.url, 'CREATE TABLE numbers AS SELECT 1 AS n');
    await first.stop();
    const second = await start(dataFolder, { reachableFolder });
    expect(second.home).toBe(first.home);
    expect(await ask<number>(second.url, NUMBERS)).toEqual([1]);
    await second.stop();
    await removeEmbeddedPostgres(dataFolder);
    await expect(stat(first.home)).rejects.toMatchObject({ code: 'ENOENT' });
  });

  it('says so when the data that the folder points at is gone', async () => {
    const folder = await newFolder();
    const closed = join(folder, 'closed');
    await mkdir(closed, { mode: 0o700 });
    const reachableFolder = join(folder, 'reachable');
    const first = await start(closed, { reachableFolder });
    await first.stop();
    await rm(first.home, { recursive: true });
    await expect(start(closed, { reachableFolder })).rejects.toMatchObject({
      code: 'EMBEDDED_POSTGRES',
      message: expect.stringContaining(first.home),
    });
  });
});
