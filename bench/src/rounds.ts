import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { machineFacts } from './machine.js';
import { type Peer, peerVersion } from './peers.js';
import { type BenchPostgres, startPostgres } from './postgres.js';
import { productVersion } from './product.js';
import { withRedis } from './redis.js';
import type { SystemResult } from './result.js';
import type { Context } from './scenario.js';
import { runSlice } from './slices/run-slice.js';
import type { SliceResult, SliceTask, SystemName } from './slices/slice.js';
import { mean, rounded, spread } from './statistics.js';

/** Systems take turns, so that a machine that becomes slower or faster does so for all. */
export const ROUNDS = 2;

/** One system in one scenario, under conditions of its own. */
export interface Contestant {
  /** How it is called in the result. */
  readonly name: string;
  readonly system: SystemName;
  readonly role: SystemResult['role'];
  readonly task: SliceTask;
  /** Surrounds every slice with a condition, such as a transaction that stays open. */
  readonly around?: <T>(url: string, slice: () => Promise<T>) => Promise<T>;
}

/** What all slices of a scenario came to. */
export interface Rounds {
  readonly systems: readonly SystemResult[];
  readonly problems: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
}

/** Runs every contestant in turn, twice, on one server; each slice has a process and a database of its own. */
export async function runRounds(context: Context, contestants: readonly Contestant[]): Promise<Rounds> {
  return withPostgres(context, async (postgres) => {
    const slices = new Map<string, SliceResult[]>(contestants.map(({ name }) => [name, []]));
    for (let round = 1; round <= ROUNDS; round++) {
      for (const contestant of contestants) {
        const { name } = contestant;
        context.progress.say(`  ${name}, round ${round} of ${ROUNDS}`);
        const tell = (text: string) => context.progress.tell(`${name}: ${text}`);
        slices.get(name)!.push(await runOne(context, postgres, contestant, tell));
      }
    }
    return {
      systems: contestants.map((contestant) => summarize(contestant, slices.get(contestant.name)!)),
      problems: contestants.flatMap(({ name }) =>
        slices.get(name)!.flatMap((slice) => slice.problems.map((problem) => `${name}: ${problem}`)),
      ),
      environment: { ...machineFacts(), ...prefixed('postgres', postgres.facts) },
    };
  });
}

/** Starts the shared server for one scenario. */
export async function withPostgres<T>(
  context: Context,
  work: (postgres: BenchPostgres) => Promise<T>,
  settings: Readonly<Record<string, string>> = {},
): Promise<T> {
  context.progress.tell('starting Postgres');
  const postgres = await startPostgres(settings);
  try {
    return await work(postgres);
  } finally {
    await postgres.stop();
  }
}

async function runOne(
  context: Context,
  postgres: BenchPostgres,
  contestant: Contestant,
  tell: (text: string) => void,
): Promise<SliceResult> {
  const { system, task, around = (_url, slice) => slice() } = contestant;
  const ours = system.startsWith('punctual');
  const profileFolder = ours ? context.profileFolder : null;
  const folder = await mkdtemp(join(tmpdir(), 'punctual-bench-slice-'));
  const run = (url: string) =>
    around(url, () => runSlice({ system, url, folder, task, profileFolder }, tell, context.signal));
  try {
    return system === 'bullmq'
      ? await withRedis(context.redis!, run)
      : await postgres.withDatabase('bench', run);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function summarize({ name, role, system }: Contestant, slices: readonly SliceResult[]): SystemResult {
  const rates = slices.map((slice) => slice.jobsPerSecond ?? Number.NaN);
  const delays = slices.flatMap((slice) => slice.delays ?? []);
  return {
    ...{ name, role, version: versionOf(system), settings: slices[0]!.settings },
    jobs: slices.reduce((sum, slice) => sum + slice.submitted, 0),
    ...(slices[0]!.perSecond && {
      jobsPerSecond: rounded(mean(rates), 5),
      slices: rates.map((rate) => rounded(rate, 5)),
      perSecond: slices.map((slice) => slice.perSecond!),
    }),
    ...(slices[0]!.delays && {
      ...spread(delays),
      slicesP50Ms: slices.map((slice) => rounded(slice.spread!.p50Ms)),
      slicesP99Ms: slices.map((slice) => rounded(slice.spread!.p99Ms)),
    }),
  };
}

export function versionOf(system: SystemName): string {
  return system.startsWith('punctual') ? productVersion : peerVersion(system as Peer);
}

export function prefixed(
  prefix: string,
  facts: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(facts).map(([name, value]) => [`${prefix} ${name}`, value]));
}
