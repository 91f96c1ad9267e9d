import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { stopParts } from './stop-parts.js';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

it('tells which parts take long to stop, and waits for them', async () => {
  const told: (readonly string[])[] = [];
  let end = () => {};
  const slow = { stop: () => new Promise<void>((resolve) => (end = resolve)) };
  const stopping = stopParts({ quick: { stop: async () => {} }, slow }, (names) => told.push(names));
  await vi.advanceTimersByTimeAsync(60_000);
  expect(told).toEqual([['slow']]);
  end();
  await stopping;
  expect(vi.getTimerCount()).toBe(0);
});
