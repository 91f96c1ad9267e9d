import { mkdir } from 'node:fs/promises';
import { resolve } from 'node:path';
import { machineFacts, percentText, watchStolenTime } from './machine.js';
import { helpText, type Options, parseOptions, UsageError } from './options.js';
import { findRedis } from './peers.js';
import { Progress } from './progress.js';
import { writePage } from './report/page.js';
import { describe } from './report/text.js';
import type { ScenarioResult } from './result.js';
import type { Scenario } from './scenario.js';
import { SCENARIOS } from './scenarios/index.js';

/** `npm run bench`: results go to standard output, progress to standard error. */

const progress = new Progress();
const interrupted = new AbortController();

async function main(options: Options): Promise<number> {
  const profileFolder = options.profile === null ? null : resolve(options.profile);
  if (profileFolder !== null) await mkdir(profileFolder, { recursive: true });
  const redis = options.peers.includes('bullmq') ? findRedis() : null;
  if (options.peers.includes('bullmq') && redis === null)
    progress.say('BullMQ is left out: there is no redis-server on the PATH.');
  const peers = options.peers.filter((peer) => peer !== 'bullmq' || redis !== null);
  const results: ScenarioResult[] = [];
  for (const scenario of options.scenarios) {
    const seconds = options.seconds ?? scenario.defaultSeconds;
    progress.say(`${scenario.name}: ${scenario.title} (${seconds} s)`);
    const { quotas } = options;
    const context = { seconds, peers, redis, quotas, progress, profileFolder, signal: interrupted.signal };
    const stolen = watchStolenTime();
    const run = await scenario.run(context).catch((error: unknown) => failure(scenario, seconds, error));
    const result = { ...run, environment: { ...run.environment, 'cpu stolen': percentText(stolen()) } };
    results.push(result);
    process.stdout.write(`${describe(result)}\n`);
  }
  const problems = results.flatMap((result) => result.problems);
  if (options.full)
    progress.say(`Written: ${await writePage(results, new Date().toISOString().slice(0, 10))}`);
  if (options.json) process.stdout.write(`${JSON.stringify(summary(results))}\n`);
  return problems.length === 0 ? 0 : 1;
}

/** A scenario that broke off is something that went wrong; the others are still run. */
function failure(scenario: Scenario, seconds: number, error: unknown): ScenarioResult {
  if (interrupted.signal.aborted) throw error;
  return {
    ...{ scenario: scenario.name, seconds, what: [scenario.title], systems: [], targets: [] },
    ...{ ratioToBestPeer: null, environment: machineFacts() },
    problems: [error instanceof Error ? (error.stack ?? error.message) : String(error)],
  };
}

/** One scenario as the contract has it; several as a list of such. */
function summary(results: readonly ScenarioResult[]): object {
  if (results.length === 1) return results[0]!;
  const seconds = results.reduce((sum, result) => sum + result.seconds, 0);
  return { scenario: results.map(({ scenario }) => scenario).join(','), seconds, scenarios: results };
}

/** The same key press reaches this process from the terminal and from the script that started it. */
const SAME_PRESS_MS = 500;
let pressedAt = 0;

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(signal, () => {
    const again = interrupted.signal.aborted && performance.now() - pressedAt > SAME_PRESS_MS;
    // The second time there is no waiting: children are killed when this process ends.
    if (again) process.exit(130);
    if (interrupted.signal.aborted) return;
    pressedAt = performance.now();
    interrupted.abort(new Error('Interrupted.'));
    progress.say('Stopping what was started …');
  });
}

try {
  const options = parseOptions(process.argv.slice(2), SCENARIOS);
  if (options.help) process.stdout.write(helpText(SCENARIOS));
  else process.exitCode = await main(options);
} catch (error) {
  progress.say(
    error instanceof UsageError || interrupted.signal.aborted
      ? (error as Error).message
      : String((error as Error).stack),
  );
  process.exitCode = error instanceof UsageError ? 2 : interrupted.signal.aborted ? 130 : 1;
}
