import { Worker } from 'node:worker_threads';
import { type ErrorCode, messageOf, PunctualError } from '../core/errors.js';
import type { HttpTransportOptions } from '../transport/http-transport.js';
import { GrowingPause } from '../transport/pause.js';
import type { AnsweredHeartbeat, HeartbeatRound, HeartbeatSource, Heartbeats } from './heartbeats.js';

/**
 * Heartbeats from a thread of their own. A handler that computes for a minute keeps this thread's event loop
 * from turning; without heartbeats meanwhile the worker would be declared dead and its jobs run twice.
 *
 * The thread has connections of its own. Before each heartbeat it asks this side what the worker holds; when
 * no answer comes at once it says what it said last. That may list attempts which were answered since, or
 * miss some that just arrived: the scheduler then stops or offers again what the ledger knows to ignore.
 *
 * The thread lives in the worker's process, so a killed or stopped process falls silent as a whole.
 */

/** What the thread is given to begin with. The key travels here alone, never in arguments or environment. */
export interface ThreadData {
  readonly nodes: HttpTransportOptions;
  readonly round: HeartbeatRound;
}

/** What this side tells the thread: the round it asked for, or one to be sent at once. */
export interface ToThread {
  readonly round: HeartbeatRound;
  readonly sendNow: boolean;
}

/** What the thread tells this side. */
export type FromThread =
  | { readonly type: 'round-wanted' }
  | ({ readonly type: 'answered' } & AnsweredHeartbeat)
  | {
      readonly type: 'failed';
      readonly workerId: string;
      readonly code: ErrorCode;
      readonly detail: string;
      /** The node that kept silent, if that was the trouble. */
      readonly silentNode: string | null;
    };

/** Run from its sources, as tests do, the program starts the thread that the build made of them. */
const ENTRY = new URL(
  import.meta.url.endsWith('.ts')
    ? '../../dist/worker/heartbeat-thread-entry.js'
    : './heartbeat-thread-entry.js',
  import.meta.url,
);

export interface HeartbeatThreadParts {
  readonly nodes: HttpTransportOptions;
  readonly source: HeartbeatSource;
  /** Makes heartbeats from this thread, for the time in which the other one cannot be had. */
  readonly standIn: () => Heartbeats;
  /** Called when a node did not answer a heartbeat in time. */
  readonly onSilentNode: (url: string) => void;
  readonly onWarning: (warning: PunctualError) => void;
  /** The program of the thread; default the worker's own. */
  readonly entry?: URL;
}

/** Starts the thread, talks with it, and replaces it when it dies. */
export class HeartbeatThread implements Heartbeats {
  readonly #parts: HeartbeatThreadParts;
  readonly #growing = new GrowingPause(100, 5_000);
  #thread: Worker | null = null;
  #standIn: Heartbeats | null = null;
  #restart: NodeJS.Timeout | undefined;
  #stopped = false;

  constructor(parts: HeartbeatThreadParts) {
    this.#parts = parts;
  }

  start(): void {
    const { nodes, source, entry = ENTRY } = this.#parts;
    const workerData: ThreadData = { nodes, round: source.nextRound() };
    const thread = new Worker(entry, { workerData, env: environmentOfNode(), execArgv: [] });
    this.#thread = thread;
    thread.unref();
    thread.on('message', (message: FromThread) => this.#hear(message));
    let why = 'it ended by itself';
    thread.on('error', (error) => {
      why = messageOf(error);
    });
    thread.on('exit', () => this.#lost(why));
  }

  wake(): void {
    this.#send(true);
    this.#standIn?.wake();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#restart);
    await Promise.all([this.#thread?.terminate(), this.#standIn?.stop()]);
  }

  #send(sendNow: boolean): void {
    const message: ToThread = { round: this.#parts.source.nextRound(), sendNow };
    this.#thread?.postMessage(message);
  }

  #hear(message: FromThread): void {
    if (this.#stopped) return;
    const { source, onSilentNode } = this.#parts;
    switch (message.type) {
      case 'round-wanted':
        this.#send(false);
        return;
      case 'answered':
        this.#growing.reset();
        this.#dismissStandIn();
        source.answered(message);
        return;
      case 'failed':
        if (message.silentNode !== null) onSilentNode(message.silentNode);
        void source.failed(message.workerId, new PunctualError(message.code, message.detail));
        return;
    }
  }

  /** Heartbeats must go on: from here until a new thread has proved that it works. */
  #lost(why: string): void {
    this.#thread = null;
    if (this.#stopped) return;
    this.#parts.onWarning(
      new PunctualError('INTERNAL', `The thread of the heartbeats was lost (${why}) and is started again.`),
    );
    this.#standIn ??= this.#parts.standIn();
    this.#standIn.start();
    this.#restart = setTimeout(() => this.start(), this.#growing.nextMs());
    this.#restart.unref();
  }

  #dismissStandIn(): void {
    void this.#standIn?.stop();
    this.#standIn = null;
  }
}

/** The thread reads Node's own variables, e.g. on how TLS is checked, and none of the program's secrets. */
function environmentOfNode(): Record<string, string> {
  const own = Object.entries(process.env).filter(([name]) => name.startsWith('NODE_'));
  return Object.fromEntries(own) as Record<string, string>;
}
