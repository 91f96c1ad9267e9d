import { setTimeout as sleep } from 'node:timers/promises';
import type { Command } from 'commander';
import { PunctualError } from '../core/errors.js';
import type { LocalCall } from './call.js';

const WATCH_EVERY_MS = 1_000;

/** The option that shows tables in full. */
export const WIDE = ['--wide', 'show all columns in full, however wide the terminal is'] as const;

/**
 * Adds `--watch` to a command that shows something: it is shown again every second until it is interrupted or nobody
 * reads it any more. A node or a database that does not answer for a while does not end it.
 */
export function watched<C extends LocalCall<object>>(
  command: Command,
  show: (call: C) => Promise<void>,
  everyMs = WATCH_EVERY_MS,
): (call: C) => Promise<void> {
  command.option('--watch', 'show it again every second; with --json one document per line');
  return async (call) => {
    if (!(call.options as { readonly watch?: boolean }).watch) return show(call);
    const { cli, output } = call;
    const end = AbortSignal.any([cli.interrupted, cli.readerGone]);
    output.redraw();
    for (let shown = false; ; ) {
      try {
        await show(call);
        shown = true;
      } catch (error) {
        if (!shown || end.aborted || !isPassing(error)) throw error;
        output.note(error.message);
      }
      await sleep(everyMs, undefined, { signal: end });
    }
  };
}

function isPassing(error: unknown): error is PunctualError {
  return error instanceof PunctualError && error.status === 503;
}
