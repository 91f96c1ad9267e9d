import { readFileSync } from 'node:fs';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { loadPostgres, loadRemoval } from './product.js';

/** Postmasters that run; ended with the bench, however it ends. */
const running = new Set<number>();
process.on('exit', () => {
  for (const pid of running) process.kill(pid, 'SIGQUIT');
});

export interface BenchPostgres {
  /** The server's own version and the settings that matter for what is measured. */
  readonly facts: Readonly<Record<string, string>>;
  /** Does something with a new database and drops it again. */
  withDatabase<T>(name: string, work: (url: string) => Promise<T>): Promise<T>;
  /** Asks the server something, outside all measured databases. */
  query<Row extends pg.QueryResultRow>(text: string, values?: readonly unknown[]): Promise<readonly Row[]>;
  stop(): Promise<void>;
}

const FACTS = ['server_version', 'fsync', 'synchronous_commit', 'shared_buffers', 'max_wal_size'] as const;

/** Starts the Postgres that comes with the product, with the product's own settings, in a new folder. */
export async function startPostgres(settings: Readonly<Record<string, string>> = {}): Promise<BenchPostgres> {
  const folder = await mkdtemp(join(tmpdir(), 'punctual-bench-'));
  // Postgres refuses to run as root, and its account must get through to its files.
  await chmod(folder, 0o711);
  const dataFolder = join(folder, 'postgres');
  const { startEmbeddedPostgres } = await loadPostgres();
  const server = await startEmbeddedPostgres({ dataFolder, settings });
  const postmaster = Number(
    readFileSync(join(server.home, 'postgres', 'postmaster.pid'), 'utf8').split('\n')[0],
  );
  running.add(postmaster);
  const client = new pg.Client({ connectionString: server.url });
  client.on('error', () => undefined);
  await client.connect();
  const facts: Record<string, string> = {};
  for (const fact of FACTS) facts[fact] = (await client.query(`SHOW ${fact}`)).rows[0][fact];

  return {
    facts,
    withDatabase: async (name, work) => {
      await client.query(`CREATE DATABASE ${pg.escapeIdentifier(name)}`);
      const url = new URL(server.url);
      url.pathname = `/${name}`;
      try {
        return await work(url.href);
      } finally {
        await client.query(`DROP DATABASE ${pg.escapeIdentifier(name)} WITH (FORCE)`);
        // What one slice has left to write must not slow the next one.
        await client.query('CHECKPOINT');
      }
    },
    query: async (text, values = []) => (await client.query(text, [...values])).rows,
    stop: async () => {
      await client.end().catch(() => undefined);
      await server.stop();
      running.delete(postmaster);
      const { removeEmbeddedPostgres } = await loadRemoval();
      await removeEmbeddedPostgres(dataFolder);
      await rm(folder, { recursive: true, force: true });
    },
  };
}
