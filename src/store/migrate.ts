import { setTimeout as pause } from 'node:timers/promises';
import type pg from 'pg';
import { messageOf, PunctualError } from '../core/errors.js';
import { greatest } from '../core/long-lists.js';
import { compareVersions, VERSION } from '../core/version.js';
import { isBlocked, OUR_SETTINGS, openBriefly, type SettingsBy } from './database.js';
import { loadMigrations } from './migrations.js';
import { keepPartitions } from './partitions.js';
import { findSettingsBy } from './pooler.js';

/** Brings a database up to this program's schema, once, however many nodes start at the same moment. */

/** The state of a database's schema. */
export interface MigrationReport {
  readonly serverVersion: string;
  readonly applied: readonly string[];
  /** The number of the newest migration in the database. */
  readonly at: number;
  /** Migrations that this program carries and the database lacks. */
  readonly pending: readonly string[];
}

/** The oldest Postgres that is supported. */
const OLDEST_POSTGRES = 14;

/** An arbitrary number that only Punctual's migrations lock on. */
const LOCK = 7_301_112_009;

const BOOTSTRAP = `
  CREATE SCHEMA IF NOT EXISTS punctual;
  CREATE TABLE IF NOT EXISTS punctual.migrations (
    number          int PRIMARY KEY,
    name            text NOT NULL,
    oldest_program  text NOT NULL,
    applied_by      text NOT NULL,
    applied_at      timestamptz NOT NULL DEFAULT clock_timestamp()
  )`;

/**
 * While a change of a table waits for a reader, all other users of the table wait behind the change. So a change waits
 * for its lock no longer than this; then it is rolled back and tried again after a pause.
 */
const LOCK_TIMEOUT = `SET LOCAL lock_timeout = '200ms'`;
const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 5_000;
const GIVE_UP_AFTER_MS = 120_000;

interface MigrateOptions {
  /** Called with the reason each time that the migration has to wait for users of the tables. */
  readonly onWait?: (reason: string) => void;
  /** How long to wait for users of the tables; default two minutes. */
  readonly giveUpAfterMs?: number;
}

/** Applies what is missing. Refuses servers that are too old, read-only, or ahead of this program. */
export async function migrate(databaseUrl: string, options: MigrateOptions = {}): Promise<MigrationReport> {
  const { onWait, giveUpAfterMs = GIVE_UP_AFTER_MS } = options;
  const client = await connect(databaseUrl);
  try {
    const serverVersion = await checkServer(client);
    await checkWritable(client);
    const startedAt = performance.now();
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS)) {
      const tried = await tryApply(client);
      if (!(tried instanceof BlockedError)) return { serverVersion, ...tried, pending: [] };
      const reason = `${tried.message}: ${await whoUsesTables(client)}`;
      if (performance.now() - startedAt >= giveUpAfterMs) {
        throw new PunctualError(
          'DATABASE_UNAVAILABLE',
          `The database cannot be migrated: ${reason}. Nothing was changed; end what holds it and start again.`,
          { cause: tried },
        );
      }
      onWait?.(reason);
      await pause(pauseMs);
    }
  } catch (error) {
    throw explainConnecting(error);
  } finally {
    await client.end().catch(() => undefined);
  }
}

/** Another session used a table that was to be changed; nothing was changed. */
class BlockedError extends Error {}

/** Applies all that is missing or nothing of it. */
async function tryApply(client: pg.Client): Promise<Pick<MigrationReport, 'applied' | 'at'> | BlockedError> {
  let step = 'the partitions of the days ahead';
  try {
    // Stated here, because a pooler may have dropped our settings.
    await client.query('BEGIN ISOLATION LEVEL READ COMMITTED');
    // Waiting for another node that migrates blocks nobody else.
    await client.query(`SELECT pg_advisory_xact_lock(${LOCK})`);
    await client.query(LOCK_TIMEOUT);
    // A role without the right to create schemas can still use a database that is set up.
    if (!(await isSetUp(client))) await client.query(BOOTSTRAP);
    const present = await readApplied(client);
    refuseNewer(present);
    const missing = loadMigrations().filter(
      (migration) => !present.some((row) => row.number === migration.number),
    );
    for (const migration of missing) {
      step = `migration "${migration.name}"`;
      await client.query(migration.sql);
      await client.query(
        'INSERT INTO punctual.migrations (number, name, oldest_program, applied_by) VALUES ($1, $2, $3, $4)',
        [migration.number, migration.name, migration.oldestProgram, VERSION],
      );
    }
    await keepPartitions(client, Date.now());
    await client.query('COMMIT');
    return {
      applied: missing.map((migration) => migration.name),
      at: greatest(
        [...present, ...missing].map(({ number }) => number),
        0,
      ),
    };
  } catch (error) {
    if (!isBlocked(error)) throw error;
    await client.query('ROLLBACK');
    return new BlockedError(`${step} waits for a table that others use`, { cause: error });
  }
}

