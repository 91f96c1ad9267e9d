import { spawn } from 'node:child_process';
import { messageOf } from '../core/errors.js';

/** The account a program runs under where it must not run as root. */
export interface Account {
  readonly name: string;
  readonly uid: number;
  readonly gid: number;
}

export interface CommandOptions {
  readonly account: Account | null;
  readonly cwd: string;
  readonly input?: string;
}

export interface CommandResult {
  /** The exit code; null when the program was killed or could not be started. */
  readonly code: number | null;
  /** What it wrote to both streams, or why it could not be started. */
  readonly output: string;
}

const KEPT_OUTPUT = 64 * 1024;

/**
 * The environment of Postgres programs: variables of the caller such as PGOPTIONS, TZ or a locale would
 * change what they do.
 */
export const CLEAN_ENVIRONMENT: NodeJS.ProcessEnv = {
  PATH: '/usr/bin:/bin:/usr/sbin:/sbin',
  LC_ALL: 'C',
  TZ: 'UTC',
};

/** Which account `spawn` shall use; ids above 2^31 are negative in Node's eyes. */
export function spawnIdentity(account: Account | null): { uid?: number; gid?: number } {
  return account === null ? {} : { uid: account.uid | 0, gid: account.gid | 0 };
}

/** Runs a program to its end and never throws: a program that cannot be started is a result like others. */
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
    const refused = (error: unknown) => resolve({ code: null, output: messageOf(error) });
    try {
      const child = spawn(file, args, {
        cwd: options.cwd,
        env: CLEAN_ENVIRONMENT,
        stdio: 'pipe',
        ...spawnIdentity(options.account),
      });
      child.stdout.setEncoding('utf8').on('data', keep);
      child.stderr.setEncoding('utf8').on('data', keep);
      child.once('error', refused);
      child.once('close', (code) => resolve({ code, output }));
      // A program that ends without reading its input closes the pipe; its exit code says enough.
      child.stdin.on('error', () => {});
      child.stdin.end(options.input ?? '');
    } catch (error) {
      refused(error);
    }
  });
}
