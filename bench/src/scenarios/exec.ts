import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Isolation } from '../../../src/core/job.js';
import { machineFacts } from '../machine.js';
import { productVersion } from '../product.js';
import { atLeast, type ScenarioResult, type SystemResult } from '../result.js';
import { ROUNDS, withPostgres } from '../rounds.js';
import type { Context, Scenario } from '../scenario.js';
import { mean, rounded, spread } from '../statistics.js';
import { PER_SECOND, programDelays } from '../systems/program-delays.js';
import { AT_ONCE, bareRate, compiled, runnerRate } from '../systems/programs.js';

/** What a level of isolation may cost: at least this share of a bare loop is left without one. */
const SHARE = 0.5;

interface Measured {
  readonly rates: number[];
  readonly isolation: string;
}

export const exec: Scenario = {
  name: 'exec',
  title: 'Programs: runs a second beside a bare loop',
  secondsMean: 'seconds per system, in two slices',
  defaultSeconds: 10,
  run: async (context: Context): Promise<ScenarioResult> => {
    const folder = await mkdtemp(join(tmpdir(), 'punctual-bench-exec-'));
    // Programs have users of their own, who must be able to get to them.
    await chmod(folder, 0o711);
    try {
      return await measure(context, folder);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  },
};

async function measure(context: Context, folder: string): Promise<ScenarioResult> {
  const { seconds, progress } = context;
  const environment = machineFacts();
  const program = compiled('nothing', folder);
  const slice = seconds / ROUNDS;
  const bare: number[] = [];
  const levels = new Map<Isolation, Measured>();
  for (let round = 1; round <= ROUNDS; round++) {
    progress.say(`  bare posix_spawn, round ${round} of ${ROUNDS}`);
    bare.push(await bareRate(program, folder, slice));
    for (const isolation of ['none', 'auto'] as const) {
      progress.say(`  isolation ${isolation}, round ${round} of ${ROUNDS}`);
      const { perSecond, isolation: level } = await runnerRate(program, folder, slice, isolation);
      levels.set(isolation, {
        rates: [...(levels.get(isolation)?.rates ?? []), perSecond],
        isolation: level,
      });
    }
  }
  progress.say('  start delay');
  const delays = await withPostgres(context, (postgres) =>
    postgres.withDatabase('bench', (url) =>
      programDelays({ url, folder, program: compiled('clock', folder), seconds }),
    ),
  );
  const [none, auto] = [levels.get('none')!, levels.get('auto')!];
  const share = mean(none.rates) / mean(bare);
  return {
    ...{ scenario: 'exec', seconds, environment, problems: [], ratioToBestPeer: null },
    what: [
      `A program of C that ends at once, linked statically against glibc, is run. \`bare posix_spawn\` is a loop in C that starts it and waits for it, one after another, and does nothing else.`,
      `Ours is the runner of a worker with its exec host, ${AT_ONCE} at a time, without a scheduler: each attempt gets a folder, an environment, as root a user of its own, and whatever it has started is ended behind it.`,
      `start delay: ${PER_SECOND} jobs a second, one by one; from the submission until the program has begun, which tells when that was. Node and submitter are one process, the worker is another.`,
      `Levels: none; ${auto.isolation === 'none' ? 'no other is available on this machine' : auto.isolation}.`,
    ],
    systems: [
      systemOf('punctual', 'ours', none.rates, { isolation: 'none' }),
      ...(auto.isolation === 'none'
        ? []
        : [systemOf(auto.isolation, 'reference', auto.rates, { isolation: auto.isolation })]),
      systemOf('bare posix_spawn', 'reference', bare, { 'at once': 1 }),
      {
        ...{ name: 'start delay', role: 'reference', version: productVersion, jobs: delays.length },
        settings: { 'jobs a second': PER_SECOND, isolation: 'none' },
        ...spread(delays),
      },
    ],
    targets: [atLeast('runs without isolation beside a bare loop', SHARE, share)],
  };
}

function systemOf(
  name: string,
  role: SystemResult['role'],
  rates: readonly number[],
  settings: SystemResult['settings'],
): SystemResult {
  return {
    ...{
      name,
      role,
      version: role === 'ours' ? productVersion : '',
      slices: rates.map((rate) => rounded(rate)),
    },
    settings: { 'at once': AT_ONCE, ...settings },
    jobs: 0,
    jobsPerSecond: rounded(mean(rates)),
  };
}
