import { Readable } from 'node:stream';
import type { Cli, Supervisor } from '../src/cli/cli.js';

/** What a test may set about the shell that a command runs in. */
export interface ShellOptions {
  readonly stdin?: Readable;
  readonly environment?: Readonly<Record<string, string | undefined>>;
  readonly folder?: string;
  readonly isTTY?: boolean;
  /** The size of the terminal. */
  readonly columns?: number;
  readonly rows?: number;
  readonly interrupted?: AbortSignal;
  readonly readerGone?: AbortSignal;
  readonly supervisor?: Supervisor;
}

/** A command line without a process around it, with what it printed. */
export interface CliUnderTest {
  readonly cli: Cli;
  stdout(): string;
  stderr(): string;
}

/** Makes one; nothing of the real environment shines through. */
export function cliUnderTest(options: ShellOptions = {}): CliUnderTest {
  const printed = { stdout: '', stderr: '' };
  const stream = (name: 'stdout' | 'stderr') => ({
    isTTY: options.isTTY ?? false,
    columns: options.columns ?? 120,
    rows: options.rows,
    write: (text: string | Uint8Array, done?: () => void) => {
      printed[name] += typeof text === 'string' ? text : Buffer.from(text).toString('latin1');
      done?.();
    },
  });
  const never = new AbortController().signal;
  return {
    cli: {
      stdin: options.stdin ?? Readable.from([]),
      stdout: stream('stdout'),
      stderr: stream('stderr'),
      environment: options.environment ?? {},
      folder: options.folder ?? import.meta.dirname,
      interrupted: options.interrupted ?? never,
      interruptedAgain: never,
      readerGone: options.readerGone ?? never,
      supervisor: options.supervisor ?? null,
      now: Date.now,
    },
    stdout: () => printed.stdout,
    stderr: () => printed.stderr,
  };
}
