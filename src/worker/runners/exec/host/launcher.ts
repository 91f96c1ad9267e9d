import { type ChildProcess, spawn } from 'node:child_process';
import { constants as flags, openSync } from 'node:fs';
import { Socket } from 'node:net';
import { constants as names } from 'node:os';
import type { Architecture } from './call-list.js';
import type { FolderParts } from './job-folder.js';
import type { StartRequest } from './messages.js';
import { endTree, isAlive } from './process-tree.js';
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
/** A launcher whose memory has held more than this is not kept: it does not give it back. */
const MOST_KEPT_BYTES = 1024 * 1024;

/** Starts programs by launchers, of which each runs one program at a time. */
export class LauncherStarter implements Starter {
  readonly #idle: Launcher[] = [];
  readonly #other = new SpawnStarter();

  /** `onLost` is told when a launcher has ended by itself whose program can neither be waited for nor be found. */
  constructor(
    private readonly file: string,
    private readonly architecture: Architecture,
    private readonly onLost: () => void,
  ) {}

  start(request: StartRequest, listener: StartListener): void {
    const message = this.#messageOf(request);
    if (message === null) {
      // Node would start it outside of its control group, and sets no limits without the tool for them.
      const { group, bounds, prlimit } = request;
      const needsLauncher = group !== null || (bounds.length > 0 && prlimit === null);
      if (needsLauncher) listener.onFailed('E2BIG', 'what it is given is too long');
      else this.#other.start(request, listener);
      return;
    }
    const launcher = this.#takeIdle() ?? this.#launched(listener);
    if (launcher !== null) void this.#run(launcher, request, message, listener);
  }

  /** Null if it is too long for a launcher, which the payload may be. */
  #messageOf(request: StartRequest): Buffer | null {
    try {
      return startCalls(request, this.architecture);
    } catch {
      return null;
    }
  }

  /** A new launcher; null if there is no room for one now, which is an end of this start alone. */
  #launched(listener: StartListener): Launcher | null {
    const failed = (error: NodeJS.ErrnoException) => {
      listener.onFailed(error.code ?? 'UNKNOWN', `its launcher cannot be started: ${error.message}`);
    };
    try {
      const child = spawn(this.file, [], { cwd: '/', env: {}, stdio: ['pipe', 'pipe', 'ignore'] });
      if (child.pid !== undefined) return new Launcher(child, (launcher) => this.#forget(launcher));
      // Without room for its pipes, there are none.
      child.once('error', failed);
    } catch (thrown) {
      failed(thrown as NodeJS.ErrnoException);
    }
    return null;
  }

  async #run(
    launcher: Launcher,
    request: StartRequest,
    message: Buffer,
    listener: StartListener,
  ): Promise<void> {
    launcher.send(message);
    const answer = await launcher.answer(STARTED_BYTES);
    if (answer === null) {
      if (await this.#isEnded(request)) listener.onFailed('ECHILD', 'its launcher has ended');
      return;
    }
    const started = readStarted(answer);
    if ('pid' in started) {
      await this.#watch(launcher, request, started.pid, listener);
      return;
    }
    if ((await launcher.answer(ENDED_BYTES)) !== null) this.#isFree(launcher);
    const code = nameOf(names.errno, started.errno);
    listener.onFailed(code, `the kernel refused it (${code})`);
  }

  async #watch(
    launcher: Launcher,
    request: StartRequest,
    pid: number,
    listener: StartListener,
  ): Promise<void> {
    let pipes: { readonly stdout: Socket; readonly stderr: Socket };
    try {
      pipes = launcher.pipes();
    } catch (thrown) {
      // It runs, but nobody would read what it prints. The kernel ends it with its launcher, whose descriptors give room to look for the rest.
      launcher.end();
      await endTree(request.tree, pid);
      const { code = 'UNKNOWN', message } = thrown as NodeJS.ErrnoException;
      listener.onFailed(code, `its output cannot be read: ${message}`);
      return;
    }
    listener.onStarted({ pid, ...pipes, removeFolder: () => this.#remove(launcher, request.folder) });
    const answer = await launcher.answer(ENDED_BYTES);
    if (answer !== null) {
      const { exitCode, signal } = readEnded(answer);
      listener.onExited(exitCode, signal === null ? null : nameOf(names.signals, signal));
    } else if (await this.#isEnded(request)) {
      // The kernel has ended it with its launcher.
      listener.onExited(null, 'SIGKILL');
    }
  }

  /** Ends what a lost launcher ran. Whoever has no user of its own cannot be found for sure, so that everything has to end. */
  async #isEnded({ tree }: StartRequest): Promise<boolean> {
    if (tree.kind === 'user' && (await endTree(tree, 0)).isWhole) return true;
    this.onLost();
    return false;
  }

  async #remove(launcher: Launcher, folder: FolderParts): Promise<boolean> {
    launcher.send(removeCalls(folder, this.architecture));
    const answer = await launcher.answer(REMOVED_BYTES);
    if (answer === null) return false;
    this.#isFree(launcher);
    return readRemoved(answer);
  }

  #isFree(launcher: Launcher): void {
    if (launcher.isSmall && this.#idle.length < MOST_IDLE) this.#idle.push(launcher);
    else launcher.close();
  }

  /** One that has just ended may not be forgotten yet. */
  #takeIdle(): Launcher | null {
    for (let idle = this.#idle.pop(); idle; idle = this.#idle.pop()) if (idle.isAlive) return idle;
    return null;
  }

  /** One that has ended while it had nothing to do is missed by nobody. */
  #forget(launcher: Launcher): void {
    const at = this.#idle.indexOf(launcher);
    if (at >= 0) this.#idle.splice(at, 1);
  }
}

