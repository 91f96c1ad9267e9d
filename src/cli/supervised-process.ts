import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { humanDuration } from '../core/duration.js';
import { type ErrorCode, isErrorCode, PunctualError } from '../core/errors.js';
import { fieldsText, parseLogLine, WARNING_LEVEL } from '../core/log-line.js';
import { printable } from '../core/paint.js';
import { RepeatFilter } from '../core/repeat-filter.js';
import type { Supervisor } from './cli.js';
import type { LogFile } from './command-log.js';

export interface ProcessOptions {
  /** Its name in messages, e.g. `worker-2`. */
  readonly name: string;
  /** The program and its arguments, which other users can see; secrets belong in the environment. */
  readonly command: readonly [string, ...string[]];
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly folder: string;
  readonly logFile: LogFile;
  /** How long it may take to stop before it is killed. */
  readonly stopTimeoutMs: number;
  /** Shows a line to the user: warnings, crashes, restarts. */
  readonly report: (message: string) => void;
}

/** The delay before a process is restarted, by how often it has ended in a row (from 1). */
export function restartDelayMs(endsInARow: number): number {
  return Math.min(30_000, 2_000 * 2 ** (endsInARow - 1));
}

/** A process that ran this long was healthy; its end is counted as the first. */
const HEALTHY_MS = 30_000;
const TAIL_LINES = 10;
/** How often the same line is shown; the log file has every one. */
const SAME_REPORT_EVERY_MS = 30_000;

/** A child process that is restarted whenever it ends without being stopped. */
export class SupervisedProcess {
  readonly #options: ProcessOptions;
  #child: ChildProcess | null = null;
  #ended: Promise<void> = Promise.resolve();
  #restart: NodeJS.Timeout | undefined;
  #stopping = false;
  #everReady = false;
  #startedAt = 0;
  #endsInARow = 0;
  #tail: string[] = [];
  readonly #repeats = new RepeatFilter(SAME_REPORT_EVERY_MS, () => performance.now());

