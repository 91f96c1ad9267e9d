import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { renderMetrics } from '../src/api/metrics.js';
import type { Figures } from '../src/core/figures.js';
import { COUNTERS } from '../src/core/wire.js';
import type { Tally } from '../src/store/tallies.js';

it('the alert rules ask for metrics that exist, by labels that they have', async () => {
  const counts = Object.fromEntries(COUNTERS.map((counter) => [counter, 1]));
  const totals = { ...counts, lateness: [1], latenessMs: 1 } as unknown as Tally;
  const histogram = { counts: [1], sumMs: 1 };
  const figures: Figures = {
    totals: {
      ...{ running: 1, waiting: 1, ready: 1, unserved: 1, workers: 1, slots: 1 },
      ...{
        batchesWaiting: 1,
        batchesRunning: 1,
        slotsKept: 1,
        endsPending: 1,
        originsOpen: 0,
        originsPaused: 0,
      },
    },
    workflows: { time: histogram, release: histogram },
    queues: [{ queue: 'mail', ready: 1, running: 1, unserved: 1, oldestReadyMs: 1 }],
    attempts: [
      {
        ...{ queue: 'mail', task: 'send', waiting: histogram, runTime: histogram },
        outcomes: { succeeded: 1, failed: 1, 'timed-out': 1, lost: 1, cancelled: 1 },
      },
    ],
  };
  const node = { leads: true, epoch: 1, loopDelay: histogram };
  const metrics = await renderMetrics(totals, figures, node);
  const rules = readFileSync(new URL('../docs/alerts.yml', import.meta.url), 'utf8');
  const asked = new Set(rules.match(/\bpunctual_\w+/g));
  expect(asked.size).toBeGreaterThan(7);
  for (const name of asked) expect(metrics).toMatch(new RegExp(`^${name}[ {]`, 'm'));
  for (const [, grouped, name] of rules.matchAll(/max by \(([\w, ]+)\) \(\w*\(?(punctual_\w+)/g)) {
    for (const label of grouped!.split(', '))
      expect(metrics).toMatch(new RegExp(`^${name}\\{.*\\b${label}="`, 'm'));
  }
});
