import { randomInt } from 'node:crypto';
import { parseArgs } from 'node:util';
import { messageOf } from '../../src/core/errors.js';
import type { Attack } from './attack.js';
import { attacksOf, loadAttacks } from './plan.js';
import { describe, listViolations } from './report.js';
import { run } from './run.js';

/** `npm run attack`: progress, figures and violations go to standard error; the exit code is 1 when there are any. */

const CALM_MS = 3_000;

const say = (line: string): void => {
  process.stderr.write(`${line}\n`);
};

function help(attacks: readonly Attack[]): string {
  return [
    'npm run attack -- [--seconds N] [--seed N] [--only KIND[,KIND]] [--keep]',
    '',
    'Attacks a cluster of two nodes on this machine, beside a calm client, and judges what it does to them.',
    '',
    '  --seconds N    all attacks together (180)',
    '  --seed N       the same requests as another run',
    '  --only KIND    some attacks only',
    '  --keep         keep the logs of the processes in any case',
    '',
    ...attacks.map(({ kind, summary }) => `  ${kind.padEnd(20)} ${summary}`),
  ].join('\n');
}

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      seconds: { type: 'string', default: '180' },
      seed: { type: 'string' },
      only: { type: 'string', default: '' },
      keep: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  const all = await loadAttacks();
  if (values.help) {
    say(help(all));
    return 0;
  }
  const seconds = Number(values.seconds);
  const seed = values.seed === undefined ? randomInt(2 ** 31) : Number(values.seed);
  if (!(seconds > 0) || !Number.isInteger(seed)) {
    say('--seconds must be a number above 0, and --seed a whole number.');
    return 2;
  }
  const attacks = attacksOf(all, values.only.split(',').filter(Boolean));
  say(`${attacks.length} attacks, ${seconds} s, seed ${seed}`);
  const outcome = await run({ attacks, seconds, seed, calmMs: CALM_MS, say });
  const { violations } = outcome;
  say(`\n${describe(outcome)}`);
  if (violations.length === 0 && !values.keep) await outcome.discard();
  else {
    for (const line of listViolations(violations)) say(`  ${line}`);
    say(`\nthe logs are in ${outcome.folder}`);
    const only = values.only === '' ? '' : ` --only ${values.only}`;
    say(`run it again with: npm run attack -- --seconds ${seconds} --seed ${seed}${only}`);
  }
  return violations.length === 0 ? 0 : 1;
}

// An interrupted run leaves nothing running: children are killed when this process ends, and a second signal
// must not end it in the middle of that.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => process.exit(130));

try {
  process.exit(await main());
} catch (error) {
  say(messageOf(error));
  process.exit(2);
}
