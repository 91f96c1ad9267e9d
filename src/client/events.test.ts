import { expect, it } from 'vitest';
import { PunctualError } from '../core/errors.js';
import { serverSentEvent } from '../core/events.js';
import type { Transport } from '../transport/transport.js';
import { listenToEvents } from './events.js';

async function* pieces(...texts: string[]): AsyncGenerator<string> {
  yield* texts;
}

const hello = (id: string) => serverSentEvent(id, 'hello', JSON.stringify({ id }));
const started = (id: string) => serverSentEvent(id, 'job.started', JSON.stringify({ id }));

/** A transport whose streams are these, one after the other; errors are thrown when a stream is asked for. */
function transportOf(streams: (Error | string[])[]) {
  const asked: (string | undefined)[] = [];
  const transport = {
    stream: async (_path: string, { headers = {} }: { headers?: Record<string, string> }) => {
      asked.push(headers['last-event-id']);
      const next = streams.shift() ?? new PunctualError('FORBIDDEN', 'no more');
      if (next instanceof Error) throw next;
      return pieces(...next);
    },
  } as unknown as Transport;
  return { transport, asked };
}

it.each(['NO_LEADER', 'RATE_LIMITED'] as const)(
  'a connection that is lost and cannot be opened again at once (%s) goes on where it was',
  async (code) => {
    const { transport, asked } = transportOf([
      [hello('1.0'), started('1.1')],
      new PunctualError(code, 'not now'),
      [hello('1.1'), started('1.2')],
    ]);
    const heard: string[] = [];
    const listening = (async () => {
      for await (const { type, id } of listenToEvents(transport)) heard.push(`${type} ${id}`);
    })();
    await expect(listening).rejects.toMatchObject({ code: 'FORBIDDEN' });
    expect(heard).toEqual(['hello 1.0', 'job.started 1.1', 'job.started 1.2']);
    expect(asked).toEqual([undefined, '1.1', '1.1', '1.2']);
  },
);

it('a stream that ends before it has begun is begun anew', async () => {
  const { transport } = transportOf([[], [hello('1.0')]]);
  const { value } = await listenToEvents(transport).next();
  expect(value).toMatchObject({ type: 'hello', id: '1.0' });
});
