// Tasks as a program would define them. `punctual worker run --module examples/tasks.mjs` runs a worker for
// them in a process of its own; `hello.mjs` runs one beside the submitting code.
import { PermanentError, task } from 'punctual';

export const greet = task('greet', { retry: { maxAttempts: 4 }, timeout: '2m' }, async (input, ctx) => {
  await ctx.progress(0.5, 'half way');
  ctx.log.info(`greeting ${input.name} in attempt ${ctx.attempt}`);
  return { text: `Hello ${input.name}`, fence: ctx.fence };
});

// The signal aborts when the job is cancelled or its timeout is over; passing it on ends the work at once.
export const download = task('download', { queue: 'default', timeout: '30s' }, async (input, ctx) => {
  const answer = await fetch(input.url, { signal: ctx.signal });
  if (answer.status === 404) throw new PermanentError(`${input.url} does not exist`, { code: 'GONE' });
  if (!answer.ok) throw new Error(`${input.url} answered ${answer.status}`);
  return { bytes: (await answer.arrayBuffer()).byteLength };
});
