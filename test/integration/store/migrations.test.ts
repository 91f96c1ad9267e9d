import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { expect, inject, it, onTestFinished } from 'vitest';
import { PunctualError } from '../../../src/core/errors.js';
import { freePort } from '../../../src/embedded/server-settings.js';
import { migrate, migrationStatus, refuseOldServer } from '../../../src/store/migrate.js';
import { loadMigrations } from '../../../src/store/migrations.js';
import { Happening } from '../../happening.js';

const MIGRATIONS = loadMigrations().map((migration) => migration.name);

/** Runs statements on the server as its owner. */
async function onServer(url: string, ...statements: string[]): Promise<pg.QueryResult> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    let last: pg.QueryResult | undefined;
    for (const statement of statements) last = await client.query(statement);
    return last!;
  } finally {
    await client.end();
  }
}

const unique = (word: string) => `${word}_${randomBytes(6).toString('hex')}`;

function urlWith(change: (url: URL) => void): string {
  const url = new URL(inject('serverUrl'));
  change(url);
  return url.href;
}

/** A database without anything of ours in it. */
async function emptyDatabase(): Promise<{ name: string; url: string }> {
  const name = unique('empty');
  await onServer(inject('serverUrl'), `CREATE DATABASE ${name}`);
  onTestFinished(async () => {
    await onServer(inject('serverUrl'), `DROP DATABASE ${name} WITH (FORCE)`);
  });
  return {
    name,
    url: urlWith((url) => {
      url.pathname = `/${name}`;
    }),
  };
}

/** A user who may log in and nothing else. */
async function plainUser(database: string): Promise<string> {
  const name = unique('user');
  await onServer(inject('serverUrl'), `CREATE ROLE ${name} LOGIN PASSWORD 'secret'`);
  onTestFinished(async () => {
    await onServer(inject('serverUrl'), `DROP ROLE ${name}`);
  });
  return urlWith((url) => {
    url.pathname = `/${database}`;
    url.username = name;
    url.password = 'secret';
  });
}

async function refusal(work: Promise<unknown>): Promise<PunctualError> {
  const error = await work.catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(PunctualError);
  return error as PunctualError;
}

it('nodes that start at the same moment migrate once', async () => {
  const { url } = await emptyDatabase();
  const reports = await Promise.all(Array.from({ length: 6 }, () => migrate(url)));
  expect(reports.map((report) => report.applied.length).sort()).toEqual([0, 0, 0, 0, 0, MIGRATIONS.length]);
  expect(new Set(reports.map((report) => report.at))).toEqual(new Set([MIGRATIONS.length]));
  const { rows } = await onServer(url, 'SELECT name FROM punctual.migrations ORDER BY number');
  expect(rows.map((row) => row.name)).toEqual(MIGRATIONS);
});

it('jobs that wait when submission by SQL begins to be checked are still there, and nobody keeps an old right', async () => {
  const { url } = await emptyDatabase();
  const before = loadMigrations().slice(0, MIGRATIONS.indexOf('submit-by-sql'));
  await onServer(
    url,
    `CREATE SCHEMA punctual;
     CREATE TABLE punctual.migrations (number int PRIMARY KEY, name text NOT NULL, oldest_program text NOT NULL,
       applied_by text NOT NULL, applied_at timestamptz NOT NULL DEFAULT clock_timestamp())`,
    ...before.map(({ sql }) => sql),
    ...before.map(
      ({ number, name }) => `INSERT INTO punctual.migrations VALUES (${number}, '${name}', '0.1.0', '0.1.0')`,
    ),
    `SELECT punctual.submit_job('default', '{"task": "good"}'), punctual.submit_job('default', '{"taks": "bad"}')`,
  );
  expect((await migrate(url)).applied[0]).toBe('submit-by-sql');
  const { rows } = await onServer(
    url,
    `SELECT count(submission)::int AS waiting,
       has_function_privilege('public', 'punctual.submit_job(text, json)', 'EXECUTE') AS public
     FROM punctual.later`,
  );
  expect(rows).toEqual([{ waiting: 2, public: false }]);
  const bad = onServer(url, `SELECT punctual.submit_job('default', '{"taks": "bad"}')`);
  await expect(bad).rejects.toThrow('/taks: is not a known field');
});

