import { expect, it, onTestFinished } from 'vitest';
import { EventRing, type RingEntry, ringEntry, ringLimits } from '../core/event-ring.js';
import { CompiledFilter, type EventFilter, serverSentEvent } from '../core/events.js';
import { EventFeed } from './event-feed.js';
import type { AnswerStream } from './route.js';

/** A client as the feed sees it: what it was sent, and how much of that it has not taken. */
class Client implements AnswerStream {
  readonly pieces: (string | Buffer)[] = [];
  readonly leaving = new AbortController();
  unsent = 0;
  isDropped = false;

  get gone(): AbortSignal {
    return this.leaving.signal;
  }

  get types(): string[] {
    return [...this.pieces.join('').matchAll(/^event: (.*)$/gm)].map(([, type]) => type!);
  }

  open(): void {}

  write(piece: string | Buffer): Promise<void> | undefined {
    this.pieces.push(piece);
    return undefined;
  }

  drop(): void {
    this.isDropped = true;
    this.leaving.abort();
  }
}

function openFeed() {
  const over = new AbortController();
  onTestFinished(() => over.abort());
  const feed = new EventFeed(
    () => ringLimits(1),
    () => 1_000,
    over.signal,
  );
  const listen = (filter: EventFilter = {}, after: string | null = null, sample: number | null = null) => {
    const client = new Client();
    const served = feed.serve({ filter: new CompiledFilter(filter), after, sample }, client);
    served.catch(() => undefined);
    return { client, served };
  };
  return { feed, listen };
}

const events = (epoch: number, from: number, count: number): RingEntry[] =>
  Array.from({ length: count }, (_, i) => {
    const id = `${epoch}.${from + i}`;
    return ringEntry('job.started', { queue: 'mail' }, serverSentEvent(id, 'job.started', `{"id":"${id}"}`));
  });

it('the text for listeners with the same filter is joined and encoded once', async () => {
  const { feed, listen } = openFeed();
  feed.begin(1, 0, 0);
  const equal: EventFilter[] = [{ queue: ['mail', 'x'] }, { queue: ['x', 'mail'] }];
  const [one, two] = equal.map((filter) => listen(filter).client);
  const other = listen({ queue: 'other' }).client;
  await expect.poll(() => other.types).toEqual(['hello']);
  feed.receive(1, events(1, 1, 3));
  expect(one!.pieces).toHaveLength(2);
  expect(one!.pieces[1]).toBe(two!.pieces[1]);
  expect(one!.types).toEqual(['hello', 'job.started', 'job.started', 'job.started']);
  expect(other.types).toEqual(['hello']);
});

it('numbers that are missing are a reset, numbers that come again are ignored', async () => {
  const { feed, listen } = openFeed();
  feed.begin(1, 0, 0);
  const { client } = listen();
  await expect.poll(() => client.types).toEqual(['hello']);
  feed.receive(1, events(1, 1, 2));
  feed.begin(1, 0, 3);
  feed.receive(1, events(1, 1, 3));
  expect(client.types).toEqual(['hello', 'job.started', 'job.started', 'job.started']);
  feed.receive(7, events(1, 7, 1));
  expect(client.types.slice(4)).toEqual(['reset', 'job.started']);
  // The same leader cannot have told more than it knows: it is another one, with an old epoch.
  feed.begin(1, 0, 4);
  expect(client.types.slice(6)).toEqual(['reset']);
});

it('a listener that has too much unread is dropped at the next event, before anything more is kept for it', async () => {
  const { feed, listen } = openFeed();
  feed.begin(1, 0, 0);
  const [slow, quick] = [listen().client, listen().client];
  await expect.poll(() => quick.types).toEqual(['hello']);
  slow.unsent = 1_001;
  feed.receive(1, events(1, 1, 1));
  expect([slow.isDropped, quick.isDropped]).toEqual([true, false]);
  expect([slow.types.length, quick.types.length]).toEqual([1, 2]);
});

it('a leader without room for another tenant, or no leader at all, is told to those who come', async () => {
  const { feed, listen } = openFeed();
  const { served, client } = listen();
  feed.refuse();
  await expect(served).rejects.toMatchObject({ code: 'TOO_MANY_LISTENERS' });
  expect(client.pieces).toEqual([]);
  expect(feed.size).toBe(0);
});

it('a ring is a copy: it holds what the leader told, so that anybody can resume here', async () => {
  const { feed, listen } = openFeed();
  const ring = new EventRing(0);
  feed.begin(1, 0, 5);
  feed.receive(1, events(1, 1, 5));
  for (const entry of events(1, 1, 5)) ring.add(entry, ringLimits(1));
  const { client } = listen({}, '1.2');
  await expect.poll(() => client.types).toEqual(['hello', 'job.started', 'job.started', 'job.started']);
  const replayed = ring
    .after(2)!
    .map(({ text }) => text)
    .join('');
  expect(client.pieces.join('')).toContain(replayed);
});

const turn = () => new Promise((resolve) => setImmediate(resolve));

