import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { humanDuration } from '../core/duration.js';
import { ERROR_CODES, type ErrorCode, PunctualError } from '../core/errors.js';
import type { Supervisor } from './cli.js';
import { type LogFile, parseLogLine, Repetition, WARNING_LEVEL } from './command-log.js';

export interface ProcessOptions {
  /** How it is called in messages, e.g. `worker-2`. */
  readonly name: string;
  /** The program and its arguments. Secrets go into the environment, where other users cannot see them. */
  readonly command: readonly [string, ...string[]];
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly folder: string;
  readonly logFile: LogFile;
  /** How long it may take to end in order before it is killed. */
  readonly stopTimeoutMs: number;
  /** Tells the person at the terminal what matters: warnings, crashes, restarts. */
  readonly report: (message: string) => void;
}

/** The pause before a process that ended is started again, after this many ends in a row (from 1). */
export function restartDelayMs(endsInARow: number): number {
  return Math.min(30_000, 2_000 * 2 ** (endsInARow - 1));
}

/** A process that lived this long was healthy; its end starts a new count. */
const HEALTHY_MS = 30_000;
const TAIL_LINES = 10;
/** The log file has every line; a person needs to read the same one only now and then. */
const SAME_REPORT_EVERY_MS = 30_000;

/** A child process that is started again whenever it ends without having been told to. */
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
  readonly #repetition = new Repetition(SAME_REPORT_EVERY_MS, () => performance.now());

  constructor(options: ProcessOptions) {
    this.#options = options;
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /** Starts the process and waits until it says that it is ready; rejects when it ends before. */
  start(): Promise<void> {
    return new Promise((resolve, reject) => this.#spawn(resolve, reject));
  }

  /** Asks the process to end in order, and ends it when it takes too long. */
  async stop(): Promise<void> {
    this.#stopping = true;
    clearTimeout(this.#restart);
    const child = this.#child;
    if (child === null) return;
    child.kill('SIGTERM');
    const timer = setTimeout(() => {
      this.#options.report(`${this.#options.name} did not stop in time and is ended`);
      child.kill('SIGKILL');
    }, this.#options.stopTimeoutMs);
    await this.#ended;
    clearTimeout(timer);
  }

  /** Ends the process at once. */
  kill(): void {
    this.#stopping = true;
    clearTimeout(this.#restart);
    this.#child?.kill('SIGKILL');
  }

  #spawn(onReady: () => void, onFailure: (error: PunctualError) => void): void {
    const { command, environment, folder, name } = this.#options;
    const [program, ...args] = command;
    let failure: PunctualError | null = null;
    // A group of its own keeps Ctrl-C in the terminal away: the supervisor stops its processes in order.
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
        // One that has never worked would fail the same way again: whoever started it is told instead.
        if (!this.#stopping && this.#everReady) this.#scheduleRestart(`${name} ${how}`);
      };
      child.once('error', (error) => end(`could not be run: ${error.message}`));
      child.once('exit', (code, signal) =>
        end(signal ? `was ended by ${signal}` : `ended with code ${code}`),
      );
    });
  }

  #describeEnd(how: string): string {
    const { name, logFile } = this.#options;
    const said = this.#tail.length > 0 ? ` It said: ${this.#tail.join(' ')}` : '';
    return `${name} ${how} before it was ready.${said} Its log is ${logFile.path}.`;
  }

  #scheduleRestart(what: string): void {
    if (performance.now() - this.#startedAt > HEALTHY_MS) this.#endsInARow = 0;
    this.#endsInARow += 1;
    const delay = restartDelayMs(this.#endsInARow);
    const { name, report } = this.#options;
    report(`${what}; it is started again in ${humanDuration(delay)}`);
    const back = (): void => report(`${name} is back`);
    this.#restart = setTimeout(() => this.#spawn(back, () => undefined), delay);
  }

  /** Writes every line to the log file; what a person should know is reported too. */
  #collect(stream: Readable, isLog: boolean): void {
    const { logFile, name, report } = this.#options;
    createInterface({ input: stream, crlfDelay: Number.POSITIVE_INFINITY }).on('line', (line) => {
      logFile.write(line);
      if (!isLog || line === '') return;
      const entry = parseLogLine(line);
      if (entry === null) this.#tail = [...this.#tail, line].slice(-TAIL_LINES);
      // Before it was ever ready, what it says last becomes the error that whoever started it gets.
      const matters = entry === null ? this.#everReady : entry.level >= WARNING_LEVEL;
      const text = entry?.message ?? line;
      if (matters && this.#repetition.isNews(text)) report(`${name}: ${text}`);
    });
  }
}

/**
 * The few words between `punctual up` and the processes it starts. They speak over the channel that Node opens
 * between parent and child: the kernel closes it when the parent dies, so a child always learns of it.
 */

/** Set for processes that `punctual up` starts, so that a channel opened by anyone else means nothing. */
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

const isErrorCode = (code: string): code is ErrorCode => Object.hasOwn(ERROR_CODES, code);

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

/** Reads a message of a child; null when it is none of ours. */
export function readChildMessage(message: unknown): ChildMessage | null {
  if (typeof message !== 'object' || message === null) return null;
  const { type, code, detail } = message as Record<string, unknown>;
  if (type === 'ready') return { type };
  if (type !== 'failed' || typeof code !== 'string' || typeof detail !== 'string') return null;
  return { type, code: isErrorCode(code) ? code : 'INTERNAL', detail };
}
