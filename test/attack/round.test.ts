import { randomInt } from 'node:crypto';
import { expect, it } from 'vitest';
import { attacksOf, loadAttacks } from './plan.js';
import { describe as describeOutcome, listViolations } from './report.js';
import { run } from './run.js';

/** What fits into a short round; `npm run attack` has more kinds, and more time for each. */
const KINDS = ['bad-requests', 'odd-requests', 'odd-texts', 'raw-http', 'many-fields'];
const SECONDS = 14;
const CALM_MS = 1_500;

it('a cluster under a short attack answers properly, keeps its term and serves a calm client', async () => {
  const seed = randomInt(2 ** 31);
  console.log(`run again with: npm run attack -- --seconds ${SECONDS} --seed ${seed} --only ${KINDS}`);
  const attacks = attacksOf(await loadAttacks(), KINDS);
  const outcome = await run({ attacks, seconds: SECONDS, seed, calmMs: CALM_MS, say: console.log });
  console.log(describeOutcome(outcome));
  if (outcome.violations.length === 0) await outcome.discard();
  else console.log(`the logs are in ${outcome.folder}`);
  expect(listViolations(outcome.violations)).toEqual([]);
});
