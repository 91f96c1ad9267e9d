import { randomInt } from 'node:crypto';
import { expect, it } from 'vitest';
import { keepEvidence } from './evidence.js';
import { faultsOf, loadFaults, MIXED } from './plan.js';
import { describe as describeSummary, summarize } from './report.js';
import { run } from './run.js';
import { settingsFor } from './settings.js';

const SECONDS = 30;
/** Less load than in a run of its own, because other work may go on beside the tests. */
const LOAD = {
  jobsPerSecond: 220,
  workflowsPerSecond: 4,
  batchesPerSecond: 3,
  callsPerSecond: 10,
  programsPerSecond: 0,
};
const SETTINGS = { ...settingsFor(SECONDS, MIXED), ...LOAD };

it('a short round of all faults loses nothing, doubles nothing and recovers', async () => {
  const seed = randomInt(2 ** 31);
  console.log(`run again with: npm run fault -- --seconds ${SECONDS} --seed ${seed}`);
  const outcome = await run({
    ...{ scenario: MIXED, seconds: SECONDS, seed, settings: SETTINGS },
    faults: faultsOf(await loadFaults(), MIXED),
    say: () => undefined,
  });
  const { history, violations } = outcome;
  console.log(describeSummary(summarize(history, violations, SECONDS)));
  if (violations.length === 0) await outcome.discard();
  else console.log(`what was seen is in ${await keepEvidence(outcome.folder, history, violations)}`);
  expect(violations.slice(0, 20)).toEqual([]);
});
