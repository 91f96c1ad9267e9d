import { type Signal, signal } from '@preact/signals';
import { nodeTime } from '../api/client.js';
import { isVisible } from '../api/visibility.js';

/** The time for whatever shows how long ago something was: one clock for the whole page, which stands while nobody looks. */

function ticking(everyMs: number): Signal<number> {
  let timer: number | undefined;
  let stopWatching: (() => void) | undefined;
  const tick = () => {
    clearTimeout(timer);
    if (!isVisible.value) return;
    now.value = nodeTime();
    timer = window.setTimeout(tick, everyMs);
  };
  const now: Signal<number> = signal(nodeTime(), {
    watched() {
      stopWatching = isVisible.subscribe(tick);
    },
    unwatched() {
      clearTimeout(timer);
      stopWatching?.();
    },
  });
  return now;
}

/** For what is younger than a minute. */
export const eachSecond = ticking(1_000);

/** For what is older. */
export const eachMinute = ticking(30_000);
