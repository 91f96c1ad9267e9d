import type { ScenarioResult, SystemResult } from '../result.js';
import { type Bar, barChart, lineChart } from './chart.js';
import { milliseconds, wholeNumber } from './text.js';

/** The charts of a scenario, by the name of their file. */
export function chartsOf(result: ScenarioResult): ReadonlyMap<string, string> {
  const { scenario, systems } = result;
  const charts = new Map<string, string>();
  if (systems.some(({ jobsPerSecond }) => jobsPerSecond !== undefined)) {
    charts.set(`${scenario}.svg`, barChart(`${scenario}: jobs per second`, systems.map(rateBar)));
  }
  if (systems.some(({ p99Ms }) => p99Ms !== undefined)) {
    charts.set(
      `${scenario}.svg`,
      barChart(`${scenario}: milliseconds, p50 and p99 (less is better)`, systems.flatMap(delayBars)),
    );
  }
  if (scenario === 'pinned') {
    const lines = systems.flatMap(({ name, role, perSecond = [] }) =>
      perSecond.map((values) => ({
        label: name,
        values,
        ours: role !== 'peer',
        broken: role === 'reference',
      })),
    );
    charts.set('pinned-by-second.svg', lineChart('pinned: jobs in each second, by slice', lines));
  }
  return charts;
}

function rateBar({ name, role, jobsPerSecond = 0 }: SystemResult): Bar {
  return { label: name, value: jobsPerSecond, text: wholeNumber(jobsPerSecond), ours: role === 'ours' };
}

function delayBars({ name, role, p50Ms = 0, p99Ms = 0 }: SystemResult): readonly Bar[] {
  const ours = role === 'ours';
  return [
    { label: `${name} p50`, value: p50Ms, text: milliseconds(p50Ms), ours },
    { label: `${name} p99`, value: p99Ms, text: milliseconds(p99Ms), ours },
  ];
}
