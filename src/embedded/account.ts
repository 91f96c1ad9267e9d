import { spawn } from 'node:child_process';
import { readFile, stat } from 'node:fs/promises';
import { messageOf } from '../core/errors.js';
import { embeddedFailure, OWN_DATABASE } from './embedded-failure.js';

/**
 * Postgres refuses to run as root. A program that runs as root therefore starts it under another account; any other
 * user runs it under their own.
 */

const PREFERRED = ['postgres', '_postgres', 'punctual', 'nobody'];

/** The accounts of `/etc/passwd` except root; those that suit a database best come first. */
export function candidateAccounts(passwd: string): Account[] {
  const accounts = passwd
    .split('\n')
    .map((line) => line.split(':'))
    .filter((fields) => fields.length >= 4 && !fields[0]!.startsWith('#'))
    .map(([name, , uid, gid]) => ({ name: name!, uid: unsigned(uid!), gid: unsigned(gid!) }))
    .filter((account) => account.uid > 0);
  const rank = (account: Account) => {
    const index = PREFERRED.indexOf(account.name);
    return index === -1 ? PREFERRED.length : index;
  };
  return accounts.sort((a, b) => rank(a) - rank(b) || a.uid - b.uid);
}

/** Some systems write the id of `nobody` as -2, which stands for 4294967294. */
function unsigned(id: string): number {
  return /^-?\d+$/.test(id) ? Number(id) >>> 0 : 0;
}

/** Whether this process runs as root, so that Postgres needs another account. */
export function runsAsRoot(): boolean {
  return process.getuid?.() === 0;
}

/** The account for a new server; null for the one of this process. */
export async function chooseAccount(): Promise<Account | null> {
  if (!runsAsRoot()) return null;
  const [account] = candidateAccounts(await readFile('/etc/passwd', 'utf8').catch(() => ''));
  if (account === undefined) {
    throw embeddedFailure(
      'Postgres refuses to run as root, and there is no other account on this machine. ' +
        `Create one (useradd --system postgres), or run as a normal user. ${OWN_DATABASE}`,
    );
  }
  return await mustBeUsable(account);
}

/** The account that owns existing data; null for the one of this process. Files of root get another owner. */
export async function ownerOf(pgdata: string): Promise<Account | null> {
  const { uid, gid } = await stat(pgdata);
  if (!runsAsRoot()) {
    if (uid === process.getuid?.()) return null;
    throw embeddedFailure(
      `The database in ${pgdata} belongs to another user (uid ${uid}). ` +
        'Run as that user or as root, or choose another folder with --data.',
    );
  }
  return uid === 0 ? await chooseAccount() : await mustBeUsable({ name: `uid ${uid}`, uid, gid });
}

/** In some containers root may not switch to other accounts; this finds out before anything is written. */
async function mustBeUsable(account: Account): Promise<Account> {
  const attempt = await runCommand('/bin/sh', ['-c', 'exit 0'], { account, cwd: '/' });
  if (attempt.code === 0) return account;
  throw embeddedFailure(
    `Postgres refuses to run as root, and this process may not run it as ${account.name}: ` +
      `${attempt.output.trim()}. Run as a normal user. ${OWN_DATABASE}`,
  );
}

/** Whether the account (null: this process) may read (`-r`), write (`-w`) or execute (`-x`) a path. */
export async function may(
  account: Account | null,
  right: '-r' | '-w' | '-x',
  path: string,
): Promise<boolean> {
  const script = 'test "$1" "$2"';
  return (await runCommand('/bin/sh', ['-c', script, 'sh', right, path], { account, cwd: '/' })).code === 0;
}

/** An account of the operating system. */
export interface Account {
  readonly name: string;
  readonly uid: number;
  readonly gid: number;
}

interface CommandOptions {
  readonly account: Account | null;
  readonly cwd: string;
  readonly input?: string;
}

export interface CommandResult {
  /** The exit code; null when the program was killed or could not be started. */
  readonly code: number | null;
  /** The output of both streams, or why it could not be started. */
  readonly output: string;
}

const KEPT_OUTPUT = 64 * 1024;

/**
 * The environment of Postgres programs. Variables of the caller, such as PGOPTIONS, TZ or a locale, would change their
 * behaviour.
 */
export const CLEAN_ENVIRONMENT: NodeJS.ProcessEnv = {
  PATH: '/usr/bin:/bin:/usr/sbin:/sbin',
  LC_ALL: 'C',
  TZ: 'UTC',
};

/** The options of `spawn` for an account; Node takes ids above 2^31 as negative numbers. */
export function spawnIdentity(account: Account | null): { uid?: number; gid?: number } {
  return account === null ? {} : { uid: account.uid | 0, gid: account.gid | 0 };
}

/** Runs a program to its end. It never rejects: a program that cannot be started is a result, too. */
export function runCommand(
  file: string,
  args: readonly string[],
  options: CommandOptions,
): Promise<CommandResult> {
  return new Promise((resolve) => {
    let output = '';
    const keep = (chunk: string) => {
      output = (output + chunk).slice(-KEPT_OUTPUT);
    };
    const notStarted = (error: unknown) => resolve({ code: null, output: messageOf(error) });
    try {
      const child = spawn(file, args, {
        cwd: options.cwd,
        env: CLEAN_ENVIRONMENT,
        stdio: 'pipe',
        ...spawnIdentity(options.account),
      });
      child.stdout.setEncoding('utf8').on('data', keep);
      child.stderr.setEncoding('utf8').on('data', keep);
      child.once('error', notStarted);
      child.once('close', (code) => resolve({ code, output }));
      // A program that ends without reading its input closes the pipe; its exit code is enough.
      child.stdin.on('error', () => {});
      child.stdin.end(options.input ?? '');
    } catch (error) {
      notStarted(error);
    }
  });
}
