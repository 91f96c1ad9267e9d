import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';
import type { TestNode } from './node-for-tests.js';

const PROGRAM = fileURLToPath(new URL('./programs/volume-worker.mjs', import.meta.url));

interface Counts {
  readonly reported: number;
  readonly started: number;
  readonly doubled: number;
}

export interface VolumeWorkerOptions {
  readonly slots: number;
  /** Called with the due time of each job of the task `moment` and when its handler started. */
  readonly onStart?: (start: { readonly due: number; readonly at: number }) => void;
}

/** A worker process with the trivial tasks `count` and `moment`; it ends with the test. */
export class VolumeWorker {
  /** Resolves when it has registered. */
  readonly ready: Promise<void>;
  readonly #child: ChildProcess;
  #counts: Counts = { reported: 0, started: 0, doubled: 0 };
  #onCounts: () => void = () => undefined;
  #onReady: () => void = () => undefined;

  constructor(node: TestNode, { slots, onStart }: VolumeWorkerOptions) {
    this.ready = new Promise((resolve) => {
      this.#onReady = resolve;
    });
    this.#child = spawn(process.execPath, [PROGRAM], {
      env: {
        PATH: process.env.PATH,
        SLOTS: String(slots),
        PUNCTUAL_URL: node.url,
        PUNCTUAL_API_KEY: node.apiKey,
        PUNCTUAL_LOG_LEVEL: 'error',
      },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const exit = once(this.#child, 'exit');
    createInterface({ input: this.#child.stdout! }).on('line', (line) => {
      const message = JSON.parse(line);
      if ('ready' in message) this.#onReady();
      else if ('due' in message) onStart?.(message);
      else {
        this.#counts = message;
        this.#onCounts();
      }
    });
    onTestFinished(async () => {
      this.#child.kill('SIGTERM');
      await exit;
    });
  }

  /** Waits until that many jobs have started. */
  async started(total: number): Promise<void> {
    while (this.#counts.started < total) await this.#nextCounts();
  }

  /** Waits until that many attempts are reported and answered; gives how many jobs started, and how many twice. */
  async finished(total: number): Promise<Omit<Counts, 'reported'>> {
    while (this.#counts.reported < total) await this.#nextCounts();
    const { started, doubled } = this.#counts;
    return { started, doubled };
  }

  #nextCounts(): Promise<void> {
    return new Promise((resolve) => {
      this.#onCounts = resolve;
    });
  }
}
