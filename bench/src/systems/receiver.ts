import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { FromReceiver, ToReceiver } from './receiver-process.js';
import { nextMessage, RemoteStarts } from './remote-starts.js';

/** The process that calls go to. */
export class Receiver {
  readonly starts: RemoteStarts;
  readonly #child: ChildProcess;
  readonly #port: number;
  #closing = false;

  private constructor(child: ChildProcess, port: number) {
    this.#child = child;
    this.#port = port;
    this.starts = new RemoteStarts(child);
    child.once('exit', () => {
      // Without it a slice cannot go on; whoever started it sees that it ended without a result.
      if (!this.#closing) process.exit(1);
    });
  }

  static async start(): Promise<Receiver> {
    const child = fork(join(import.meta.dirname, 'receiver-process.js'), [], { execArgv: [] });
    const { port } = await nextMessage<FromReceiver, 'listening'>(child, 'listening');
    return new Receiver(child, port);
  }

  /** Where calls are answered at once. */
  get fastUrl(): string {
    return `http://127.0.0.1:${this.#port}/fast`;
  }

  /** Where calls are answered after a while; each number is another origin. */
  slowUrl(number: number, ms: number): string {
    return `http://127.0.${1 + Math.floor(number / 250)}.${1 + (number % 250)}:${this.#port}/slow/${ms}`;
  }

  /** From submission to call, of the jobs that were submitted since a moment. */
  async delays(since: number): Promise<readonly number[]> {
    const answer = nextMessage<FromReceiver, 'delays'>(this.#child, 'delays');
    this.#child.send({ type: 'delays', since } satisfies ToReceiver);
    return (await answer).delays;
  }

  async close(): Promise<void> {
    this.#closing = true;
    const ended = once(this.#child, 'exit');
    this.#child.disconnect();
    await ended;
  }
}
