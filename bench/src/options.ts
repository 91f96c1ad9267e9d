import { parseArgs } from 'node:util';
import { PEERS, type Peer } from './peers.js';
import type { Scenario } from './scenario.js';

/** What was asked for on the command line. */
export interface Options {
  readonly scenarios: readonly Scenario[];
  /** Whether everything is run, so that the page of results is written. */
  readonly full: boolean;
  /** Seconds per scenario; null means each scenario's own default. */
  readonly seconds: number | null;
  readonly peers: readonly Peer[];
  /** Whether ours also runs for a tenant with quotas, in scenarios that can. */
  readonly quotas: boolean;
  readonly json: boolean;
  readonly profile: string | null;
  readonly help: boolean;
}

/** A command line that cannot be understood; the message says what would be. */
export class UsageError extends Error {}

const ALL = 'all';

export function parseOptions(args: readonly string[], scenarios: readonly Scenario[]): Options {
  const values = read(args);
  const names = values.scenario?.flatMap((value) => value.split(',')) ?? [ALL];
  const full = names.includes(ALL);
  return {
    scenarios: full ? scenarios : names.map((name) => find(name, scenarios)),
    full,
    seconds: values.seconds === undefined ? null : secondsFrom(values.seconds),
    peers: values.peers === undefined ? PEERS : peersFrom(values.peers),
    quotas: values.quotas ?? false,
    json: values.json ?? false,
    profile: values.profile ?? null,
    help: values.help ?? false,
  };
}

function read(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      options: {
        scenario: { type: 'string', multiple: true },
        seconds: { type: 'string' },
        peers: { type: 'string' },
        quotas: { type: 'boolean' },
        json: { type: 'boolean' },
        profile: { type: 'string' },
        help: { type: 'boolean', short: 'h' },
      },
    }).values;
  } catch (error) {
    throw new UsageError(`${(error as Error).message}\nSee --help.`);
  }
}

function find(name: string, scenarios: readonly Scenario[]): Scenario {
  const found = scenarios.find((scenario) => scenario.name === name);
  if (found) return found;
  const known = scenarios.map((scenario) => scenario.name).join(', ');
  throw new UsageError(`There is no scenario ${JSON.stringify(name)}. There are: ${known}, ${ALL}.`);
}

function secondsFrom(text: string): number {
  const seconds = Number(text);
  if (Number.isInteger(seconds) && seconds >= 2 && seconds <= 3_600) return seconds;
  throw new UsageError(`--seconds must be a whole number from 2 to 3600, not ${JSON.stringify(text)}.`);
}

function peersFrom(text: string): readonly Peer[] {
  if (text === 'none') return [];
  const wanted = text.split(',');
  const unknown = wanted.find((name) => !PEERS.some((peer) => peer === name));
  if (unknown === undefined) return PEERS.filter((peer) => wanted.includes(peer));
  throw new UsageError(
    `There is no peer ${JSON.stringify(unknown)}. There are: ${PEERS.join(', ')}; none leaves them all out.`,
  );
}

export function helpText(scenarios: readonly Scenario[]): string {
  const width = Math.max(...scenarios.map(({ name }) => name.length));
  const lines = scenarios.map(
    ({ name, title, defaultSeconds, secondsMean }) =>
      `  ${name.padEnd(width)}  ${title}\n  ${' '.repeat(width)}  --seconds: ${secondsMean}; default ${defaultSeconds}`,
  );
  return `Usage: npm run bench -- [options]

Measures Punctual beside its peers on this machine. Without --scenario everything is run, and
docs/benchmarks.md is written.

Options:
  --scenario NAME  what to run; several with commas or by repeating the option; default ${ALL}
  --seconds N      how long (see below)
  --peers LIST     ${PEERS.join(',')} or none; default all that are here (BullMQ needs redis-server)
  --quotas         sustained, wire and latency also run ours for a tenant with quotas of every kind
  --json           end with one line of JSON
  --profile DIR    write CPU profiles of our processes, and what statements cost the server, to this folder
  --help

Scenarios:
${lines.join('\n')}
`;
}
