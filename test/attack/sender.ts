import { Agent, type Dispatcher, request } from 'undici';
import { monotonic } from '../fault/monotonic.js';
import type { Answer } from './evidence.js';

/** A request of an attack. */
export interface Shot {
  /** For people: what is wrong or large about it. */
  readonly about: string;
  readonly method: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string | string[]>>;
  readonly body?: string | Buffer;
}

export interface Target {
  readonly name: string;
  readonly url: string;
}

/** What of an answer is kept; the rest is read and thrown away. */
const KEPT_BYTES = 1024 * 1024;
const MAX_PATH = 80;
/** Longer than any wait that a request may ask for. */
const PATIENCE_MS = 65_000;

/** An answer with as much of its body as is kept. */
export interface Received extends Answer {
  readonly body: string;
  readonly bytes: number;
}

/** Sends requests as they are, and reads answers of any size. */
export class Sender {
  readonly #agent = new Agent({ connections: null, pipelining: 1, connect: { timeout: 10_000 } });

  async send(target: Target, shot: Shot, signal: AbortSignal): Promise<Received> {
    const from = monotonic();
    const { method } = shot;
    const common = { request: describe(shot), method, node: target.name };
    try {
      const answer = await request(`${target.url}${shot.path}`, {
        method: method as Dispatcher.HttpMethod,
        headers: { ...shot.headers },
        ...(shot.body !== undefined && { body: shot.body }),
        dispatcher: this.#agent,
        headersTimeout: PATIENCE_MS,
        bodyTimeout: PATIENCE_MS,
        signal,
      });
      const { body, bytes } = await read(answer.body);
      return {
        ...{ ...common, body, bytes, failure: null, ms: monotonic() - from, status: answer.statusCode },
        contentType: String(answer.headers['content-type'] ?? ''),
        requestId: String(answer.headers['request-id'] ?? ''),
        problem: answer.statusCode >= 400 ? parsed(body) : null,
      };
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      const failure = `${code ?? ''} ${message}`.trim();
      const nothing = { status: null, contentType: '', requestId: '', problem: null, body: '', bytes: 0 };
      return { ...common, ...nothing, failure, ms: monotonic() - from };
    }
  }

  async close(): Promise<void> {
    await this.#agent.destroy();
  }
}

async function read(stream: AsyncIterable<Buffer>): Promise<{ body: string; bytes: number }> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of stream) {
    if (bytes < KEPT_BYTES) chunks.push(chunk);
    bytes += chunk.length;
  }
  return { body: Buffer.concat(chunks).toString(), bytes };
}

/** The JSON of a text; the text itself when it is none. */
export function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function describe({ method, path, about }: Shot): string {
  return `${method} ${path.length > MAX_PATH ? `${path.slice(0, MAX_PATH)}…` : path} [${about}]`;
}
