import { expect, it } from 'vitest';
import { uuidTime } from '../core/uuid.js';
import { Reading } from './reading.js';
import type { LeaderState } from './state.js';

const SUBMIT_TIMEOUT_MS = 5_000;

/** A reading over a table that holds nothing, with the moments from which it looked. */
function emptyTable() {
  const clock = { time: 1_000_000_000, now: () => clock.time };
  const lookedFrom: number[] = [];
  const table = { fails: false };
  const hot = {
    query: async ({ name, values }: { name: string; values: unknown[] }) => {
      if (table.fails) throw new Error('the table cannot be read');
      if (name === 'look-back') lookedFrom.push(uuidTime(values[0] as string));
      return { rows: [] };
    },
  };
  const backlog = { rewindAll: () => undefined };
  const state = {
    clock,
    hot,
    backlog,
    directory: { knows: () => true, learn: async () => undefined },
  } as unknown as LeaderState;
  const parts = { onAdmit: () => undefined, onStartBefore: () => undefined };
  return { clock, lookedFrom, table, reading: new Reading(state, SUBMIT_TIMEOUT_MS, parts) };
}

it('the first look-back reaches from the beginning of the term on, however late it comes', async () => {
  const { clock, lookedFrom, reading } = emptyTable();
  const loaded = clock.time;
  await reading.load();
  clock.time += 60_000;
  await reading.lookBack();
  expect(lookedFrom).toHaveLength(1);
  expect(lookedFrom[0]).toBeLessThanOrEqual(loaded - SUBMIT_TIMEOUT_MS);
  expect(lookedFrom[0]).toBeGreaterThan(loaded - 60_000);
});

it('a look-back reaches from the last look on, however long ago that was', async () => {
  const { clock, lookedFrom, reading } = emptyTable();
  const first = clock.time;
  await reading.lookBack();
  clock.time += 60_000;
  await reading.lookBack();
  expect(lookedFrom[1]).toBeLessThanOrEqual(first - SUBMIT_TIMEOUT_MS);
});

it('a look-back that failed does not count as a look', async () => {
  const { clock, lookedFrom, table, reading } = emptyTable();
  const first = clock.time;
  await reading.lookBack();
  table.fails = true;
  clock.time += 30_000;
  await expect(reading.lookBack()).rejects.toThrow('cannot be read');
  table.fails = false;
  clock.time += 30_000;
  await reading.lookBack();
  expect(lookedFrom[1]).toBeLessThanOrEqual(first - SUBMIT_TIMEOUT_MS);
});
