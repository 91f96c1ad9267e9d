import { expect, it, onTestFinished } from 'vitest';
import { Door } from '../../test/happening.js';
import { uuidTime } from '../core/uuid.js';
import type { Cursor } from '../store/read-backlog.js';
import { BacklogReader } from './backlog-reader.js';
import type { LeaderState } from './leader-state.js';

const SUBMIT_TIMEOUT_MS = 5_000;

/** A reading over a table that holds nothing, with the moments from which it looked. */
function emptyTable(running: readonly Cursor[] = []) {
  const clock = { time: 1_000_000_000, now: () => clock.time };
  const lookedFrom: number[] = [];
  const readFrom: Cursor[] = [];
  const table: { fails: boolean; door?: Door } = { fails: false };
  const hot = {
    query: async ({ name, values }: { name: string; values: unknown[] }) => {
      if (table.fails) throw new Error('the table cannot be read');
      if (name === 'look-back') lookedFrom.push(uuidTime(values[0] as string));
      if (name === 'find-segments') await table.door?.opened;
      return { rows: [] };
    },
  };
  const state = {
    ...{ clock, hot, reads: hot, term: { over: false }, isLoaded: false },
    backlog: { rewindAll: (cursors: readonly Cursor[]) => readFrom.push(...cursors) },
    running: new Map(running.map((cursor) => [cursor.id, { cursor }])),
    directory: { knows: () => true, learn: async () => undefined },
  };
  const nothing = () => undefined;
  const parts = {
    onAdmit: nothing,
    onCancel: nothing,
    onWake: nothing,
    onArtifacts: nothing,
    onStartBefore: nothing,
  };
  const reading = new BacklogReader(state as unknown as LeaderState, SUBMIT_TIMEOUT_MS, parts);
  onTestFinished(() => reading.stop());
  return { clock, lookedFrom, readFrom, table, state, reading };
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

it('a term that cannot see soon what waits goes on after the last running job of each segment', async () => {
  const at = (rank: number, runAt: number, id: string) => ({ queue: 1, needs: 1, lane: 0, rank, runAt, id });
  const { readFrom, table, state, reading } = emptyTable([
    at(5, 10, 'a'),
    at(5, 20, 'b'),
    at(5, 20, 'a2'),
    at(9, 1, 'c'),
  ]);
  table.door = new Door();
  await reading.load();
  expect(readFrom).toEqual([at(5, 20, 'b'), at(9, 1, 'c')]);
  expect(state.isLoaded).toBe(false);
  table.door.open();
  await reading.stop();
  expect(state.isLoaded).toBe(true);
});

it('a term that sees at once what waits reads that, in order', async () => {
  const { readFrom, state, reading } = emptyTable([
    { queue: 1, needs: 1, lane: 0, rank: 5, runAt: 10, id: 'a' },
  ]);
  await reading.load();
  expect([readFrom, state.isLoaded]).toEqual([[], true]);
});

it('a term begins anew when what waits cannot be read at all', async () => {
  const { table, reading } = emptyTable();
  table.fails = true;
  await expect(reading.load()).rejects.toThrow('cannot be read');
});
