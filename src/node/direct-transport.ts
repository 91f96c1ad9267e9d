import type { FastifyInstance } from 'fastify';
import { errorFromAnswer } from '../worker/problem.js';
import type { Method, RequestOptions, Transport } from '../worker/transport.js';

/** The HTTP API inside the process of its node: the same routes and checks, without a socket. */
export class DirectTransport implements Transport {
  constructor(
    private readonly server: FastifyInstance,
    private readonly key: string,
    private readonly tenant: string,
  ) {}

  async request<T>(method: Method, path: string, options: RequestOptions = {}): Promise<T> {
    options.signal?.throwIfAborted();
    const answer = await this.server.inject({
      method,
      url: path,
      headers: {
        authorization: `Bearer ${this.key}`,
        'punctual-tenant': this.tenant,
        ...(options.body !== undefined && { 'content-type': 'application/json' }),
        ...options.headers,
      },
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
