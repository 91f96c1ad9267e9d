import { Command } from 'commander';
import { expect, it } from 'vitest';
import { cliUnderTest } from '../../test/cli-under-test.js';
import { PunctualError } from '../core/errors.js';
import type { LocalCall } from './call.js';
import { Output } from './output.js';
import { watched } from './watch.js';

/** Watches what `show` prints, and gives what was printed. */
async function watch(show: (time: number, call: LocalCall<object>, end: AbortController) => void) {
  const end = new AbortController();
  const { cli, stdout, stderr } = cliUnderTest({ readerGone: end.signal });
  let times = 0;
  const run = watched(new Command('get'), async (call: LocalCall<object>) => show(++times, call, end), {
    everyMs: 1,
  });
  const call = {
    cli,
    output: new Output(cli),
    options: { watch: true },
    args: [],
    exitWith: () => undefined,
  };
  const error = await run(call).catch((thrown: unknown) => thrown);
  return { error, isOver: end.signal.aborted, times, stdout: stdout(), stderr: stderr() };
}

it('what is watched is shown again, also after nobody could answer, until its reader is gone', async () => {
  const run = await watch((time, { output }, end) => {
    if (time === 2) throw new PunctualError('NO_LEADER', 'The shard has no leader.');
    output.document(null, () => `${time}\n`);
    if (time === 3) end.abort();
  });
  expect(run).toMatchObject({ isOver: true, times: 3, stdout: '1\n\n3\n' });
  expect(run.stderr).toBe('The shard has no leader.\n');
});

it('an error at the beginning, and one that stays, ends it', async () => {
  const first = new PunctualError('UNREACHABLE', 'nobody');
  const atOnce = await watch(() => {
    throw first;
  });
  expect(atOnce).toMatchObject({ error: first, times: 1 });
  const gone = new PunctualError('JOB_NOT_FOUND', 'gone');
  const later = await watch((time) => {
    if (time === 2) throw gone;
  });
  expect(later).toMatchObject({ error: gone, times: 2 });
});
