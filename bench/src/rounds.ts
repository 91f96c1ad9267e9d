import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { machineFacts } from './machine.js';
import { type Peer, peerVersion } from './peers.js';
import {
  type BenchPostgres,
  COUNTING_STATEMENTS,
  forgetStatements,
  startPostgres,
  statementCosts,
} from './postgres.js';
import { productVersion } from './product.js';
import { withRedis } from './redis.js';
import type { SystemResult } from './result.js';
import type { Context } from './scenario.js';
import { runSlice } from './slices/run-slice.js';
import type { SliceResult, SliceTask, SystemName } from './slices/slice.js';
import { mean, rounded, spread } from './statistics.js';
import { undiciVersion } from './systems/bare-calls.js';

/** Systems take turns, so that a machine that becomes slower or faster does so for all. */
export const ROUNDS = 2;

const DATABASE = 'bench';

/** One system in one scenario, under conditions of its own. */
export interface Contestant {
  /** How it is called in the result. */
  readonly name: string;
  readonly system: SystemName;
  readonly role: SystemResult['role'];
  readonly task: SliceTask;
  /** Whether the jobs are of a tenant with quotas of every kind; default false. */
  readonly quotas?: boolean;
  /** A database that outlives the slice; default a new one for each. */
  readonly url?: string;
  /** Surrounds every slice with a condition, such as a transaction that stays open. */
  readonly around?: <T>(url: string, slice: () => Promise<T>) => Promise<T>;
}

/** The contestant, and if it was asked for, the same with quotas. */
export function alsoWithQuotas({ quotas }: Context, contestant: Contestant): readonly Contestant[] {
  const name = `${contestant.name}-quotas`;
  return quotas ? [contestant, { ...contestant, name, role: 'reference', quotas }] : [contestant];
}

/** What the contestants with quotas are, in words. */
export function quotasInWords({ quotas }: Context): readonly string[] {
  return quotas
    ? [
        "`punctual-quotas` is ours for a tenant with quotas of every kind, all of them too generous to refuse anything. Where it speaks HTTP, it has a key of that tenant, and `punctual` an operator's.",
      ]
    : [];
}

/** What all slices of a scenario came to. */
export interface Rounds {
  readonly systems: readonly SystemResult[];
  readonly problems: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
}

/** Runs every contestant in turn on a server of the scenario's own. */
export function runRounds(context: Context, contestants: readonly Contestant[]): Promise<Rounds> {
  return withPostgres(context, (postgres) => runRoundsOn(postgres, context, contestants));
}

/** Runs every contestant in turn, so many times; each slice has a process of its own. */
export async function runRoundsOn(
  postgres: BenchPostgres,
  context: Context,
  contestants: readonly Contestant[],
  rounds = ROUNDS,
): Promise<Rounds> {
  const environment = environmentOf(postgres);
  const slices = new Map<string, SliceResult[]>(contestants.map(({ name }) => [name, []]));
  for (let round = 1; round <= rounds; round++) {
    // In the other order every second time: the first slice on a new server is slower than the rest.
    for (const contestant of round % 2 === 1 ? contestants : [...contestants].reverse()) {
      const { name } = contestant;
      context.progress.say(`  ${name}, round ${round} of ${rounds}`);
      const tell = (text: string) => context.progress.tell(`${name}: ${text}`);
      slices.get(name)!.push(await runOne(context, postgres, contestant, tell));
    }
  }
  return {
    systems: contestants.map((contestant) => summarize(contestant, slices.get(contestant.name)!)),
    problems: contestants.flatMap(({ name }) =>
      slices.get(name)!.flatMap((slice) => slice.problems.map((problem) => `${name}: ${problem}`)),
    ),
    environment,
  };
}

/** The machine and the server, as they are before a scenario begins. */
export function environmentOf(postgres: BenchPostgres): Readonly<Record<string, string>> {
  const facts = Object.entries(postgres.facts).map(([name, value]) => [`postgres ${name}`, value]);
  return { ...machineFacts(), ...Object.fromEntries(facts) };
}

/** Starts the shared server for one scenario. */
export async function withPostgres<T>(
  context: Context,
  work: (postgres: BenchPostgres) => Promise<T>,
  settings: Readonly<Record<string, string>> = context.profileFolder === null ? {} : COUNTING_STATEMENTS,
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
  const { system, task, quotas = false, around = (_url, slice) => slice() } = contestant;
  const ours = system.startsWith('punctual');
  const profileFolder = ours ? context.profileFolder : null;
  const folder = await mkdtemp(join(tmpdir(), 'punctual-bench-slice-'));
  const run = (url: string) =>
    around(url, () => runSlice({ system, url, folder, task, quotas, profileFolder }, tell, context.signal));
  try {
    if (contestant.url !== undefined) return await run(contestant.url);
    if (system === 'bullmq') return await withRedis(context.redis!, run);
    return await postgres.withDatabase(DATABASE, async (url) => {
      if (profileFolder === null) return run(url);
      await forgetStatements(postgres);
      const result = await run(url);
      await writeStatements(postgres, join(profileFolder, `${contestant.name}-${Date.now()}.statements.txt`));
      return result;
    });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Beside the CPU profiles of a slice: what its statements have cost the server. */
async function writeStatements(postgres: BenchPostgres, path: string): Promise<void> {
  const lines = (await statementCosts(postgres, DATABASE)).map(
    ({ totalMs, calls, rows, query }) => `${totalMs} ms  ${calls} calls  ${rows} rows  ${query}`,
  );
  await writeFile(path, `${lines.join('\n')}\n`);
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
    ...averages(slices),
    ...(delays.length > 0 && {
      ...spread(delays),
      ...(slices[0]!.early !== undefined && {
        early: slices.reduce((sum, slice) => sum + slice.early!, 0),
      }),
      slicesP50Ms: slices.map(({ spread }) => spread && rounded(spread.p50Ms)),
      slicesP99Ms: slices.map(({ spread }) => spread && rounded(spread.p99Ms)),
    }),
  };
}

/** The further figures of all slices. */
function averages(slices: readonly SliceResult[]): Readonly<Record<string, number>> {
  const names = Object.keys(slices[0]!.figures ?? {});
  return Object.fromEntries(
    names.map((name) => [name, rounded(mean(slices.map(({ figures }) => figures![name]!)), 3)]),
  );
}

export function versionOf(system: SystemName): string {
  if (system.startsWith('bare-calls')) return undiciVersion;
  return system.startsWith('punctual') ? productVersion : peerVersion(system as Peer);
}
