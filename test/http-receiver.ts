import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';
import { Happening } from './happening.js';

/** A call as it arrived. */
export interface ReceivedCall {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly rawHeaders: readonly string[];
  readonly body: string;
  /** Which connection it came on. */
  readonly connection: number;
}

/** What a receiver does with a call: a status, or whatever it likes. */
export type Answering = (call: ReceivedCall, response: ServerResponse) => unknown;

/** An HTTP server on loopback that remembers the calls it gets; it ends with the test. */
export class HttpReceiver {
  readonly calls = new Happening<ReceivedCall>();
  connections = 0;

  private constructor(readonly url: string) {}

  static async start(answer: Answering = () => 200): Promise<HttpReceiver> {
    let receiver: HttpReceiver;
    const ids = new WeakMap<object, number>();
    const server = createServer((request, response) => {
      void receive(request, ids.get(request.socket)!).then((call) => {
        const status = answer(call, response);
        if (typeof status === 'number') {
          response.statusCode = status;
          response.end();
        }
        receiver.calls.happen(call);
      });
    });
    server.on('connection', (socket) => {
      receiver.connections += 1;
      ids.set(socket, receiver.connections);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    receiver = new HttpReceiver(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    onTestFinished(async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    });
    return receiver;
  }
}

async function receive(request: IncomingMessage, connection: number): Promise<ReceivedCall> {
  const pieces: Buffer[] = [];
  for await (const piece of request) pieces.push(piece as Buffer);
  return {
    method: request.method!,
    path: request.url!,
    headers: request.headers as Record<string, string>,
    rawHeaders: request.rawHeaders,
    body: Buffer.concat(pieces).toString('utf8'),
    connection,
  };
}
