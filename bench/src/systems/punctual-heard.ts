import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { operatorKey } from '../access.js';
import { loadSdk, loadServer } from '../product.js';
import type { Listening } from '../slices/slice.js';
import type { FromListeners, Heard, ToListeners } from './listeners-process.js';
import { checkHistory, SLOTS } from './punctual.js';
import type { System } from './system.js';

/** The queue of the watched jobs, and their tenant, unless they are of the tenant with the full load. */
const WATCHED = 'watched';
/** A tenant in which nothing happens. */
const QUIET = 'quiet';

interface HeardOptions {
  readonly url: string;
  readonly folder: string;
  readonly listening: Listening;
  readonly onStart: (number: number) => void;
  readonly onWatchedStart: (number: number) => void;
}

/** A system with a second, smaller stream of jobs that somebody watches. */
export interface HeardSystem {
  readonly system: System;
  submitWatched(first: number, count: number): Promise<void>;
  /** Ends the listeners when they have heard so many events; null without any. */
  heard(expected: number): Promise<Heard | null>;
}

/** A node, a worker and the submitter in one process, and those who listen to its events in another. */
export async function openPunctualHeard(options: HeardOptions): Promise<HeardSystem> {
  const { url, folder, listening, onStart, onWatchedStart } = options;
  const { startNode } = await loadServer();
  const { connect, task } = await loadSdk();
  const node = await startNode({ databaseUrl: url, data: folder });
  const apiKey = await operatorKey(url);
  const count = task('count', (input: { n: number }) => onStart(input.n));
  const watched = task('watched', { queue: WATCHED }, (input: { n: number }) => onWatchedStart(input.n));
  const slots = SLOTS.throughput;
  const worker = node.punctual.worker([count, watched], { slots, shared: true });
  await worker.start();
  const tenant = listening.to === 'queue' ? 'default' : WATCHED;
  const watching = connect({ url: node.url, apiKey, tenant });
  const listeners = await startListeners(listening, { url: node.url, apiKey });
  const numbered = (first: number, size: number) =>
    Array.from({ length: size }, (_, i) => ({ n: first + i }));
  const system: System = {
    settings: {
      'worker slots': slots,
      history: 'kept',
      listeners: listening.count,
      'listen to': listening.to,
    },
    submitMany: async (first, size) => {
      await node.punctual.submitMany(count, numbered(first, size));
    },
    submitOne: async (n) => {
      await node.punctual.submit(count, { n });
    },
    finish: () => worker.drain(),
    check: (submitted) => checkHistory(url, submitted),
    close: async () => {
      await listeners?.close();
      await watching.close();
      await node.stop();
    },
  };
  return {
    system,
    submitWatched: async (first, size) => {
      await watching.submitMany(watched, numbered(first, size));
    },
    heard: async (expected) => (listeners ? listeners.stop(listening.to === 'quiet' ? 0 : expected) : null),
  };
}

interface Listeners {
  stop(expected: number): Promise<Heard>;
  close(): Promise<void>;
}

async function startListeners(
  { count, to }: Listening,
  { url, apiKey }: { readonly url: string; readonly apiKey: string },
): Promise<Listeners | null> {
  if (count === 0) return null;
  const child = fork(join(import.meta.dirname, 'listeners-process.js'), [], { execArgv: [] });
  const tenant = { tenant: WATCHED, queue: 'default', quiet: QUIET }[to];
  const query = to === 'queue' ? `?queue=${WATCHED}` : '';
  await tell(child, { type: 'listen', url, apiKey, tenant, query, count }, 'listening');
  return {
    stop: (expected) => tell(child, { type: 'stop', expected }, 'heard'),
    close: async () => {
      const ended = once(child, 'exit');
      child.disconnect();
      await ended;
    },
  };
}

/** Sends an order and waits for the answer; ends with an error if the process does. */
async function tell<Type extends FromListeners['type']>(
  child: ChildProcess,
  order: ToListeners,
  type: Type,
): Promise<Extract<FromListeners, { type: Type }>> {
  child.send(order);
  const ended = once(child, 'exit').then(() => Promise.reject(new Error('The listeners have ended.')));
  ended.catch(() => undefined);
  for (;;) {
    const [message] = (await Promise.race([once(child, 'message'), ended])) as [FromListeners];
    if (message.type === type) return message as Extract<FromListeners, { type: Type }>;
  }
}
