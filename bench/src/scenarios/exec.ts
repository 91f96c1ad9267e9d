import { constants } from 'node:fs';
import { access, chmod, mkdtemp, rm } from 'node:fs/promises';
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
    const inMemory = await access(MEMORY, constants.W_OK).then(
      () => true,
      () => false,
    );
    const folders: Folders = {
      disk: await newFolder(tmpdir()),
      memory: inMemory ? await newFolder(MEMORY) : null,
    };
    try {
      return await measure(context, folders);
    } finally {
      for (const folder of Object.values(folders)) {
        if (folder !== null) await rm(folder, { recursive: true, force: true });
      }
    }
  },
};

/** A file system in memory. */
const MEMORY = '/dev/shm';

/** Where workers have the folders of their programs. */
interface Folders {
  readonly disk: string;
  /** Null where there is no file system in memory. */
  readonly memory: string | null;
}

async function newFolder(parent: string): Promise<string> {
  const folder = await mkdtemp(join(parent, 'punctual-bench-exec-'));
  // Programs have users of their own, who must be able to get to them.
  await chmod(folder, 0o711);
  return folder;
}

async function measure(context: Context, folders: Folders): Promise<ScenarioResult> {
  const { seconds, progress } = context;
  const environment = machineFacts();
  const folder = folders.memory ?? folders.disk;
  const program = compiled('nothing', folder);
  const slice = seconds / ROUNDS;
  const bare: number[] = [];
  const levels = new Map<Isolation, Measured>();
  const onDisk: number[] = [];
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
    if (folders.memory === null) continue;
    progress.say(`  isolation none, on the disk, round ${round} of ${ROUNDS}`);
    onDisk.push((await runnerRate(program, folders.disk, slice, 'none')).perSecond);
  }
  progress.say('  start delay');
  const delays = await withPostgres(context, (postgres) =>
    postgres.withDatabase('bench', (url) =>
      programDelays({ url, folder: folders.disk, program: compiled('clock', folders.disk), seconds }),
    ),
  );
  const [none, auto] = [levels.get('none')!, levels.get('auto')!];
  const share = mean(none.rates) / mean(bare);
  return {
    ...{ scenario: 'exec', seconds, environment, problems: [], ratioToBestPeer: null },
    what: [
      `A program of C that ends at once, linked statically against glibc, is run. \`bare posix_spawn\` is a loop in C that starts it and waits for it, one after another, and does nothing else.`,
      `Ours is the runner of a worker with its exec host, ${AT_ONCE} at a time, without a scheduler: each attempt gets a folder, an environment, as root a user of its own, and whatever it has started is ended behind it.`,
      `A bare loop makes no files, and what three files cost depends on the file system: the folder of the worker is ${folders.memory === null ? 'on the disk' : 'in memory (tmpfs), and for comparison on the disk'}.`,
      `start delay: ${PER_SECOND} jobs a second, one by one; from the submission until the program has begun, which tells when that was. Node and submitter are one process, the worker is another.`,
      `Levels: none; ${auto.isolation === 'none' ? 'no other is available on this machine' : auto.isolation}.`,
    ],
    systems: [
      systemOf('punctual', 'ours', none.rates, { isolation: 'none' }),
      ...(auto.isolation === 'none'
        ? []
        : [systemOf(auto.isolation, 'reference', auto.rates, { isolation: auto.isolation })]),
      ...(onDisk.length === 0
        ? []
        : [systemOf('punctual, folder on the disk', 'reference', onDisk, { isolation: 'none' })]),
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
