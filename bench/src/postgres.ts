import { readFileSync } from 'node:fs';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { loadPostgres } from './product.js';

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

/** Settings with which the server counts statements; they cost a little, so they are for scenarios that ask. */
export const COUNTING_STATEMENTS = {
  shared_preload_libraries: 'pg_stat_statements',
  'pg_stat_statements.track': 'top',
} as const;

export interface StatementCost {
  readonly calls: number;
  readonly rows: number;
  readonly totalMs: number;
  readonly query: string;
}

/** What statements of a database have cost since the counts were set to zero, the dearest first. */
export async function statementCosts(
  postgres: BenchPostgres,
  database: string,
): Promise<readonly StatementCost[]> {
  return postgres.query<StatementCost>(
    `SELECT sum(calls)::int AS calls, sum(rows)::int AS rows, round(sum(total_exec_time))::int AS "totalMs",
            left(regexp_replace(query, '\\s+', ' ', 'g'), 160) AS query
     FROM pg_stat_statements s JOIN pg_database d ON d.oid = s.dbid
     WHERE d.datname = $1 GROUP BY 4 ORDER BY 3 DESC`,
    [database],
  );
}

/** Sets the counts of statements to zero. */
export async function forgetStatements(postgres: BenchPostgres): Promise<void> {
  await postgres.query('CREATE EXTENSION IF NOT EXISTS pg_stat_statements');
  await postgres.query('SELECT pg_stat_statements_reset()');
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
  // Versions before this distinction had one role for everything.
  const administratorUrl = server.administratorUrl ?? server.url;
  const client = new pg.Client({ connectionString: administratorUrl });
  client.on('error', () => undefined);
  await client.connect();
  const facts: Record<string, string> = {};
  for (const fact of FACTS) facts[fact] = (await client.query(`SHOW ${fact}`)).rows[0][fact];

  return {
    facts,
    withDatabase: async (name, work) => {
      const url = new URL(server.url);
      await client.query(`CREATE DATABASE ${pg.escapeIdentifier(name)} OWNER ${url.username}`);
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
      const { removeEmbeddedPostgres } = await loadPostgres();
      await removeEmbeddedPostgres(dataFolder);
      await rm(folder, { recursive: true, force: true });
    },
  };
}
