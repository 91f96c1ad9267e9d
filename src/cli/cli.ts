import type { Readable } from 'node:stream';
import { MAX_TIMER_MS } from '../core/clock.js';

/** The part of an output stream that commands use. */
export interface OutputStream {
  readonly isTTY?: boolean | undefined;
  readonly columns?: number | undefined;
  readonly rows?: number | undefined;
  write(text: string | Uint8Array, done?: (error?: Error | null) => void): unknown;
}

/** The process that a run of the program belongs to; tests pass their own. */
export interface Cli {
  readonly stdin: Readable & { readonly isTTY?: boolean };
  readonly stdout: OutputStream;
  readonly stderr: OutputStream;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** The folder in which the program was started. */
  readonly folder: string;
  /** Aborts at the first SIGINT, SIGTERM or SIGHUP: the command should finish in order. */
  readonly interrupted: AbortSignal;
  /** Aborts at the second signal: the command should end at once. */
  readonly interruptedAgain: AbortSignal;
  /** Aborts when the reader of stdout has closed the pipe. */
  readonly readerGone: AbortSignal;
  /** The `punctual up` that started this process; null when a person or another program did. */
  readonly supervisor: Supervisor | null;
  now(): number;
}

/** The `punctual up` that started this process. */
export interface Supervisor {
  /** Aborts when the supervisor has ended; nobody will stop this process then. */
  readonly gone: AbortSignal;
  ready(): void;
  failed(code: string, detail: string): void;
}

/**
 * Waits until one of the signals aborts. A listener alone would not keep the process alive; this does.
 */
export function anyAborted(...signals: readonly AbortSignal[]): Promise<void> {
  return new Promise((resolve) => {
    const any = AbortSignal.any([...signals]);
    if (any.aborted) {
      resolve();
      return;
    }
    let timer: NodeJS.Timeout;
    const hold = (): void => {
      timer = setTimeout(hold, MAX_TIMER_MS);
    };
    hold();
    any.addEventListener(
      'abort',
      () => {
        clearTimeout(timer);
        resolve();
      },
      { once: true },
    );
  });
}