/** One launcher, in its process. */
class Launcher {
  readonly #child: ChildProcess;
  #answers: Buffer = Buffer.alloc(0);
  #awaited: { readonly bytes: number; readonly resolve: (answer: Buffer | null) => void } | null = null;
  #hasEnded = false;
  /** Whether it has taken no large message. */
  isSmall = true;

  /** `onEnd` is told once when the process has ended. */
  constructor(child: ChildProcess, onEnd: (launcher: Launcher) => void) {
    this.#child = child;
    const { stdin, stdout } = child;
    for (const stream of [stdin!, stdout!]) stream.on('error', () => undefined);
    stdout!.on('data', (piece: Buffer) => {
      this.#answers = this.#answers.length === 0 ? piece : Buffer.concat([this.#answers, piece]);
      this.#hear();
    });
    child.on('error', () => undefined);
    child.on('exit', () => onEnd(this));
    // Not before all that it said was read.
    child.on('close', () => {
      this.#hasEnded = true;
      this.#hear();
    });
  }

  /** Whether its process is there, which is known before Node tells of its end. */
  get isAlive(): boolean {
    return isAlive(this.#child.pid!);
  }

  send(message: Buffer): void {
    if (message.length > MOST_KEPT_BYTES) this.isSmall = false;
    this.#child.stdin!.write(message);
  }

  /** The next bytes that it answers; null if it ends before. */
  answer(bytes: number): Promise<Buffer | null> {
    return new Promise((resolve) => {
      this.#awaited = { bytes, resolve };
      this.#hear();
    });
  }

  /** The ends of the pipes that it holds, to read from. Throws if there is no room for them. */
  pipes(): { readonly stdout: Socket; readonly stderr: Socket } {
    const stdout = this.#pipe(STDOUT_OF_PROGRAM);
    try {
      return { stdout, stderr: this.#pipe(STDERR_OF_PROGRAM) };
    } catch (error) {
      stdout.destroy();
      throw error;
    }
  }

  close(): void {
    this.#child.stdin!.end();
  }

  /** Ends it whatever it does, and the kernel what it has started. */
  end(): void {
    this.#child.kill('SIGKILL');
  }

  #pipe(descriptor: number): Socket {
    const path = `/proc/${this.#child.pid}/fd/${descriptor}`;
    const fd = openSync(path, flags.O_RDONLY | flags.O_NONBLOCK);
    return new Socket({ fd, readable: true, writable: false });
  }

  #hear(): void {
    if (this.#awaited === null) return;
    const { bytes, resolve } = this.#awaited;
    if (this.#answers.length < bytes) {
      if (!this.#hasEnded) return;
      this.#awaited = null;
      resolve(null);
      return;
    }
    this.#awaited = null;
    resolve(this.#answers.subarray(0, bytes));
    this.#answers = this.#answers.subarray(bytes);
  }
}

function nameOf(names: Readonly<Record<string, number>>, number: number): string {
  return Object.keys(names).find((name) => names[name] === number) ?? String(number);
}