it('while the events of a ring are on their way, nobody resumes too early or hears what is old', async () => {
  const { feed, listen } = openFeed();
  const resuming = listen({}, '1.4');
  const fresh = listen();
  feed.begin(1, 0, 5);
  await turn();
  feed.receive(1, events(1, 1, 3));
  await turn();
  feed.receive(4, events(1, 4, 2));
  await turn();
  feed.receive(6, events(1, 6, 1));
  expect(resuming.client.types).toEqual(['hello', 'job.started', 'job.started']);
  expect(resuming.client.pieces.join('')).toContain('"resumed":true');
  expect(fresh.client.types).toEqual(['hello', 'job.started']);
});

it('a listener that is still catching up is let go, too, when the leader has no room', async () => {
  const { feed, listen } = openFeed();
  feed.begin(1, 0, 3);
  feed.receive(1, events(1, 1, 3));
  const { client } = listen({}, '1.0');
  let goOn: () => void = () => undefined;
  client.write = () =>
    new Promise<void>((resolve) => {
      goOn = resolve;
    });
  await turn();
  feed.refuse();
  goOn();
  await turn();
  expect(client.isDropped).toBe(true);
});

it.each([
  ['numbers are missing', 'gap', ['reset'], 1, (feed: EventFeed) => feed.receive(7, events(1, 7, 2))],
  [
    'another leader begins',
    'new-leader',
    ['reset', 'leader.elected'],
    2,
    (feed: EventFeed) => feed.begin(2, 0, 0),
  ],
] as const)(
  'a listener that is still catching up is told why when %s',
  async (_, reason, types, epoch, restart) => {
    const { feed, listen } = openFeed();
    feed.begin(1, 0, 3);
    feed.receive(1, events(1, 1, 3));
    const { client } = listen({}, '1.0');
    const write = client.write.bind(client);
    let goOn: () => void = () => undefined;
    client.write = (piece) => {
      write(piece);
      return new Promise<void>((resolve) => {
        goOn = resolve;
      });
    };
    await turn();
    expect(client.types).toEqual(['hello', 'job.started', 'job.started', 'job.started']);
    restart(feed);
    goOn();
    await turn();
    expect(client.types.slice(4)).toEqual(types);
    expect(client.pieces.at(-1)).toContain(`"reason":"${reason}"`);
    // It hears what comes after the id of the reset, once.
    const last = epoch === 1 ? 8 : 0;
    expect(client.pieces.at(-1)).toContain(`id: ${epoch}.${last}\n`);
    feed.receive(last + 1, events(epoch, last + 1, 1));
    expect(client.types.slice(4)).toEqual([...types, 'job.started']);
  },
);

/** What the messages of a client say of how many events there were. */
const sumsOf = ({ pieces }: Client): Record<string, number>[] =>
  [...pieces.join('').matchAll(/^event: sum\ndata: (.*)$/gm)].map(([, data]) => JSON.parse(data!).events);

it('a listener that asks for a sample is told the first events at once, and how many others there were', async () => {
  const { feed, listen } = openFeed();
  feed.begin(1, 0, 0);
  const all = listen().client;
  const sampled = listen({}, null, 40).client;
  await expect.poll(() => sampled.types).toEqual(['hello']);
  feed.receive(1, events(1, 1, 500));
  const paused = ringEntry('queue.paused', { queue: 'mail' }, serverSentEvent('1.501', 'queue.paused', '{}'));
  feed.receive(501, [paused]);
  expect(sampled.types).toEqual(['hello', ...Array(10).fill('job.started'), 'queue.paused']);
  await expect.poll(() => sumsOf(sampled)).toEqual([{ 'job.started': 490 }]);
  expect(sampled.pieces.join('')).toContain('id: 1.501\nevent: sum');
  expect(all.types).toHaveLength(502);
  // The next window has room again.
  feed.receive(502, events(1, 502, 3));
  expect(sampled.types.slice(-3)).toEqual(Array(3).fill('job.started'));
});

it('a listener with a sample that was away is told the sum of what it missed', async () => {
  const { feed, listen } = openFeed();
  feed.begin(1, 0, 300);
  feed.receive(1, events(1, 1, 300));
  const { client } = listen({}, '1.100', 40);
  await expect.poll(() => sumsOf(client)).toEqual([{ 'job.started': 190 }]);
  expect(client.types).toEqual(['hello', ...Array(10).fill('job.started'), 'sum']);
  expect(client.pieces.join('')).toContain('id: 1.300\nevent: sum');
});

it('what was counted before another leader is not told after it', async () => {
  const { feed, listen } = openFeed();
  feed.begin(1, 0, 0);
  const { client } = listen({}, null, 4);
  await expect.poll(() => client.types).toEqual(['hello']);
  feed.receive(1, events(1, 1, 5));
  feed.begin(2, 0, 0);
  feed.receive(1, events(2, 1, 3));
  await expect.poll(() => sumsOf(client)).toEqual([{ 'job.started': 2 }]);
});
