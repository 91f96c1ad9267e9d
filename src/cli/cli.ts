import type { Readable } from 'node:stream';
import { MAX_TIMER_MS } from '../core/clock.js';

/** The part of an output stream that commands use. */
export interface OutputStream {
  readonly isTTY?: boolean | undefined;
  readonly columns?: number | undefined;
  write(text: string, done?: (error?: Error | null) => void): unknown;
}

/** What the shell gives to a run of the program; tests give their own. */
export interface Cli {
  readonly stdin: Readable & { readonly isTTY?: boolean };
  readonly stdout: OutputStream;
  readonly stderr: OutputStream;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** The folder in which the program was started. */
  readonly folder: string;
  /** Aborts with the first SIGINT, SIGTERM or SIGHUP: finish in order. */
  readonly interrupted: AbortSignal;
  /** Aborts with the second one: leave at once. */
  readonly interruptedAgain: AbortSignal;
  /** Aborts when whoever read stdout has gone away. */
  readonly readerGone: AbortSignal;
  /** The `punctual up` that started this process; null when a person or another program did. */
  readonly supervisor: Supervisor | null;
  now(): number;
}

/** What a process tells the `punctual up` that started it. */
export interface Supervisor {
  /** Aborts when the supervisor is gone, however it ended: nobody will stop this process then. */
  readonly gone: AbortSignal;
  ready(): void;
  failed(code: string, detail: string): void;
}

/**
 * Waits until one of the signals aborts. Unlike a bare listener it keeps the process alive meanwhile, even when
 * nothing else does.
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
