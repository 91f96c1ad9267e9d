import { expect, describe as group, it } from 'vitest';
import type { ScenarioResult } from '../result.js';
import { barChart, lineChart, niceCeiling } from './chart.js';
import { chartsOf } from './charts.js';
import { markdownTable, pageText } from './page.js';
import { describe } from './text.js';

const result: ScenarioResult = {
  ...{ scenario: 'pinned', seconds: 4, what: ['What was done.'], ratioToBestPeer: 4.5 },
  systems: [
    {
      ...{ name: 'punctual', version: '0.1.0', role: 'ours', settings: { slots: 10 }, jobs: 9_000 },
      ...{ jobsPerSecond: 4_500, slices: [4_400, 4_600], perSecond: [[4_400], [4_600]] },
    },
    {
      ...{ name: 'graphile-worker', version: '0.17.3', role: 'peer', settings: {}, jobs: 2_000 },
      ...{ jobsPerSecond: 1_000, slices: [1_000, 1_000], perSecond: [[1_000], [1_000]] },
    },
  ],
  targets: [{ text: 'rate', wanted: '≥ 4 ×', reached: '4.5 ×', ok: true }],
  problems: ['punctual: 1 jobs never started'],
  environment: { cpu: 'fast', 'load before': '0.1' },
};

group('the report', () => {
  it('shows people figures, targets, settings and what went wrong', () => {
    const text = describe(result);
    for (const part of [
      '4,500',
      '4,400 · 4,600',
      '4.50 × the best peer',
      '≥ 4 ×',
      'yes',
      'slots 10',
      'cpu fast',
    ])
      expect(text).toContain(part);
    expect(text).toContain('WRONG: punctual: 1 jobs never started');
  });

  it('writes a page with targets, charts, what went wrong, and the notes as they are', () => {
    const page = pageText([result], '## Notes\n\nBy hand.\n', '2026-11-16');
    expect(page).toContain('| pinned | rate | ≥ 4 × | 4.5 × | yes |');
    expect(page).toContain('![pinned](benchmarks/pinned-by-second.svg)');
    expect(page).toContain('**Went wrong:** punctual: 1 jobs never started.');
    expect(page.endsWith('## Notes\n\nBy hand.\n')).toBe(true);
  });

  it('draws rates as bars and pinned seconds as lines', () => {
    expect([...chartsOf(result).keys()]).toEqual(['pinned.svg', 'pinned-by-second.svg']);
  });

  it('draws bars in proportion, in colours for light and dark, and escapes names', () => {
    const chart = barChart('a < b', [
      { label: 'x', value: 10, text: '10', ours: true },
      { label: 'y', value: 5, text: '5', ours: false },
    ]);
    const widths = [...chart.matchAll(/<rect[^>]* width="([\d.]+)"/g)].map((match) => Number(match[1]));
    expect(widths[0]).toBe(2 * widths[1]!);
    expect(chart).toContain('prefers-color-scheme: dark');
    expect(chart).toContain('a &#60; b');
  });

  it('keeps the names of lines that end together apart', () => {
    const chart = lineChart('t', [
      { label: 'x', values: [5, 5], ours: true },
      { label: 'y', values: [5, 5], ours: false },
    ]);
    const heights = ['x', 'y'].map((name) => Number(new RegExp(`y="([\\d.]+)">${name}<`).exec(chart)![1]));
    expect(Math.abs(heights[0]! - heights[1]!)).toBeGreaterThanOrEqual(16);
  });

  it('ends an axis at a round number above the largest value', () => {
    expect([1, 1_500, 41_000, 99_999].map(niceCeiling)).toEqual([1, 2_000, 60_000, 100_000]);
  });

  it('makes tables of columns', () => {
    expect(
      markdownTable([
        ['a', '1'],
        ['b', '2'],
      ]),
    ).toBe('| a | b |\n| --- | --- |\n| 1 | 2 |');
  });
});