  constructor(options: ProcessOptions) {
    this.#options = options;
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /** Starts the process and waits until it is ready; rejects when it ends before that. */
  start(): Promise<void> {
    return new Promise((resolve, reject) => this.#spawn(resolve, reject));
  }

  /** Stops the process with SIGTERM, and kills it when that takes too long. */
  async stop(): Promise<void> {
    this.#stopping = true;
    clearTimeout(this.#restart);
    const child = this.#child;
    if (child === null) return;
    child.kill('SIGTERM');
    const timer = setTimeout(() => {
      this.#options.report(`${this.#options.name} did not stop in time and is killed`);
      child.kill('SIGKILL');
    }, this.#options.stopTimeoutMs);
    await this.#ended;
    clearTimeout(timer);
  }

  /** Kills the process. */
  kill(): void {
    this.#stopping = true;
    clearTimeout(this.#restart);
    this.#child?.kill('SIGKILL');
  }

  #spawn(onReady: () => void, onFailure: (error: PunctualError) => void): void {
    const { command, environment, folder, name } = this.#options;
    const [program, ...args] = command;
    let failure: PunctualError | null = null;
    // In a process group of its own the child does not get Ctrl-C of the terminal: the supervisor stops its processes
    // in order.
    const child = spawn(program, args, {
      cwd: folder,
      env: { ...environment, [SUPERVISED_VARIABLE]: '1' },
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
      detached: true,
    });
    this.#child = child;
    this.#startedAt = performance.now();
    this.#tail = [];
    this.#collect(child.stdout!, false);
    this.#collect(child.stderr!, true);
    child.on('message', (raw) => {
      const message = readChildMessage(raw);
      if (message?.type === 'ready') {
        this.#everReady = true;
        onReady();
      }
      if (message?.type === 'failed') failure = new PunctualError(message.code, message.detail);
    });
    this.#ended = new Promise((resolve) => {
      const end = (how: string): void => {
        if (this.#child !== child) return;
        this.#child = null;
        resolve();
        onFailure(failure ?? new PunctualError('INTERNAL', this.#describeEnd(how)));
        // A process that was never ready would fail again the same way; its error goes to the caller of `start`.
        if (!this.#stopping && this.#everReady) this.#scheduleRestart(`${name} ${how}`);
      };
      child.once('error', (error) => end(`could not be run: ${error.message}`));
      child.once('exit', (code, signal) =>
        end(signal ? `was killed by ${signal}` : `ended with code ${code}`),
      );
    });
  }

  #describeEnd(how: string): string {
    const { name, logFile } = this.#options;
    const said = this.#tail.length > 0 ? ` Its last output: ${this.#tail.join(' ')}` : '';
    return `${name} ${how} before it was ready.${said} Its log is ${logFile.path}.`;
  }

  #scheduleRestart(what: string): void {
    if (performance.now() - this.#startedAt > HEALTHY_MS) this.#endsInARow = 0;
    this.#endsInARow += 1;
    const delay = restartDelayMs(this.#endsInARow);
    const { name, report } = this.#options;
    report(`${what}; it restarts in ${humanDuration(delay)}`);
    const back = (): void => report(`${name} runs again`);
    this.#restart = setTimeout(() => this.#spawn(back, () => undefined), delay);
  }

  /** Writes every line to the log file, and shows the important ones to the user. */
  #collect(stream: Readable, isLog: boolean): void {
    const { logFile, name, report } = this.#options;
    createInterface({ input: stream, crlfDelay: Number.POSITIVE_INFINITY }).on('line', (line) => {
      logFile.write(line);
      if (!isLog || line === '') return;
      const entry = parseLogLine(line);
      if (entry === null) this.#tail = [...this.#tail, line].slice(-TAIL_LINES);
      // Before it is ready its last output becomes part of the error that `start` throws.
      const matters = entry === null ? this.#everReady : entry.level >= WARNING_LEVEL;
      const text = entry?.message ?? line;
      if (!matters || !this.#repeats.isNew(text)) return;
      const { stack: _stack, ...fields } = entry?.fields ?? {};
      report(`${name}: ${printable(`${text} ${fieldsText(fields)}`.trim())}`);
    });
  }
}

/**
 * The messages of the processes that `punctual up` starts. They use the IPC channel of Node between parent and child:
 * the kernel closes it when the parent dies, so a child always notices that.
 */

/** Set for processes that `punctual up` starts, to tell its channel from one that another parent opened. */
const SUPERVISED_VARIABLE = 'PUNCTUAL_SUPERVISED';

type ChildMessage =
  | { readonly type: 'ready' }
  | { readonly type: 'failed'; readonly code: ErrorCode; readonly detail: string };

interface ChildProcessView {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly connected?: boolean;
  send?(message: unknown, callback: (error: Error | null) => void): boolean;
  once(event: 'disconnect', listener: () => void): unknown;
}

/** The supervisor of a process, if it has one. */
export function findSupervisor(child: ChildProcessView): Supervisor | null {
  if (child.env[SUPERVISED_VARIABLE] !== '1' || child.send === undefined) return null;
  const gone = new AbortController();
  if (child.connected) child.once('disconnect', () => gone.abort());
  else gone.abort();
  const tell = (message: ChildMessage): void => {
    if (child.connected) child.send?.(message, () => undefined);
  };
  return {
    gone: gone.signal,
    ready: () => tell({ type: 'ready' }),
    failed: (code, detail) => tell({ type: 'failed', code: isErrorCode(code) ? code : 'INTERNAL', detail }),
  };
}

/** Parses a message of a child; null when it is not one of these. */
export function readChildMessage(message: unknown): ChildMessage | null {
  if (typeof message !== 'object' || message === null) return null;
  const { type, code, detail } = message as Record<string, unknown>;
  if (type === 'ready') return { type };
  if (type !== 'failed' || typeof code !== 'string' || typeof detail !== 'string') return null;
  return { type, code: isErrorCode(code) ? code : 'INTERNAL', detail };
}
