import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Ledger } from '../ledger.js';
import { now, ticking } from '../moments.js';
import { type FromLedger, TELL_EVERY_MS, type ToLedger } from './remote-starts.js';

/**
 * The receiver of calls in a process of its own. A call to `/fast` is answered at once and counts as the start of the job whose
 * number is in its body; one to `/slow/MS` is answered after so many milliseconds and does not count.
 */

export type ToReceiver = ToLedger | { readonly type: 'delays'; readonly since: number };

export type FromReceiver =
  | { readonly type: 'listening'; readonly port: number }
  | { readonly type: 'delays'; readonly delays: readonly number[] }
  | FromLedger;

/** The body of a call that counts. */
export interface CallBody {
  readonly n: number;
  /** When its job was submitted, on the clock of `now()`. */
  readonly at: number;
}

const ledger = new Ledger();
const submittedAt: number[] = [];
const delays: number[] = [];

function send(message: FromReceiver): void {
  // Whoever would hear it may be gone by now; then this process ends, too.
  process.send!(message, () => undefined);
}

function receive(body: string): void {
  const { n, at } = JSON.parse(body) as CallBody;
  submittedAt.push(at);
  delays.push(now() - at);
  ledger.start(n);
}

function answer(response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'application/json' }).end('{"ok":true}');
}

const server = createServer((request, response) => {
  const slow = /^\/slow\/(\d+)$/.exec(request.url!);
  let body = '';
  request.setEncoding('utf8');
  request.on('data', (piece: string) => {
    body += piece;
  });
  request.on('end', () => {
    if (slow) setTimeout(answer, Number(slow[1]), response);
    else {
      receive(body);
      answer(response);
    }
  });
});
server.keepAliveTimeout = 0;

process.on('SIGINT', () => undefined);
process.once('disconnect', () => process.exit(0));
process.on('message', (message: ToReceiver) => {
  switch (message.type) {
    case 'begin':
      return ledger.begin(message.moment);
    case 'account':
      return void ledger.account(message.submitted).then((account) => send({ type: 'account', account }));
    case 'delays':
      return send({ type: 'delays', delays: delays.filter((_, i) => submittedAt[i]! >= message.since) });
  }
});
// All of 127.0.0.0/8 leads here, so that it can be many origins.
server.listen({ port: 0, host: '0.0.0.0', backlog: 4_096 }, () => {
  ticking(TELL_EVERY_MS, () => send({ type: 'started', count: ledger.started }));
  send({ type: 'listening', port: (server.address() as AddressInfo).port });
});
