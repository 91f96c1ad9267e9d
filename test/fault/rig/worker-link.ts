import {
  Agent,
  createServer,
  type IncomingMessage,
  request,
  type Server,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { AttemptOutcome } from '../../../src/core/job.js';
import type { ReportAnswer } from '../history.js';
import { monotonic } from '../monotonic.js';

/** What becomes of a report on its way. */
export type ReportFate =
  | 'pass'
  /** It never arrives. */
  | 'lose'
  /** It arrives, and the worker never hears of it. */
  | 'lose-answer'
  /** It arrives twice. */
  | 'repeat'
  /** The worker is told that it failed, and it arrives later, after what the worker sends next. */
  | 'late';

interface Exchange {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: Buffer;
}

interface Answer {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  readonly body: Buffer;
}

const REPORT = /^\/v1\/workers\/[^/]+\/report$/;
const CLAIM = /^\/v1\/workers\/[^/]+\/claim$/;
const DOWNLOAD = /^\/v1\/artifacts\/[^/]+\/(download|content)\b/;
const LATE_MS = 1_200;
/** In how many pieces a slow download arrives. */
const PIECES = 20;

/** The way from one worker to one node: an HTTP proxy that can be cut, and that sees every report and its answer. */
export class WorkerLink {
  readonly #listener: Server;
  readonly #agent = new Agent({ keepAlive: true });
  readonly #sockets = new Set<Socket>();
  #cut = false;
  /** Decides about each report. */
  fate: () => ReportFate = () => 'pass';
  /** How long an answer with assignments is held back. */
  handOverDelayMs = 0;
  /** Answers with assignments that were held back. */
  delayed = 0;
  /** How long a download takes at least, in pieces that come bit by bit. */
  downloadMs = 0;
  /** Downloads that were made slow. */
  slowed = 0;
  /** Called with the epoch of an answer with assignments when it has been passed on. */
  onHandOver: ((epoch: number) => void) | null = null;
  /** Reports that met another fate than to pass. */
  meddled = 0;
  /** Connections that were ended or refused since the link was cut. */
  refused = 0;

  private constructor(
    private readonly target: () => number,
    private readonly onAnswer: (answer: ReportAnswer) => void,
  ) {
    this.#listener = createServer((incoming, outgoing) => void this.#serve(incoming, outgoing));
    this.#listener.keepAliveTimeout = 60_000;
    this.#listener.on('connection', (socket) => {
      if (this.#cut) {
        this.refused += 1;
        socket.resetAndDestroy();
      }
      this.#sockets.add(socket);
      socket.on('close', () => this.#sockets.delete(socket));
      socket.on('error', () => undefined);
    });
  }

  static async open(target: () => number, onAnswer: (answer: ReportAnswer) => void): Promise<WorkerLink> {
    const link = new WorkerLink(target, onAnswer);
    await new Promise<void>((resolve) => link.#listener.listen(0, '127.0.0.1', resolve));
    return link;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#listener.address() as AddressInfo).port}`;
  }

  /** Ends all connections and refuses new ones until `heal`. */
  cut(): void {
    this.#cut = true;
    this.refused = this.#sockets.size;
    for (const socket of this.#sockets) socket.resetAndDestroy();
  }

  heal(): void {
    this.#cut = false;
    this.fate = () => 'pass';
    this.handOverDelayMs = 0;
    this.downloadMs = 0;
  }

  async close(): Promise<void> {
    this.#agent.destroy();
    this.#listener.closeAllConnections();
    await new Promise<void>((resolve) => this.#listener.close(() => resolve()));
  }

  async #serve(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const { method = 'GET', url = '/', headers, socket } = incoming;
    const gone = new AbortController();
    outgoing.on('close', () => {
      if (!outgoing.writableEnded) gone.abort();
    });
    try {
      const exchange: Exchange = { method, url, headers, body: await bodyOf(incoming) };
      const isReport = REPORT.test(url);
      const fate = isReport ? this.fate() : 'pass';
      if (fate !== 'pass') this.meddled += 1;
      if (fate === 'lose' || fate === 'late') socket.resetAndDestroy();
      if (fate === 'lose') return;
      if (fate === 'late') await sleep(LATE_MS);
      if (fate === 'repeat') await this.#report(exchange);
      // A report that is under way goes on when its sender is gone: that is what makes it late.
      const answer = isReport ? await this.#report(exchange) : await this.#ask(exchange, gone.signal);
      if (fate === 'late') return;
      if (fate === 'lose-answer') socket.resetAndDestroy();
      const handedOver =
        (this.onHandOver || this.handOverDelayMs > 0) && CLAIM.test(url) ? epochOfHandOver(answer) : null;
      if (handedOver !== null && this.handOverDelayMs > 0) {
        this.delayed += 1;
        await sleep(this.handOverDelayMs);
      }
      if (this.downloadMs > 0 && DOWNLOAD.test(url)) await this.#trickle(answer, outgoing);
      else if (fate !== 'lose-answer') outgoing.writeHead(answer.status, answer.headers).end(answer.body);
      if (handedOver !== null) this.onHandOver?.(handedOver);
    } catch {
      socket.resetAndDestroy();
    }
  }

  /** As a slow store does: the first bytes are late, and so is each of the others. */
  async #trickle({ status, headers, body }: Answer, outgoing: ServerResponse): Promise<void> {
    this.slowed += 1;
    const pauseMs = this.downloadMs / PIECES;
    const bytes = Math.ceil(body.length / PIECES);
    outgoing.writeHead(status, headers);
    for (let from = 0; from < body.length && !outgoing.destroyed; from += bytes) {
      await sleep(pauseMs);
      outgoing.write(body.subarray(from, from + bytes));
    }
    outgoing.end();
  }

  async #report(exchange: Exchange): Promise<Answer> {
    const answer = await this.#ask(exchange);
    if (answer.status === 200) this.#note(exchange, answer);
    return answer;
  }

  #note(exchange: Exchange, answer: Answer): void {
    const { results } = JSON.parse(exchange.body.toString()) as {
      results: { jobId: string; fence: number; outcome: AttemptOutcome | 'handed-on' }[];
    };
    const { accepted } = JSON.parse(answer.body.toString()) as { accepted: string[] };
    const taken = new Set(accepted);
    const at = monotonic();
    for (const { jobId, fence, outcome } of results) {
      // Whoever takes the attempt on has yet to say what comes of it.
      if (outcome === 'handed-on') continue;
      this.onAnswer({ job: jobId, fence, outcome, verdict: taken.has(jobId) ? 'accepted' : 'stale', at });
    }
  }

  #ask({ method, url, headers, body }: Exchange, signal?: AbortSignal): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const asked = request(
        {
          ...{ host: '127.0.0.1', port: this.target(), method, path: url, headers, agent: this.#agent },
          ...(signal && { signal }),
        },
        (incoming) => {
          bodyOf(incoming).then(
            (read) => resolve({ status: incoming.statusCode!, headers: incoming.headers, body: read }),
            reject,
          );
        },
      );
      asked.on('error', reject);
      asked.end(body);
    });
  }
}

/** The epoch of an answer that carries assignments; null when it carries none. */
function epochOfHandOver({ status, body }: Answer): number | null {
  if (status !== 200) return null;
  const { epoch, jobs } = JSON.parse(body.toString()) as { epoch: number; jobs: unknown[] };
  return jobs.length > 0 ? epoch : null;
}

async function bodyOf(message: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of message) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}
