import { type ChildProcess, spawn } from 'node:child_process';
import { constants as fileConstants, openSync } from 'node:fs';
import { Socket } from 'node:net';
import { constants } from 'node:os';
import type { Architecture } from './call-list.js';
import type { StartRequest } from './messages.js';
import {
  ENDED_BYTES,
  programCalls,
  readEnded,
  readStarted,
  STARTED_BYTES,
  STDERR_OF_PROGRAM,
  STDOUT_OF_PROGRAM,
} from './program-calls.js';
import type { Starter, StartListener } from './starter.js';

/** Launchers that are kept while they have nothing to do. */
const MOST_IDLE = 16;

/** Starts programs by launchers, of which each runs one program at a time. */
export class LauncherStarter implements Starter {
  readonly #idle: Launcher[] = [];

  /** `onLost` is told when a launcher has ended by itself: what it ran cannot be waited for. */
  constructor(
    private readonly file: string,
    private readonly architecture: Architecture,
    private readonly onLost: () => void,
  ) {}

  start(request: StartRequest, listener: StartListener): void {
    let message: Buffer;
    try {
      message = programCalls(request, this.architecture);
    } catch (error) {
      listener.onFailed('E2BIG', (error as Error).message);
      return;
    }
    const launcher = this.#idle.pop() ?? new Launcher(this.file, this.onLost);
    launcher.run(message, listener, () => this.#isFree(launcher));
  }

  #isFree(launcher: Launcher): void {
    if (this.#idle.length < MOST_IDLE) this.#idle.push(launcher);
    else launcher.close();
  }
}

/** What a launcher does at the moment. */
interface Run {
  readonly listener: StartListener;
  readonly onDone: () => void;
  /** Null until it has told whether the program has started. */
  isStarted: boolean | null;
}

/** One launcher, in its process. */
class Launcher {
  readonly #child: ChildProcess;
  #run: Run | null = null;
  #answers: Buffer = Buffer.alloc(0);
  #isClosed = false;

  constructor(file: string, onLost: () => void) {
    this.#child = spawn(file, [], { cwd: '/', env: {}, stdio: ['pipe', 'pipe', 'ignore'] });
    const { stdin, stdout } = this.#child;
    for (const stream of [stdin!, stdout!]) stream.on('error', () => undefined);
    stdout!.on('data', (piece: Buffer) => this.#hear(piece));
    const lost = () => {
      if (!this.#isClosed) onLost();
    };
    this.#child.on('error', lost).on('exit', lost);
  }

  /** `onDone` is called when it can take the next one. */
  run(message: Buffer, listener: StartListener, onDone: () => void): void {
    this.#run = { listener, onDone, isStarted: null };
    this.#child.stdin!.write(message);
  }

  close(): void {
    this.#isClosed = true;
    this.#child.stdin!.end();
  }

  #hear(piece: Buffer): void {
    this.#answers = this.#answers.length === 0 ? piece : Buffer.concat([this.#answers, piece]);
    const run = this.#run!;
    if (run.isStarted === null) {
      const answer = this.#take(STARTED_BYTES);
      if (answer) this.#hearStarted(run, answer);
    }
    if (run.isStarted === null) return;
    const answer = this.#take(ENDED_BYTES);
    if (answer) this.#hearEnded(run, answer);
  }

  #take(bytes: number): Buffer | null {
    if (this.#answers.length < bytes) return null;
    const answer = this.#answers.subarray(0, bytes);
    this.#answers = this.#answers.subarray(bytes);
    return answer;
  }

  #hearStarted(run: Run, answer: Buffer): void {
    const started = readStarted(answer);
    run.isStarted = 'pid' in started;
    if ('errno' in started) {
      const code = nameOf(constants.errno, started.errno);
      run.listener.onFailed(code, `the kernel refused it (${code})`);
      return;
    }
    run.listener.onStarted({
      pid: started.pid,
      stdout: this.#pipe(STDOUT_OF_PROGRAM),
      stderr: this.#pipe(STDERR_OF_PROGRAM),
    });
  }

  #hearEnded({ listener, onDone, isStarted }: Run, answer: Buffer): void {
    this.#run = null;
    onDone();
    const { exitCode, signal } = readEnded(answer);
    if (isStarted) listener.onExited(exitCode, signal === null ? null : nameOf(constants.signals, signal));
  }

  /** The end of a pipe that the launcher holds; made anew for each program, so that nobody can write into that of a later one. */
  #pipe(descriptor: number): Socket {
    const path = `/proc/${this.#child.pid}/fd/${descriptor}`;
    const flags = fileConstants.O_RDONLY | fileConstants.O_NONBLOCK;
    return new Socket({ fd: openSync(path, flags), readable: true, writable: false });
  }
}

function nameOf(names: Readonly<Record<string, number>>, number: number): string {
  return Object.keys(names).find((name) => names[name] === number) ?? String(number);
}