it('the status says what is missing and changes nothing', async () => {
  const { url } = await emptyDatabase();
  expect(await migrationStatus(url)).toMatchObject({ applied: [], at: 0, pending: MIGRATIONS });
  const { rows } = await onServer(url, `SELECT to_regnamespace('punctual') AS schema`);
  expect(rows).toEqual([{ schema: null }]);
  await migrate(url);
  expect(await migrationStatus(url)).toMatchObject({ applied: MIGRATIONS, pending: [] });
});

it('a database that needs a newer program is refused, and says which', async () => {
  const { url } = await emptyDatabase();
  await migrate(url);
  await onServer(
    url,
    `INSERT INTO punctual.migrations (number, name, oldest_program, applied_by)
     VALUES (900, 'harmless', '0.0.1', '98.0.0'), (901, 'breaking', '99.1.0', '99.2.0')`,
  );
  for (const work of [migrate, migrationStatus]) {
    const error = await refusal(work(url));
    expect(error.code).toBe('DATABASE_NEWER');
    expect(error.message).toMatch(/99\.1\.0.*breaking/);
  }
});

it('a newer database that can live with this program is used', async () => {
  const { url } = await emptyDatabase();
  await migrate(url);
  await onServer(
    url,
    `INSERT INTO punctual.migrations (number, name, oldest_program, applied_by)
     VALUES (900, 'harmless', '0.0.1', '98.0.0')`,
  );
  expect(await migrate(url)).toMatchObject({ applied: [], at: 900 });
});

/** A migrated database that lacks a change of the table of live jobs, and a session that reads that table. */
async function changeBehindReader(): Promise<{ url: string; reader: pg.Client; other: pg.Client }> {
  const { url } = await emptyDatabase();
  await migrate(url);
  await onServer(
    url,
    'ALTER TABLE punctual.jobs DROP COLUMN edited',
    'DROP FUNCTION punctual.limit_statistics',
    'DELETE FROM punctual.migrations WHERE number = 4',
  );
  const [reader, other] = [new pg.Client(url), new pg.Client(url)];
  await Promise.all([reader.connect(), other.connect()]);
  onTestFinished(async () => {
    await Promise.all([reader.end(), other.end()]);
  });
  await reader.query('BEGIN');
  await reader.query('SELECT count(*) FROM punctual.jobs');
  return { url, reader, other };
}

it('a change that has to wait for a reader keeps nobody else waiting, and is made once the reader has gone', async () => {
  const { url, reader, other } = await changeBehindReader();
  const waits = new Happening<string>();
  const migrating = migrate(url, { onWait: (reason) => waits.happen(reason) });
  await other.query(`SET statement_timeout = '2s'`);
  const readUntil = async (isOver: () => boolean) => {
    while (!isOver()) await other.query('SELECT count(*) FROM punctual.jobs');
  };
  await Promise.all([waits.times(2), readUntil(() => waits.all.length >= 2)]);
  expect(waits.all[0]).toMatch(/session \d+/);
  await reader.query('COMMIT');
  expect(await migrating).toMatchObject({ applied: ['lighter-jobs'] });
});

it('a change that is kept waiting for too long is given up with the session that stands in its way', async () => {
  const { url, reader } = await changeBehindReader();
  const { rows } = await reader.query('SELECT pg_backend_pid() AS pid');
  const error = await refusal(migrate(url, { giveUpAfterMs: 0 }));
  expect(error.code).toBe('DATABASE_UNAVAILABLE');
  expect(error.message).toMatch(new RegExp(`lighter-jobs.*session ${rows[0].pid}`));
  expect((await migrationStatus(url)).pending).toEqual(['lighter-jobs']);
});

