import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { renderMetrics } from '../src/api/metrics.js';
import { COUNTERS } from '../src/core/wire.js';
import type { Tally } from '../src/store/tallies.js';

it('the alert rules ask for metrics that exist', async () => {
  const counts = Object.fromEntries(COUNTERS.map((counter) => [counter, 1]));
  const totals = { ...counts, lateness: [1] } as unknown as Tally;
  const metrics = await renderMetrics(totals, { running: 1, waiting: 1, workers: 1, epoch: 1 }, true, {
    counts: [1],
    sumMs: 1,
  });
  const rules = readFileSync(new URL('../docs/alerts.yml', import.meta.url), 'utf8');
  const asked = new Set(rules.match(/\bpunctual_\w+/g));
  expect(asked.size).toBeGreaterThan(5);
  for (const name of asked) expect(metrics).toMatch(new RegExp(`^${name}[ {]`, 'm'));
});
