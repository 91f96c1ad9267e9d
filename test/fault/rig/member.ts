import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream, readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Death } from '../history.js';
import { monotonic } from '../monotonic.js';
import { repository } from './repository.js';

const PROGRAM = join(repository, 'bin', 'punctual');

/** Everything of this run that is still alive; ended with the run, however it ends. */
const alive = new Set<ChildProcess>();
process.on('exit', () => {
  for (const child of alive) child.kill('SIGKILL');
});

export interface MemberOptions {
  /** Slot and incarnation, such as `n1.2`. */
  readonly name: string;
  /** What is run; the program of Punctual unless said otherwise. */
  readonly program?: string;
  readonly args: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  readonly logFile: string;
  /** Called when it has come to its end without being told to, after it could be used. */
  readonly onDeath: (death: Death) => void;
}

/** A node or worker process as people run it, or the sink. It ends when the harness does, because it is supervised by it. */
export class Member {
  readonly name: string;
  /** Resolves when it can be used; rejects when it ends before. */
  readonly ready: Promise<void>;
  /** Resolves with the moment of its end. */
  readonly ended: Promise<number>;
  readonly #child: ChildProcess;
  #wasReady = false;
  #endIsExpected = false;

  constructor({ name, program = PROGRAM, args, environment, logFile, onDeath }: MemberOptions) {
    this.name = name;
    const child = spawn(process.execPath, [program, ...args], {
      // Nothing of the developer's own settings may change what a run does.
      env: { PATH: process.env.PATH, HOME: process.env.HOME, PUNCTUAL_SUPERVISED: '1', ...environment },
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    });
    this.#child = child;
    alive.add(child);
    const log = createWriteStream(logFile, { flags: 'a' });
    child.stdout!.pipe(log, { end: false });
    child.stderr!.pipe(log, { end: false });
    this.ended = once(child, 'close').then(([code, signal]) => {
      const at = monotonic();
      alive.delete(child);
      log.end(() => {
        if (!this.#wasReady || this.#endIsExpected) return;
        void tailOf(logFile).then((tail) =>
          onDeath({ member: name, at, detail: `${signal ?? `exit code ${code}`}\n${tail}` }),
        );
      });
      return at;
    });
    this.ready = new Promise((resolve, reject) => {
      child.on('message', (message: { type?: string }) => {
        if (message.type !== 'ready') return;
        this.#wasReady = true;
        resolve();
      });
      void this.ended.then(() => reject(new Error(`${name} ended before it was ready; see ${logFile}`)));
    });
    this.ready.catch(() => undefined);
  }

  get pid(): number {
    return this.#child.pid!;
  }

  get isAlive(): boolean {
    return alive.has(this.#child);
  }

  /** From now on its end is part of the plan, or no longer so. */
  expectEnd(expected = true): void {
    this.#endIsExpected = expected;
  }

  /** Ends it without a chance to do anything; resolves with the moment when it was gone. */
  async kill(): Promise<number> {
    this.expectEnd();
    this.#child.kill('SIGKILL');
    return this.ended;
  }

  /** Asks it to stop, and makes it after a while, which counts as if it had ended by itself. */
  async stop(patienceMs = 15_000): Promise<number> {
    this.expectEnd();
    this.#child.kill('SIGTERM');
    this.resume();
    const enough = setTimeout(() => {
      this.expectEnd(false);
      this.#child.kill('SIGKILL');
    }, patienceMs);
    return this.ended.finally(() => clearTimeout(enough));
  }

  /** Stands still from here on. */
  pause(): void {
    this.#child.kill('SIGSTOP');
  }

  resume(): void {
    this.#child.kill('SIGCONT');
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** Whether the kernel says that the process stands still. */
  get isPaused(): boolean {
    try {
      const stat = readFileSync(`/proc/${this.pid}/stat`, 'utf8');
      return stat.slice(stat.lastIndexOf(')') + 2, stat.lastIndexOf(')') + 3) === 'T';
    } catch {
      return false;
    }
  }
}

const TAIL_BYTES = 4_000;

async function tailOf(logFile: string): Promise<string> {
  return (await readFile(logFile, 'utf8')).slice(-TAIL_BYTES);
}
