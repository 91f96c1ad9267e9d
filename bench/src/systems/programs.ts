import { execFile, execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Isolation } from '../../../src/core/job.js';
import type { Assignment } from '../../../src/core/wire.js';
import { loadExec } from '../product.js';
import { benchFolder } from '../repository.js';

/** Programs that are run at the same time. */
export const AT_ONCE = 4;

/** A program of `bench/programs`, compiled into a folder. */
export function compiled(name: string, folder: string): string {
  const file = join(folder, name);
  const flags = ['-O2', '-static', '-pthread', '-o', file];
  execFileSync('cc', [...flags, join(benchFolder, 'programs', `${name}.c`)]);
  chmodSync(file, 0o755);
  return file;
}

/** How often a second a loop in C starts the program and waits for it, one after another. */
export async function bareRate(program: string, folder: string, seconds: number): Promise<number> {
  const loop = compiled('spawn-loop', folder);
  const { stdout } = await promisify(execFile)(loop, [program, String(seconds), '1']);
  return Number(stdout) / seconds;
}

/** What a run of our own came to. */
export interface RunnerRate {
  readonly perSecond: number;
  /** What was in force. */
  readonly isolation: string;
  readonly runs: number;
}

/**
 * How often a second the runner of a worker runs the program: with a folder, an environment and a user for each attempt, and the whole
 * tree ended behind it, but without a scheduler.
 */
export async function runnerRate(
  program: string,
  folder: string,
  seconds: number,
  isolation: Isolation,
): Promise<RunnerRate> {
  const { ExecRunner, resolveWorkerOptions, testContext } = await loadExec();
  const runner = new ExecRunner();
  const work = join(folder, `work-${isolation}`);
  const bytes = readFileSync(program);
  const artifact = {
    id: 'nothing',
    sha256: createHash('sha256').update(bytes).digest('hex'),
    size: bytes.length,
  };
  // Downloaded already.
  mkdirSync(join(work, 'cache'), { recursive: true, mode: 0o711 });
  writeFileSync(join(work, 'cache', artifact.sha256), bytes, { mode: 0o755 });
  const gateway = { artifact: async () => ({ ...artifact, kind: 'elf' }), triesAtOnce: 0 };
  const options = resolveWorkerOptions({
    targets: ['exec'],
    log: false,
    exec: { folder: work, isolation },
  });
  runner.open({
    ...{ options, urls: ['http://127.0.0.1:1'], clock: { now: () => Date.now() }, gateway: gateway as never },
    session: () => ({ workerId: 'w', shard: 0 }),
    workerTimeoutMs: () => 10_000,
    onWarning: () => undefined,
  });
  await runner.prepare();
  const end = performance.now() + seconds * 1_000;
  let runs = 0;
  let level = '';
  const loop = async (lane: number) => {
    for (let n = 0; performance.now() < end; n++) {
      const stop = { isTold: false, reason: undefined, listen: () => undefined, execution: undefined };
      const target = { type: 'exec' as const, artifact: artifact.id };
      const assignment = {
        jobId: `bench-${lane}-${n}`,
        fence: 1,
        attempt: 1,
        timeoutMs: 60_000,
        payload: null,
        target,
      };
      await runner.run(assignment as unknown as Assignment, testContext(), stop);
      level = (stop.execution as { isolation: string } | undefined)?.isolation ?? '';
      runs += 1;
    }
  };
  const begin = performance.now();
  await Promise.all(Array.from({ length: AT_ONCE }, (_, lane) => loop(lane)));
  const took = (performance.now() - begin) / 1_000;
  await runner.close();
  return { perSecond: runs / took, isolation: level, runs };
}
