import { setTimeout as sleep } from 'node:timers/promises';
import { task } from '../core/task.js';

const STEPS = 10;

/** The task of the demo: sleeps and reports its progress. */
export const nap = task('nap', async (input: { readonly seconds: number }, context) => {
  const stepMs = (input.seconds * 1_000) / STEPS;
  context.log(`sleeping for ${input.seconds} s`);
  for (let step = 1; step <= STEPS; step += 1) {
    await sleep(stepMs, undefined, { signal: context.signal });
    await context.progress(step / STEPS, step === STEPS ? 'awake' : 'asleep');
  }
  return { slept: input.seconds };
});
