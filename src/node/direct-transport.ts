import { Readable } from 'node:stream';
import type { FastifyInstance } from 'fastify';
import type { Caller } from '../api/caller.js';
import type { NodeContext } from '../api/context.js';
import { listen } from '../api/events.js';
import { IDEMPOTENCY_KEY } from '../api/idempotency.js';
import { submitJob, submitJobs } from '../api/jobs.js';
import { startWorkflow } from '../api/workflows.js';
import { LeaderElsewhere } from '../cluster/leader-elsewhere.js';
import { EventQuery } from '../core/schemas/query.js';
import { validate } from '../core/schemas/validate.js';
import { readTraceparent, TRACEPARENT } from '../core/trace-context.js';
import { readGivenWorkflow } from '../core/workflow/given-workflow.js';
import {
  type ByteStream,
  connectionClosed,
  errorFromAnswer,
  type Method,
  type RequestOptions,
  type StreamOptions,
  type Transport,
} from '../transport/transport.js';
import { DirectStream } from './direct-stream.js';

/** What skips HTTP. */
const DIRECT = ['/v1/jobs/bulk', '/v1/jobs', '/v1/workflows'] as const;
type DirectPath = (typeof DIRECT)[number];

function isDirect(path: string): path is DirectPath {
  return DIRECT.some((direct) => direct === path);
}

interface NodeParts {
  readonly server: FastifyInstance;
  readonly context: NodeContext;
  readonly localKey: string;
}

/** The HTTP API inside the process of its node: the same routes and checks, without a socket. */
export class DirectTransport implements Transport {
  readonly inProcess = true;

  constructor(
    private readonly node: NodeParts,
    private readonly caller: Caller,
  ) {}

  async request<T>(method: Method, path: string, options: RequestOptions = {}): Promise<T> {
    options.signal?.throwIfAborted();
    // What is asked for by the thousand skips HTTP; it is checked all the same. Answers are kept there.
    const isPlain = options.headers?.[IDEMPOTENCY_KEY] === undefined;
    if (method === 'POST' && isPlain && isDirect(path)) {
      try {
        const answer = await this.submit(path, options);
        if (answer !== null) return answer as T;
      } catch (error) {
        // Nothing was done; over HTTP the request is moved on to the leader.
        if (!(error instanceof LeaderElsewhere)) throw error;
      }
    }
    return this.inject(method, path, options);
  }

  async stream(path: string, { signal, headers }: StreamOptions = {}): Promise<AsyncIterable<string>> {
    const { context } = this.node;
    if (context.shardOf(this.caller.tenant).eventFeeds.isClosed) throw connectionClosed();
    const { pathname, searchParams } = new URL(path, 'http://node');
    if (pathname !== '/v1/events') throw new Error(`${pathname} is not a stream`);
    const query = validate(EventQuery, Object.fromEntries(searchParams));
    const stream = new DirectStream(signal);
    const told = listen(context, this.caller, query, headers?.['last-event-id'] ?? null, stream);
    await stream.begin(told);
    return stream.pieces();
  }

  async read(path: string, { signal, headers }: StreamOptions = {}): Promise<ByteStream> {
    const answer = await this.node.server.inject({
      ...{ method: 'GET', url: path, payloadAsStream: true },
      headers: {
        authorization: `Bearer ${this.node.localKey}`,
        'punctual-tenant': this.caller.tenant,
        ...headers,
      },
      ...(signal && { signal }),
    });
    const bytes: AsyncIterable<Uint8Array> = answer.stream();
    if (answer.statusCode < 300) return bytes;
    const pieces: Uint8Array[] = [];
    for await (const piece of bytes) pieces.push(piece);
    throw errorFromAnswer(answer.statusCode, Buffer.concat(pieces).toString(), undefined, 'The node');
  }

  /** Null if it must take the way of the API. */
  private async submit(path: DirectPath, { body, headers }: RequestOptions): Promise<unknown> {
    const { context } = this.node;
    const call = headers && { traceparent: readTraceparent(headers[TRACEPARENT]) };
    if (path === '/v1/workflows') {
      const given = await readGivenWorkflow(body, context.config);
      return given === null ? null : startWorkflow(context, this.caller, given, call);
    }
    if (path === '/v1/jobs/bulk') return submitJobs(context, this.caller, body, call);
    // Callers in the process want the id; the rest is written only for those who read it.
    return (await submitJob(context, this.caller, body, call)).job;
  }

  private async inject<T>(method: Method, path: string, options: RequestOptions): Promise<T> {
    const { bytes } = options;
    const answer = await this.node.server.inject({
      method,
      url: path,
      headers: {
        authorization: `Bearer ${this.node.localKey}`,
        'punctual-tenant': this.caller.tenant,
        ...(options.body !== undefined && { 'content-type': 'application/json' }),
        ...(bytes && { 'content-type': 'application/octet-stream', 'content-length': String(bytes.size) }),
        ...options.headers,
      },
      ...(bytes && { payload: Readable.from(bytes.open()) }),
      ...(options.body !== undefined && { payload: JSON.stringify(options.body) }),
      ...(options.signal && { signal: options.signal }),
    });
    if (answer.statusCode >= 400) {
      throw errorFromAnswer(
        answer.statusCode,
        answer.body,
        answer.headers['retry-after']?.toString(),
        'The node',
      );
    }
    if (answer.body === '') return undefined as T;
    const isJson = answer.headers['content-type']?.toString().includes('json');
    return (isJson ? JSON.parse(answer.body) : answer.body) as T;
  }
}