const OLDEST_USER = `
  SELECT a.pid, a.application_name AS name, a.state,
    floor(extract(epoch FROM clock_timestamp() - a.xact_start))::int AS seconds
  FROM pg_stat_activity a
  WHERE a.pid <> pg_backend_pid() AND a.datname = current_database() AND EXISTS (
    SELECT 1 FROM pg_locks l JOIN pg_class c ON c.oid = l.relation
    WHERE l.pid = a.pid AND l.granted AND c.relnamespace = to_regnamespace('punctual'))
  ORDER BY a.xact_start LIMIT 1`;

/** Describes the oldest transaction that has locks on our tables. */
async function whoUsesTables(client: pg.Client): Promise<string> {
  const { rows } = await client.query(OLDEST_USER);
  const [oldest] = rows;
  if (!oldest) return 'whoever used it has gone by now';
  const { pid, name, state, seconds } = oldest;
  const since = seconds === null ? '' : ` for ${seconds} s`;
  return `session ${pid} (${name || 'without a name'}, ${state ?? 'state unknown'}) has been in a transaction${since}`;
}

/** What is applied and what is missing, without changing anything. */
export async function migrationStatus(databaseUrl: string): Promise<MigrationReport> {
  const client = await connect(databaseUrl);
  try {
    const serverVersion = await checkServer(client);
    const present = (await isSetUp(client)) ? await readApplied(client) : [];
    refuseNewer(present);
    return {
      serverVersion,
      applied: present.map((row) => row.name),
      at: greatest(
        present.map((row) => row.number),
        0,
      ),
      pending: loadMigrations()
        .filter((migration) => !present.some((row) => row.number === migration.number))
        .map((migration) => migration.name),
    };
  } catch (error) {
    throw explainConnecting(error);
  } finally {
    await client.end().catch(() => undefined);
  }
}

/** PgBouncer's words about settings at the start of a connection; newer versions name the setting, too. */
const NO_SETTINGS = /unsupported startup parameter/;

/** How connections get their settings, with errors that say what to do; refuses a pooler that keeps no sessions. */
export async function settingsThrough(databaseUrl: string): Promise<SettingsBy> {
  try {
    return await findSettingsBy(databaseUrl);
  } catch (error) {
    throw explainConnecting(error);
  }
}

/**
 * Opens one connection for work that ends soon, through any pooler; an error says what to do about it. No named statement
 * may be prepared on it: a pooler in transaction mode would keep it for others.
 */
export async function connect(databaseUrl: string): Promise<pg.Client> {
  try {
    return await open(databaseUrl, OUR_SETTINGS).catch((error: unknown) => {
      if (NO_SETTINGS.test(messageOf(error))) return open(databaseUrl);
      throw error;
    });
  } catch (error) {
    throw explainConnecting(error);
  }
}

function open(databaseUrl: string, options?: string): Promise<pg.Client> {
  return openBriefly(databaseUrl, {
    application_name: 'punctual migrate',
    ...(options !== undefined && { options }),
  });
}

interface AppliedRow {
  readonly number: number;
  readonly name: string;
  readonly oldest_program: string;
}

async function isSetUp(client: pg.Client): Promise<boolean> {
  const { rows } = await client.query(`SELECT to_regclass('punctual.migrations') IS NOT NULL AS yes`);
  return rows[0].yes;
}

async function readApplied(client: pg.Client): Promise<AppliedRow[]> {
  return (await client.query('SELECT number, name, oldest_program FROM punctual.migrations ORDER BY number'))
    .rows;
}

