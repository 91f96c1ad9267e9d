import { expect, it, vi } from 'vitest';
import type { Fence } from '../../../src/host/test-switches.js';

/**
 * Proves a fence by its removal: the same story is told twice, with the fence in place and without it. It answers
 * whether what the fence prevents has happened. The parts of the scheduler that it uses are loaded by itself, because
 * fences are taken out when their module is loaded.
 */
export function provenByRemoval(fence: Fence, prevented: string, happens: () => Promise<boolean>): void {
  it.each([
    { way: 'in place', without: '', harm: false },
    { way: 'taken out', without: fence, harm: true },
  ])(`${fence} $way: ${prevented}: $harm`, async ({ without, harm }) => {
    vi.stubEnv('PUNCTUAL_TEST', '1');
    vi.stubEnv('PUNCTUAL_TEST_WITHOUT', without);
    vi.resetModules();
    try {
      expect(await happens()).toBe(harm);
    } finally {
      vi.unstubAllEnvs();
      // Files after this one run in the same process, and must not find modules without their fences.
      vi.resetModules();
    }
  });
}
