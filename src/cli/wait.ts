import { MAX_TIMER_MS } from '../core/clock.js';

/**
 * Waits until one of the signals aborts. Unlike a bare listener it keeps the process alive meanwhile, even when
 * nothing else does.
 */
export function anyAborted(...signals: readonly AbortSignal[]): Promise<void> {
  return new Promise((resolve) => {
    const any = AbortSignal.any([...signals]);
    if (any.aborted) {
      resolve();
      return;
    }
    let timer: NodeJS.Timeout;
    const hold = (): void => {
      timer = setTimeout(hold, MAX_TIMER_MS);
    };
    hold();
    any.addEventListener(
      'abort',
      () => {
        clearTimeout(timer);
        resolve();
      },
      { once: true },
    );
  });
}
