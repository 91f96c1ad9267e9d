import type { Readable } from 'node:stream';
import type { StartRequest } from './messages.js';

/** A process that was started for a program. */
export interface StartedProcess {
  readonly pid: number;
  readonly stdout: Readable;
  readonly stderr: Readable;
  /**
   * Removes what its folder was made with, and the folder if nothing else is in it; resolves with whether it is gone. Called once,
   * when all of its processes have ended.
   */
  removeFolder(): Promise<boolean>;
}

/** Whoever wants to know what becomes of a start. */
export interface StartListener {
  onStarted(process: StartedProcess): void;
  /** It was not started; nothing else comes. */
  onFailed(code: string, message: string): void;
  /** The first process has ended; what it has started may go on, and its pipes may still hold something. */
  onExited(exitCode: number | null, signal: string | null): void;
}

/** A way to start programs. */
export interface Starter {
  start(request: StartRequest, listener: StartListener): void;
}
