import { describe, expect, it, onTestFinished } from 'vitest';
import { LifeLine } from '../../../test/hostile-program.js';
import { MemoryScheduler } from '../../../test/memory-scheduler.js';
import type { Assignment } from '../../core/wire.js';
import { testContext } from '../../sdk/test-context.js';
import { resolveWorkerOptions } from '../worker-options.js';
import { ExecRunner } from './exec.js';
import type { Stop } from './runner.js';

/** A runner that is part of a worker, whose session a test may change. */
async function openRunner() {
  const scheduler = new MemoryScheduler();
  const runner = new ExecRunner();
  const exec = { isolation: 'none', allowCommands: true } as const;
  const options = resolveWorkerOptions({ log: false, targets: ['exec'], exec });
  const session = { workerId: 'first', shard: 0 };
  runner.open({
    ...{ gateway: scheduler, session: () => session, options, urls: [], clock: { now: Date.now } },
    ...{ workerTimeoutMs: () => 10_000, onWarning: () => undefined },
  });
  await runner.prepare();
  onTestFinished(() => runner.close());
  let made = 0;
  const run = (script: string, args: readonly string[] = []) => {
    made += 1;
    const target = { type: 'exec', command: 'sh', args: ['-c', script, ...args] } as const;
    const stop: Stop = { isTold: false, reason: undefined, listen: () => undefined };
    const assignment = { ...scheduler.submit('', null, { target }), jobId: `job-${made}` } as Assignment;
    const result = runner.run(assignment, testContext(), stop);
    return { result, stop };
  };
  return { run, session };
}

const STAYS = 'trap "" TERM; exec 3>"$0"; echo up >&3; while :; do sleep 9; done';

describe.runIf(process.platform === 'linux')('the runner of programs', () => {
  it('ends those of an earlier session before it begins another: they may run elsewhere by now', async () => {
    const { run, session } = await openRunner();
    const line = new LifeLine();
    const stale = run(STAYS, [line.path]);
    await line.up.times(1);
    session.workerId = 'second';
    const next = run('echo 7');
    await expect(stale.result).rejects.toMatchObject({ code: 'ATTEMPT_STOPPED', retryable: true });
    expect(await next.result).toBe(7);
    await line.gone;
  });

  it('tells what was in force while a program runs, and how it ended behind it', async () => {
    const { run } = await openRunner();
    const { result, stop } = run('echo said; exit 5');
    await expect(result).rejects.toMatchObject({ code: 'EXIT_STATUS' });
    expect(stop.execution).toEqual({ isolation: 'none', limits: {}, exitCode: 5, stdout: 'said\n' });
  });

  it('runs many at the same time', async () => {
    const { run } = await openRunner();
    const many = await Promise.all(Array.from({ length: 20 }, (_, n) => run(`echo ${n}`).result));
    expect(many).toEqual(Array.from({ length: 20 }, (_, n) => n));
  });
});