function refuseNewer(present: readonly AppliedRow[]): void {
  const newer = present.filter((row) => compareVersions(row.oldest_program, VERSION) > 0);
  if (newer.length === 0) return;
  const needed = newer
    .map((row) => row.oldest_program)
    .sort(compareVersions)
    .at(-1);
  throw new PunctualError(
    'DATABASE_NEWER',
    `The database needs Punctual ${needed} or newer (this is ${VERSION}): migration "${newer.at(-1)!.name}" was applied by a newer program. Upgrade Punctual, or use another database.`,
  );
}

async function checkServer(client: pg.Client): Promise<string> {
  const { rows } = await client.query(
    `SELECT current_setting('server_version_num')::int AS number, current_setting('server_version') AS text`,
  );
  refuseOldServer(rows[0]);
  return rows[0].text as string;
}

/** Throws when a server of this version is too old; `number` is Postgres' own, such as 140005. */
export function refuseOldServer(version: { readonly number: number; readonly text: string }): void {
  if (version.number >= OLDEST_POSTGRES * 10_000) return;
  throw new PunctualError(
    'DATABASE_TOO_OLD',
    `The database server is Postgres ${version.text}; Punctual needs ${OLDEST_POSTGRES} or newer. Upgrade the server, or leave --database-url out to use the embedded one.`,
  );
}

async function checkWritable(client: pg.Client): Promise<void> {
  const { rows } = await client.query(
    `SELECT current_setting('transaction_read_only') = 'on' OR pg_is_in_recovery() AS read_only`,
  );
  if (rows[0].read_only) {
    throw new PunctualError(
      'DATABASE_NOT_WRITABLE',
      'The database is read-only (a standby, or default_transaction_read_only is on). Point --database-url at the primary.',
    );
  }
}

/** Why a database cannot be used, and what to do about it. */
export function explainConnecting(error: unknown): PunctualError {
  if (error instanceof PunctualError) return error;
  const code = (error as { code?: string }).code ?? '';
  const detail = messageOf(error instanceof AggregateError ? error.errors[0] : error);
  if (code === '42501') {
    const refusal = /for (schema|table) /.test(detail)
      ? `use Punctual's schema: ${detail}. The schema belongs to another user: use that one.`
      : `create Punctual's schema: ${detail}. Grant CREATE on the database to it, or use another user.`;
    return new PunctualError('DATABASE_NOT_WRITABLE', `The database user may not ${refusal}`, {
      cause: error,
    });
  }
  const aboutTls = explainTls(code, detail);
  if (aboutTls !== null) return new PunctualError('CONFIGURATION', aboutTls, { cause: error });
  if (code === '28P01' || code === '28000') {
    return new PunctualError(
      'DATABASE_UNAVAILABLE',
      `The database refused the login: ${detail}. Check user and password in the URL.`,
      { cause: error },
    );
  }
  if (code === '3D000') {
    return new PunctualError(
      'DATABASE_UNAVAILABLE',
      `${detail}. Create the database first, for example with createdb.`,
      { cause: error },
    );
  }
  return new PunctualError(
    'DATABASE_UNAVAILABLE',
    `The database cannot be used: ${detail}. Check that it runs and that the URL (host, port, name) is right.`,
    { cause: error },
  );
}

/** Reasons why the certificate of a server is not accepted, as Node.js names them. */
const CERTIFICATE = /CERT|UNABLE_TO_(GET|VERIFY|DECRYPT)|HOSTNAME_MISMATCH|INVALID_CA|PATH_LENGTH/;

/** What is wrong with TLS between us and the server, and what to do; null if it is something else. */
function explainTls(code: string, detail: string): string | null {
  if (/does not support SSL/i.test(detail)) {
    return 'The database server does not offer TLS, which the URL asks for with sslmode. Turn TLS on at the server, or write sslmode=disable into the URL if the network between is trusted.';
  }
  if (code === '28000' && /no encryption|SSL off/i.test(detail)) {
    return `The database server takes no connection without TLS from here: ${detail}. Write sslmode=verify-full into the URL.`;
  }
  if (CERTIFICATE.test(code)) {
    return `The certificate of the database server is not accepted: ${detail}. Name the file of its authority with sslrootcert in the URL, or write sslmode=no-verify to encrypt without knowing whom you talk to.`;
  }
  return null;
}
