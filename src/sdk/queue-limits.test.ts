import { describe, expect, it } from 'vitest';
import type { Method, RequestOptions, Transport } from '../transport/transport.js';
import { limitQueue } from './punctual.js';

function transportOf() {
  const asked: { method: Method; path: string; options: RequestOptions }[] = [];
  const transport: Transport = {
    async request<T>(method: Method, path: string, options: RequestOptions = {}) {
      asked.push({ method, path, options });
      return {} as T;
    },
  };
  return { transport, asked };
}

describe('limiting a queue', () => {
  it('sends what is given and nothing else, and may be repeated', async () => {
    const { transport, asked } = transportOf();
    await limitQueue(transport, 'a b', { concurrency: null, rate: '100/1s' });
    await limitQueue(transport, 'q', { rate: null, weight: 2, keyConcurrency: 3 });
    expect(asked).toMatchObject([
      { method: 'PATCH', path: '/v1/queues/a%20b', options: { retry: true } },
      { path: '/v1/queues/q' },
    ]);
    expect(asked.map(({ options }) => options.body)).toEqual([
      { concurrency: null, rate: { limit: 100, per: '1s' } },
      { rate: null, weight: 2, keyConcurrency: 3 },
    ]);
  });

  it('refuses a rate that is none before anything is sent', async () => {
    const { transport, asked } = transportOf();
    await expect(limitQueue(transport, 'q', { rate: '100 a second' as never })).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
      errors: [{ pointer: '/rate' }],
    });
    expect(asked).toEqual([]);
  });
});
