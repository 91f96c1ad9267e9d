import { mkdtemp, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Account, type CommandResult, runCommand } from './account.js';
import { embeddedFailure, explain, OWN_DATABASE } from './embedded-failure.js';
import type { PostgresBinaries } from './postgres-binaries.js';
import { giveTo } from './server-home.js';
import { syncFolder } from './state-file.js';

/** The server's superuser; nodes use another role. */
export const ROLE = 'punctual';
/** The database that the product uses. */
export const DATABASE = 'punctual';

const DRAFT_PREFIX = 'postgres.draft-';

/** How many lines at the end of a program's output are shown when it failed. */
const SHOWN_LINES = 8;

/** Only programs on this machine that know the password may connect. */
const ACCESS_RULES = `# Written by Punctual.\nhost all all 127.0.0.1/32 scram-sha-256\n`;

/**
 * Creates the files of a new server. They get their final name only when they are complete, so that a later start
 * never finds half a database.
 */
export async function createDatabaseFiles(
  binaries: PostgresBinaries,
  home: string,
  account: Account | null,
  password: string,
): Promise<void> {
  const draft = await mkdtemp(join(home, DRAFT_PREFIX)).catch((error: unknown) => {
    throw explain(error, `No database can be made in ${home}`);
  });
  try {
    await giveTo(draft, account);
    const made = await runCommand(
      binaries.initdb,
      ['-D', draft, '-U', ROLE, '--auth=reject', '--encoding=UTF8', '--locale=C'],
      { account, cwd: '/' },
    );
    if (made.code !== 0) throw failed('The database could not be made', made);
    await writeFile(join(draft, 'pg_hba.conf'), ACCESS_RULES);
    await runSingleUser(binaries, draft, account, [
      passwordStatement(password),
      `CREATE DATABASE ${DATABASE}`,
    ]);
    await rename(draft, join(home, 'postgres'));
    await syncFolder(home);
  } catch (error) {
    await rm(draft, { recursive: true, force: true });
    throw explain(error, `The database could not be made in ${home}`);
  }
}

/** Sets a new password while the server is not running, for a data folder that has lost its state file. */
export async function resetPassword(
  binaries: PostgresBinaries,
  pgdata: string,
  account: Account | null,
  password: string,
): Promise<void> {
  await runSingleUser(binaries, pgdata, account, [passwordStatement(password)]);
}

function passwordStatement(password: string): string {
  return `ALTER ROLE ${ROLE} PASSWORD '${password}'`;
}

/** Runs statements in Postgres's single-user mode, which needs neither a port nor a password. */
async function runSingleUser(
  binaries: PostgresBinaries,
  pgdata: string,
  account: Account | null,
  statements: readonly string[],
): Promise<void> {
  const args = ['--single', '-D', pgdata, '-c', 'exit_on_error=on', '-c', 'log_checkpoints=off', 'postgres'];
  const result = await runCommand(binaries.postgres, args, {
    account,
    cwd: '/',
    input: `${statements.join('\n')}\n`,
  });
  if (result.code !== 0) throw failed('The database could not be set up', result);
}

function failed(what: string, result: CommandResult): Error {
  const full = /no space left|disk quota/i.test(result.output);
  const advice = full ? 'The disk is full. Make room, or choose another folder with --data.' : OWN_DATABASE;
  const ending = result.code === null ? 'stopped' : `ended with code ${result.code}`;
  const said = result.output.trim().split('\n').slice(-SHOWN_LINES).join('\n');
  return embeddedFailure(`${what} (${ending}): ${said}\n${advice}`);
}

/** Removes the drafts of interrupted starts; one that cannot be removed now is left for the next start. */
export async function removeDrafts(home: string): Promise<void> {
  for (const name of await readdir(home)) {
    if (!name.startsWith(DRAFT_PREFIX)) continue;
    await rm(join(home, name), { recursive: true, force: true }).catch(() => {});
  }
}
