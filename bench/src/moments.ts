import { setTimeout as pause } from 'node:timers/promises';

/** Milliseconds on a clock that all processes of the machine share and that has fractions. */
export function now(): number {
  return performance.timeOrigin + performance.now();
}

/** Calls a function again and again until the answer is called. */
export function ticking(everyMs: number, tick: () => void): () => void {
  let timer: NodeJS.Timeout;
  const next = () => {
    timer = setTimeout(() => {
      tick();
      next();
    }, everyMs).unref();
  };
  next();
  return () => clearTimeout(timer);
}

/** Waits until a moment of `now()`. */
export async function until(moment: number): Promise<void> {
  const ms = moment - now();
  if (ms > 0) await pause(ms);
}
