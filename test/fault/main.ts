import { randomInt } from 'node:crypto';
import { parseArgs } from 'node:util';
import { messageOf } from '../../src/core/errors.js';
import { keepEvidence } from './evidence.js';
import { faultsOf, loadFaults, MIXED, scenariosOf } from './plan.js';
import { describe, summarize } from './report.js';
import { run } from './run.js';
import { settingsFor } from './settings.js';

/** `npm run fault`: progress and numbers go to standard error, with `--json` one line of JSON to standard output. */

const say = (line: string): void => {
  process.stderr.write(`${line}\n`);
};

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      scenario: { type: 'string', default: MIXED },
      seconds: { type: 'string', default: '60' },
      seed: { type: 'string' },
      json: { type: 'boolean', default: false },
      keep: { type: 'boolean', default: false },
    },
  });
  const all = await loadFaults();
  const scenario = values.scenario;
  const seconds = Number(values.seconds);
  const seed = values.seed === undefined ? randomInt(2 ** 31) : Number(values.seed);
  if (!scenariosOf(all).includes(scenario)) {
    say(`There is no scenario ${scenario}. There are: ${scenariosOf(all).join(', ')}.`);
    return 2;
  }
  if (!(seconds > 0) || !Number.isInteger(seed)) {
    say('--seconds must be a number above 0, and --seed a whole number.');
    return 2;
  }
  say(`scenario ${scenario}, ${seconds} s, seed ${seed}`);
  const outcome = await run({
    ...{ scenario, seconds, seed, say },
    faults: faultsOf(all, scenario),
    settings: settingsFor(seconds, scenario),
  });
  const { history, violations } = outcome;
  const summary = summarize(history, violations, seconds);
  say(`\n${describe(summary)}`);
  if (violations.length === 0 && !values.keep) await outcome.discard();
  else {
    for (const { invariant, job, detail } of violations.slice(0, 10))
      say(`  ${invariant}: ${job ?? ''} ${detail}`);
    say(`\nwhat was seen is in ${await keepEvidence(outcome.folder, history, violations)}`);
    say(`run it again with: npm run fault -- --scenario ${scenario} --seconds ${seconds} --seed ${seed}`);
  }
  if (values.json)
    process.stdout.write(`${JSON.stringify({ ...summary, violations: violations.slice(0, 100) })}\n`);
  return violations.length === 0 ? 0 : 1;
}

// An interrupted run leaves nothing running: children are killed when this process ends. A terminal and npm may both
// pass a signal on, and the second must not end the process in the middle of that.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => process.exit(130));

/** Ends the process when everything is written: left to itself, Node may hang for ever in closing handles. */
async function exit(code: number): Promise<never> {
  await new Promise<void>((resolve) => process.stdout.write('', () => resolve()));
  process.exit(code);
}

try {
  await exit(await main());
} catch (error) {
  say(messageOf(error));
  await exit(2);
}
