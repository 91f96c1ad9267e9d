import { describe, expect, it } from 'vitest';
import { atLeast, atMost, ratioOfDelays, ratioOfRates, type SystemResult } from './result.js';

const system = (role: SystemResult['role'], figures: Partial<SystemResult>): SystemResult => ({
  ...{ name: role, version: '1', role, settings: {}, jobs: 1 },
  ...figures,
});

describe('results', () => {
  it('compares with the best peer and with nobody else', () => {
    const systems = [
      system('ours', { jobsPerSecond: 300, p50Ms: 2 }),
      system('reference', { jobsPerSecond: 900, p50Ms: 1 }),
      system('peer', { jobsPerSecond: 100, p50Ms: 3 }),
      system('peer', { jobsPerSecond: 50, p50Ms: 5 }),
    ];
    expect(ratioOfRates(systems)).toBe(3);
    expect(ratioOfDelays(systems)).toBe(1.5);
  });

  it('has no ratio without peers', () => {
    expect(ratioOfRates([system('ours', { jobsPerSecond: 300 })])).toBeNull();
    expect(ratioOfDelays([system('ours', { p50Ms: 3 })])).toBeNull();
  });

  it('meets a target exactly at its bound', () => {
    expect(atLeast('rate', 3, 3)).toEqual({ text: 'rate', wanted: '≥ 3 ×', reached: '3 ×', ok: true });
    expect(atLeast('rate', 3, 2.99).ok).toBe(false);
    expect(atMost('delay', 20, 20).ok).toBe(true);
    expect(atMost('delay', 20, 20.1)).toMatchObject({ reached: '20.1 ms', ok: false });
  });
});
