import { Worker } from 'node:worker_threads';
import { type ErrorCode, messageOf, PunctualError } from '../core/errors.js';
import type { HttpTransportOptions } from '../transport/http-transport.js';
import { GrowingPause } from '../transport/pause.js';
import type { AnsweredHeartbeat, HeartbeatRound, HeartbeatSource, Heartbeats } from './heartbeats.js';

/**
 * Heartbeats from a thread of their own. A handler that computes for a minute blocks the event loop of the main
 * thread; without heartbeats the worker would be declared dead meanwhile, and its jobs would run twice.
 *
 * The thread has its own connections. Before each heartbeat it asks the main thread which attempts the worker holds;
 * when the main thread does not answer in time, the thread repeats the last list. That list may contain attempts
 * whose reports were answered since, or lack attempts that just arrived. The scheduler then orders to stop the former
 * and offers the latter again; the attempt ledger ignores both.
 *
 * The thread belongs to the worker's process, so its heartbeats end when the process is killed or stopped.
 */

/** The data that the thread starts with. It alone holds the API key; arguments and environment do not. */
export interface ThreadData {
  readonly nodes: HttpTransportOptions;
  readonly round: HeartbeatRound;
}

/** A message to the thread: the round it asked for, or a round to be sent at once. */
export interface ToThread {
  readonly round: HeartbeatRound;
  readonly sendNow: boolean;
}

/** A message from the thread. */
export type FromThread =
  | { readonly type: 'round-wanted' }
  | ({ readonly type: 'answered' } & AnsweredHeartbeat)
  | {
      readonly type: 'failed';
      readonly workerId: string;
      readonly code: ErrorCode;
      readonly detail: string;
      /** The node that did not answer in time, if that was the cause. */
      readonly silentNode: string | null;
    };

/** When the program runs from its sources, as in tests, the thread runs the compiled file: threads do not load TypeScript. */
const ENTRY = new URL(
  import.meta.url.endsWith('.ts')
    ? '../../dist/worker/heartbeat-thread-entry.js'
    : './heartbeat-thread-entry.js',
  import.meta.url,
);

export interface HeartbeatThreadParts {
  readonly nodes: HttpTransportOptions;
  readonly source: HeartbeatSource;
  /** Makes heartbeats from the main thread, which are used while the thread does not run. */
  readonly standIn: () => Heartbeats;
  /** Called when a node did not answer a heartbeat in time. */
  readonly onSilentNode: (url: string) => void;
  readonly onWarning: (warning: PunctualError) => void;
  /** The file that the thread runs; default the worker's own. */
  readonly entry?: URL;
}

/** Starts the thread, exchanges messages with it, and restarts it when it ends. */
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
        this.#stopStandIn();
        source.answered(message);
        return;
      case 'failed':
        if (message.silentNode !== null) onSilentNode(message.silentNode);
        void source.failed(message.workerId, new PunctualError(message.code, message.detail));
        return;
    }
  }

  /** Sends heartbeats from the main thread until a new thread has got an answer. */
  #lost(why: string): void {
    this.#thread = null;
    if (this.#stopped) return;
    this.#parts.onWarning(
      new PunctualError('INTERNAL', `The heartbeat thread ended (${why}) and is started again.`),
    );
    this.#standIn ??= this.#parts.standIn();
    this.#standIn.start();
    this.#restart = setTimeout(() => this.start(), this.#growing.nextMs());
    this.#restart.unref();
  }

  #stopStandIn(): void {
    void this.#standIn?.stop();
    this.#standIn = null;
  }
}

/** The thread gets Node's own variables, such as those for TLS, and none of the program's secrets. */
function environmentOfNode(): Record<string, string> {
  const own = Object.entries(process.env).filter(([name]) => name.startsWith('NODE_'));
  return Object.fromEntries(own) as Record<string, string>;
}
