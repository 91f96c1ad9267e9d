import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';
import { Happening } from './happening.js';
import type { TestNode } from './node-for-tests.js';

const PROGRAM = fileURLToPath(new URL('./programs/worker.mjs', import.meta.url));

/** A worker in a process of its own, with the tasks `endless` and `exits`; it is killed with the test. */
export class WorkerProcess {
  readonly started = new Happening<{ readonly started: string; readonly fence: number }>();
  readonly #child: ChildProcess;
  readonly #exit: Promise<unknown>;

  constructor(node: TestNode) {
    this.#child = spawn(process.execPath, [PROGRAM], {
      env: {
        PATH: process.env.PATH,
        PUNCTUAL_URL: node.url,
        PUNCTUAL_API_KEY: node.apiKey,
        PUNCTUAL_LOG_LEVEL: 'error',
      },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    this.#exit = once(this.#child, 'exit');
    let text = '';
    this.#child.stdout!.setEncoding('utf8').on('data', (piece: string) => {
      const lines = (text + piece).split('\n');
      text = lines.pop()!;
      for (const line of lines) this.started.happen(JSON.parse(line));
    });
    onTestFinished(() => this.kill());
  }

  /** Ends it as a power cut would. */
  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.#exit;
  }
}
