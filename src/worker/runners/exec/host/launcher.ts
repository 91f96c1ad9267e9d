import { type ChildProcess, spawn } from 'node:child_process';
import { constants as flags, openSync } from 'node:fs';
import { Socket } from 'node:net';
import { constants as names } from 'node:os';
import type { Architecture } from './call-list.js';
import type { FolderParts } from './job-folder.js';
import type { StartRequest } from './messages.js';
import {
  ENDED_BYTES,
  REMOVED_BYTES,
  readEnded,
  readRemoved,
  readStarted,
  removeCalls,
  STARTED_BYTES,
  STDERR_OF_PROGRAM,
  STDOUT_OF_PROGRAM,
  startCalls,
} from './program-calls.js';
import { SpawnStarter } from './spawn-starter.js';
import type { Starter, StartListener } from './starter.js';

/** Launchers that are kept while they have nothing to do. */
const MOST_IDLE = 16;

/** Starts programs by launchers, of which each runs one program at a time. */
export class LauncherStarter implements Starter {
  readonly #idle: Launcher[] = [];
  readonly #other = new SpawnStarter();

  /** `onLost` is told when a launcher has ended by itself: what it ran cannot be waited for. */
  constructor(
    private readonly file: string,
    private readonly architecture: Architecture,
    private readonly onLost: () => void,
  ) {}

  start(request: StartRequest, listener: StartListener): void {
    const message = this.#messageOf(request);
    if (message === null) {
      // Node would start it outside of its control group.
      if (request.group !== null) listener.onFailed('E2BIG', 'what it is given is too long');
      else this.#other.start(request, listener);
      return;
    }
    const launcher = this.#idle.pop() ?? new Launcher(this.file, this.onLost);
    void this.#run(launcher, request, message, listener);
  }

  /** Null if it is too long for a launcher, which the payload may be. */
  #messageOf(request: StartRequest): Buffer | null {
    try {
      return startCalls(request, this.architecture);
    } catch {
      return null;
    }
  }

  async #run(
    launcher: Launcher,
    { folder }: StartRequest,
    message: Buffer,
    listener: StartListener,
  ): Promise<void> {
    launcher.send(message);
    const started = readStarted(await launcher.answer(STARTED_BYTES));
    if ('pid' in started) {
      listener.onStarted({
        pid: started.pid,
        stdout: launcher.pipe(STDOUT_OF_PROGRAM),
        stderr: launcher.pipe(STDERR_OF_PROGRAM),
        removeFolder: () => this.#remove(launcher, folder),
      });
    }
    const { exitCode, signal } = readEnded(await launcher.answer(ENDED_BYTES));
    if ('pid' in started) {
      listener.onExited(exitCode, signal === null ? null : nameOf(names.signals, signal));
      return;
    }
    this.#isFree(launcher);
    const code = nameOf(names.errno, started.errno);
    listener.onFailed(code, `the kernel refused it (${code})`);
  }

  async #remove(launcher: Launcher, folder: FolderParts): Promise<boolean> {
    launcher.send(removeCalls(folder, this.architecture));
    const isRemoved = readRemoved(await launcher.answer(REMOVED_BYTES));
    this.#isFree(launcher);
    return isRemoved;
  }

  #isFree(launcher: Launcher): void {
    if (this.#idle.length < MOST_IDLE) this.#idle.push(launcher);
    else launcher.close();
  }
}

/** One launcher, in its process. */
class Launcher {
  readonly #child: ChildProcess;
  #answers: Buffer = Buffer.alloc(0);
  #awaited: { readonly bytes: number; readonly resolve: (answer: Buffer) => void } | null = null;
  #isClosed = false;

  constructor(file: string, onLost: () => void) {
    this.#child = spawn(file, [], { cwd: '/', env: {}, stdio: ['pipe', 'pipe', 'ignore'] });
    const { stdin, stdout } = this.#child;
    for (const stream of [stdin!, stdout!]) stream.on('error', () => undefined);
    stdout!.on('data', (piece: Buffer) => {
      this.#answers = this.#answers.length === 0 ? piece : Buffer.concat([this.#answers, piece]);
      this.#hear();
    });
    const lost = () => {
      if (!this.#isClosed) onLost();
    };
    this.#child.on('error', lost).on('exit', lost);
  }

  send(message: Buffer): void {
    this.#child.stdin!.write(message);
  }

  /** The next bytes that it answers; never settles if it ends before. */
  answer(bytes: number): Promise<Buffer> {
    return new Promise((resolve) => {
      this.#awaited = { bytes, resolve };
      this.#hear();
    });
  }

  /** An end of a pipe that it holds, to read from. */
  pipe(descriptor: number): Socket {
    const path = `/proc/${this.#child.pid}/fd/${descriptor}`;
    const fd = openSync(path, flags.O_RDONLY | flags.O_NONBLOCK);
    return new Socket({ fd, readable: true, writable: false });
  }

  close(): void {
    this.#isClosed = true;
    this.#child.stdin!.end();
  }

  #hear(): void {
    if (this.#awaited === null || this.#answers.length < this.#awaited.bytes) return;
    const { bytes, resolve } = this.#awaited;
    this.#awaited = null;
    resolve(this.#answers.subarray(0, bytes));
    this.#answers = this.#answers.subarray(bytes);
  }
}

function nameOf(names: Readonly<Record<string, number>>, number: number): string {
  return Object.keys(names).find((name) => names[name] === number) ?? String(number);
}
