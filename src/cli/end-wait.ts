import type { ApiClient } from '../client/api-client.js';
import { formatDuration, humanDuration } from '../core/duration.js';
import { PunctualError } from '../core/errors.js';
import { printable } from '../core/paint.js';
import type { Cli } from './cli.js';
import { Progress } from './progress-line.js';

/** How long one request waits for the end; progress is shown after each. */
const STEP_MS = 500;
const PLAIN_EVERY_MS = 10_000;

/** What is waited for: a workflow or a batch. */
export interface Awaited<T> {
  readonly path: string;
  readonly hasEnded: (read: T) => boolean;
  /** How far it is, on one line. */
  readonly lineOf: (read: T) => string;
}

/** Yields what is at the path, again after each half second, until it has ended. */
export async function* follow<T>(
  api: ApiClient,
  { path, hasEnded }: Awaited<T>,
  signal: AbortSignal,
): AsyncGenerator<T> {
  let read = await api.request<T>('GET', path, { signal });
  yield read;
  while (!hasEnded(read)) {
    read = await api.request<T>('GET', `${path}?wait=${formatDuration(STEP_MS)}`, { signal, longPoll: true });
    yield read;
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
  try {
    for await (const read of follow<T>(api, awaited, cli.interrupted)) {
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
