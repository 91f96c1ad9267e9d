import { connect, type Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { EventCount } from '../event-count.js';
import { now } from '../moments.js';

/**
 * Listeners of `GET /v1/events` in a process of their own. In practice they are on other machines, so here they do as little
 * as possible: the first one counts events, the others only bytes, which must come to the same.
 */

export type ToListeners =
  | ListenOrder
  /** Ends when the first listener has heard so many events of jobs and the others as much, or are not going to. */
  | { readonly type: 'stop'; readonly expected: number };

interface ListenOrder {
  readonly type: 'listen';
  readonly url: string;
  readonly apiKey: string;
  readonly tenant: string;
  /** The query of the stream, such as `?queue=mail`. */
  readonly query: string;
  readonly count: number;
}

export type FromListeners = { readonly type: 'listening' } | ({ readonly type: 'heard' } & Heard);

/** What the listeners came to. */
export interface Heard {
  /** Events of jobs that the first listener has heard. */
  readonly events: number;
  /** Listeners whose connection has ended. */
  readonly dropped: number;
  /** Listeners that have read clearly less than the first. */
  readonly behind: number;
  /** Processor time of this process since all of them listened. */
  readonly cpuMs: number;
}

const PATIENCE_MS = 5_000;
/** Heartbeats are sent only to those who have read everything, so listeners differ by a few bytes. */
const SAME_BYTES = 4_096;
const READ_BYTES = 256 * 1_024;
const SUCCESS = 'HTTP/1.1 200 ';

class Listener {
  bytes = 0;
  dropped = false;
  /** Resolves when the stream has begun. */
  readonly listening: Promise<void>;
  readonly #socket: Socket;
  #beginning = '';

  constructor(order: ListenOrder, count: EventCount | null) {
    const { hostname, port } = new URL(order.url);
    let hasBegun = false;
    let onBegin!: () => void;
    let onError!: (error: Error) => void;
    this.listening = new Promise((resolve, reject) => {
      onBegin = resolve;
      onError = reject;
    });
    this.#socket = connect({
      ...{ host: hostname, port: Number(port) },
      onread: {
        buffer: Buffer.allocUnsafe(READ_BYTES),
        callback: (length, buffer) => {
          const piece = Buffer.from(buffer.buffer, buffer.byteOffset, length);
          this.bytes += length;
          count?.take(piece);
          if (!hasBegun) hasBegun = this.#begins(piece, onError);
          if (hasBegun) onBegin();
          return true;
        },
      },
    });
    this.#socket.on('error', onError).on('close', () => {
      this.dropped = true;
      onError(new Error('The stream ended before it had begun.'));
    });
    const headers = [`authorization: Bearer ${order.apiKey}`, `punctual-tenant: ${order.tenant}`];
    this.#socket.write(
      `${[`GET /v1/events${order.query} HTTP/1.1`, `host: ${hostname}`, ...headers].join('\r\n')}\r\n\r\n`,
    );
  }

  close(): void {
    this.#socket.destroy();
  }

  /** Whether the stream has said hello by now. */
  #begins(piece: Buffer, onError: (error: Error) => void): boolean {
    this.#beginning += piece.toString('latin1');
    const status = this.#beginning.slice(0, SUCCESS.length);
    if (!SUCCESS.startsWith(status)) onError(new Error(`The listener was answered: ${this.#beginning}`));
    return this.#beginning.includes('\nevent: hello\n');
  }
}

const first = new EventCount();
let listeners: readonly Listener[] = [];
let cpuBefore = process.cpuUsage();

function send(message: FromListeners): void {
  // Whoever would hear it may be gone by now; then this process ends, too.
  process.send!(message, () => undefined);
}

async function listen(order: ListenOrder): Promise<void> {
  listeners = Array.from({ length: order.count }, (_, i) => new Listener(order, i === 0 ? first : null));
  await Promise.all(listeners.map(({ listening }) => listening));
  cpuBefore = process.cpuUsage();
  send({ type: 'listening' });
}

async function stop(expected: number): Promise<void> {
  const patience = now() + PATIENCE_MS;
  const dropped = () => listeners.filter((listener) => listener.dropped);
  const behind = () => listeners.filter(({ bytes }) => bytes < listeners[0]!.bytes - SAME_BYTES);
  while ((first.events < expected || behind().length > 0) && now() < patience) await pause(20);
  const { user, system } = process.cpuUsage(cpuBefore);
  const cpuMs = (user + system) / 1_000;
  send({
    ...{ type: 'heard', events: first.events, dropped: dropped().length, behind: behind().length, cpuMs },
  });
  for (const listener of listeners) listener.close();
}

process.on('SIGINT', () => undefined);
process.once('disconnect', () => process.exit(0));
process.on('message', (message: ToListeners) => {
  const done = message.type === 'listen' ? listen(message) : stop(message.expected);
  done.catch((error: Error) => {
    process.stderr.write(`${error.stack}\n`);
    process.exit(1);
  });
});