it('a server without TLS is not mistaken for a wrong password, and the driver has nothing to warn of', async () => {
  const { url } = await emptyDatabase();
  const warnings: string[] = [];
  const note = (warning: Error) => void warnings.push(warning.message);
  process.on('warning', note);
  onTestFinished(() => void process.off('warning', note));
  for (const mode of ['require', 'prefer', 'verify-ca', 'verify-full', 'no-verify']) {
    const error = await refusal(migrationStatus(`${url}?sslmode=${mode}`));
    expect(error).toMatchObject({
      code: 'CONFIGURATION',
      message: expect.stringMatching(/TLS.*sslmode=disable/),
    });
  }
  expect(warnings).toEqual([]);
  expect(await migrationStatus(`${url}?sslmode=disable`)).toMatchObject({ applied: [] });
});

it('a read-only database is refused with the way out', async () => {
  const { name, url } = await emptyDatabase();
  await onServer(inject('serverUrl'), `ALTER DATABASE ${name} SET default_transaction_read_only = on`);
  const error = await refusal(migrate(url));
  expect(error.code).toBe('DATABASE_NOT_WRITABLE');
  expect(error.message).toContain('primary');
});

it('a user who may not create the schema is told what to grant', async () => {
  const { name } = await emptyDatabase();
  const error = await refusal(migrate(await plainUser(name)));
  expect(error.code).toBe('DATABASE_NOT_WRITABLE');
  expect(error.message).toContain('Grant CREATE');
});

it('a user who does not own the schema is told to use the one who does', async () => {
  const { name, url } = await emptyDatabase();
  await migrate(url);
  const error = await refusal(migrate(await plainUser(name)));
  expect(error.message).toContain('belongs to another user');
});

it('a wrong password is told apart from a server that does not run', async () => {
  const error = await refusal(
    migrate(
      urlWith((url) => {
        url.password = 'wrong';
      }),
    ),
  );
  expect(error.code).toBe('DATABASE_UNAVAILABLE');
  expect(error.message).toMatch(/refused the login.*password/);
});

it('a database that does not exist is named, with how to make it', async () => {
  const error = await refusal(
    migrate(
      urlWith((url) => {
        url.pathname = '/nowhere';
      }),
    ),
  );
  expect(error.code).toBe('DATABASE_UNAVAILABLE');
  expect(error.message).toMatch(/nowhere.*createdb/);
});

it('a port that nobody listens on is an unreachable database', async () => {
  const port = String(await freePort(null));
  const error = await refusal(
    migrate(
      urlWith((url) => {
        url.port = port;
      }),
    ),
  );
  expect(error.code).toBe('DATABASE_UNAVAILABLE');
  expect(error.message).toMatch(/ECONNREFUSED.*Check that it runs/);
});

it('a URL that is none is a fault of the configuration', async () => {
  expect((await refusal(migrate('postgres://[broken'))).code).toBe('CONFIGURATION');
});

it('servers before version 14 are refused, all others taken', () => {
  expect(() => refuseOldServer({ number: 140_000, text: '14.0' })).not.toThrow();
  expect(() => refuseOldServer({ number: 180_001, text: '18.1' })).not.toThrow();
  const old = () => refuseOldServer({ number: 130_022, text: '13.22 (Debian)' });
  expect(old).toThrow(expect.objectContaining({ code: 'DATABASE_TOO_OLD' }));
  expect(old).toThrow(/13\.22.*14 or newer/);
});

it('a database is led and used by the user who migrated it, without any other right', async () => {
  const { name } = await emptyDatabase();
  const url = await plainUser(name);
  const user = new URL(url).username;
  await onServer(inject('serverUrl'), `GRANT CREATE ON DATABASE ${name} TO ${user}`);
  onTestFinished(async () => {
    const database = urlWith((server) => {
      server.pathname = `/${name}`;
    });
    await onServer(database, `DROP OWNED BY ${user}`);
  });
  expect((await migrate(url)).applied).toEqual(MIGRATIONS);
  expect((await migrate(url)).applied).toEqual([]);
});
