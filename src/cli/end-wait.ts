import type { ApiClient } from '../client/api-client.js';
import { formatDuration, humanDuration } from '../core/duration.js';
import { PunctualError } from '../core/errors.js';
import type { EventFilter } from '../core/events.js';
import { printable } from '../core/paint.js';
import type { Cli } from './cli.js';
import { EventNews } from './event-news.js';
import { Progress } from './progress-line.js';

/** How long one request waits for the end if nobody tells what happens; progress is shown after each. */
const STEP_MS = 500;
/** The same after an event: the last step ends a moment before its workflow does. */
const AFTER_EVENT_MS = 100;
const PLAIN_EVERY_MS = 10_000;

/** What is waited for: a workflow or a batch. */
export interface Awaited<T> {
  readonly path: string;
  /** The events that tell of changes. */
  readonly events: EventFilter;
  readonly hasEnded: (read: T) => boolean;
  /** How far it is, on one line. */
  readonly lineOf: (read: T) => string;
}

/** Yields what is at the path, again whenever events tell of a change, else after each half second, until it has ended. */
export async function* follow<T>(
  api: ApiClient,
  { path, hasEnded, events }: Awaited<T>,
  signal: AbortSignal,
  /** How long it may take until something is read again. */
  leftMs: () => number = () => Number.POSITIVE_INFINITY,
): AsyncGenerator<T> {
  let read = await api.request<T>('GET', path, { signal });
  yield read;
  if (hasEnded(read)) return;
  const news = new EventNews(api, events, signal);
  try {
    while (!hasEnded(read)) {
      const waitMs = (await news.next(leftMs())) ? AFTER_EVENT_MS : STEP_MS;
      const asked = `${path}?wait=${formatDuration(waitMs)}`;
      read = await api.request<T>('GET', asked, { signal, longPoll: true });
      yield read;
    }
  } finally {
    news.close();
  }
}

/** Waits for the end with progress on stderr; throws TIMED_OUT when the time is up. */
export async function awaitEnd<T>(
  cli: Cli,
  api: ApiClient,
  awaited: Awaited<T>,
  limitMs: number | null,
): Promise<T> {
  const progress = new Progress({ screen: cli.stderr, now: cli.now, plainEveryMs: PLAIN_EVERY_MS });
  const startedAt = cli.now();
  const leftMs = () => Math.max(0, (limitMs ?? Number.POSITIVE_INFINITY) - (cli.now() - startedAt));
  try {
    for await (const read of follow<T>(api, awaited, cli.interrupted, leftMs)) {
      if (awaited.hasEnded(read)) return read;
      const line = printable(awaited.lineOf(read));
      const tookMs = cli.now() - startedAt;
      if (limitMs !== null && tookMs >= limitMs) {
        throw new PunctualError(
          'TIMED_OUT',
          `It has not ended within ${humanDuration(limitMs)}; it is ${line}.`,
          {
            hint: null,
          },
        );
      }
      progress.show(`${humanDuration(tookMs)}  ${line}`, line);
    }
  } finally {
    progress.clear();
  }
  throw new Error('a wait ends with an end');
}
