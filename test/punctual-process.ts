import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

/** The built program in a process of its own, as people run it. */

const PROGRAM = fileURLToPath(new URL('../bin/punctual', import.meta.url));

/** Where the built SDK is, for modules that tests write. */
export const BUILT_SDK = new URL('../dist/index.js', import.meta.url).href;

export interface ProcessOptions {
  readonly folder: string;
  readonly environment?: Readonly<Record<string, string>>;
  readonly input?: string;
}

export interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A running program, with what it has printed so far. */
export class PunctualProcess {
  readonly child: ChildProcess;
  readonly ended: Promise<Ended>;
  stdout = '';
  stderr = '';
  #onOutput: () => void = () => undefined;

  constructor(args: readonly string[], options: ProcessOptions) {
    this.child = spawn(process.execPath, [PROGRAM, ...args], {
      cwd: options.folder,
      // Nothing of the developer's own settings may change what a test sees.
      env: { PATH: process.env.PATH, HOME: process.env.HOME, ...options.environment },
      stdio: 'pipe',
    });
    this.child.stdin!.end(options.input ?? '');
    for (const name of ['stdout', 'stderr'] as const) {
      this.child[name]!.setEncoding('utf8').on('data', (text: string) => {
        this[name] += text;
        this.#onOutput();
      });
    }
    this.ended = once(this.child, 'close').then(([code, signal]) => {
      this.#onOutput();
      return { code, signal, stdout: this.stdout, stderr: this.stderr };
    });
  }

  /** Waits until the output matches; fails with everything that was said when the program ends before. */
  async prints(stream: 'stdout' | 'stderr', pattern: RegExp): Promise<RegExpExecArray> {
    for (;;) {
      const match = pattern.exec(this[stream]);
      if (match) return match;
      if (this.child.exitCode !== null || this.child.signalCode !== null) {
        throw new Error(`ended without printing ${pattern}:\n${this.stdout}\n${this.stderr}`);
      }
      await new Promise<void>((resolve) => {
        this.#onOutput = resolve;
      });
    }
  }

  kill(signal: NodeJS.Signals): Promise<Ended> {
    this.child.kill(signal);
    return this.ended;
  }
}

/** Runs a command to its end. */
export function punctual(args: readonly string[], options: ProcessOptions): Promise<Ended> {
  return new PunctualProcess(args, options).ended;
}
