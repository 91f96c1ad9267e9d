import { setTimeout as sleep } from 'node:timers/promises';
import type { Command } from 'commander';
import { PunctualError } from '../core/errors.js';
import type { EventFilter } from '../core/events.js';
import type { LocalCall, ServerCall } from './call.js';
import { EventNews } from './event-news.js';

const WATCH_EVERY_MS = 1_000;

/** The option that shows tables in full. */
export const WIDE = ['--wide', 'show all columns in full, however wide the terminal is'] as const;

/** How something is watched. */
interface WatchOptions<C> {
  /** How often it is shown if nobody tells when it changes; default 1 s. */
  readonly everyMs?: number;
  /** The events after which it may look different; null if events do not tell that. */
  readonly events?: (call: C) => EventFilter | null;
}

/**
 * Adds `--watch` to a command that shows something: it is shown again when it changes, or every second, until it is
 * interrupted or nobody reads it any more. A node or a database that does not answer for a while does not end it.
 */
export function watched<C extends LocalCall<object>>(
  command: Command,
  show: (call: C) => Promise<void>,
  { everyMs = WATCH_EVERY_MS, events }: WatchOptions<C> = {},
): (call: C) => Promise<void> {
  const when = events ? 'whenever it changes' : 'every second';
  command.option('--watch', `show it again ${when}; with --json one document per line`);
  return async (call) => {
    if (!(call.options as { readonly watch?: boolean }).watch) return show(call);
    const { cli, output } = call;
    const end = AbortSignal.any([cli.interrupted, cli.readerGone]);
    const filter = events?.(call) ?? null;
    const { api } = call as LocalCall<object> & Partial<Pick<ServerCall<object>, 'api'>>;
    const news = filter && api ? new EventNews(api, filter, end) : null;
    output.redraw();
    try {
      for (let shown = false; ; ) {
        try {
          await show(call);
          shown = true;
        } catch (error) {
          if (!shown || end.aborted || !isPassing(error)) throw error;
          output.note(error.message);
        }
        if (!(await news?.next())) await sleep(everyMs, undefined, { signal: end });
      }
    } finally {
      news?.close();
    }
  };
}

function isPassing(error: unknown): error is PunctualError {
  return error instanceof PunctualError && error.status === 503;
}
