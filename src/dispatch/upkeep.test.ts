import pg from 'pg';
import { expect, it, vi } from 'vitest';
import { TestClock } from '../../test/test-clock.js';
import { Term } from '../cluster/term.js';
import { resolveConfig } from '../core/config.js';
import { SILENT_LOG } from '../core/log.js';
import type { Pool } from '../store/database.js';
import { LeaderState } from './leader-state.js';
import type { Running } from './running.js';
import { saveNewestProgress } from './upkeep.js';

/** A leader over a database that keeps nothing, and what it was asked to keep. */
function leader() {
  const query = vi.fn(async (_query: { values: unknown[] }) => ({ rows: [{ job: 'a' }] }));
  const pool = { query } as unknown as Pool;
  const state = new LeaderState({
    term: new Term(0, 1, 'node-a', Number.POSITIVE_INFINITY),
    ...{ hot: pool, pool, patient: pool, clock: new TestClock(), log: SILENT_LOG, secret: Buffer.alloc(32) },
    config: resolveConfig({}, {}, () => '').config,
    renounce: () => undefined,
  });
  return { state, query, written: () => query.mock.calls.map(([{ values }]) => values[5]) };
}

const attempt = (): Running =>
  ({ id: 'a', fence: 1, progress: { progress: 0.1, at: '' }, progressSaved: false }) as unknown as Running;

it('progress is saved once', async () => {
  const { state, written } = leader();
  const running = attempt();
  await saveNewestProgress(state, [running]);
  await saveNewestProgress(state, [running]);
  expect(written()).toEqual([['{"progress":0.1,"at":""}']]);
});

it('progress that could not be saved is saved later', async () => {
  const { state, query, written } = leader();
  const refused = Object.assign(new pg.DatabaseError('deadlock detected', 0, 'error'), { code: '40P01' });
  query.mockRejectedValueOnce(refused);
  const running = attempt();
  await expect(saveNewestProgress(state, [running])).rejects.toThrow('deadlock');
  await saveNewestProgress(state, [running]);
  expect(written()).toHaveLength(2);
  expect(running.progressSaved).toBe(true);
});

it('progress that is reported while an earlier one is saved is saved too', async () => {
  const { state, query, written } = leader();
  const running = attempt();
  query.mockImplementationOnce(async () => {
    running.progress = { progress: 0.9, at: '' };
    running.progressSaved = false;
    return { rows: [{ job: 'a' }] };
  });
  await saveNewestProgress(state, [running]);
  await saveNewestProgress(state, [running]);
  expect(written().at(-1)).toEqual(['{"progress":0.9,"at":""}']);
  expect(running.progressSaved).toBe(true);
});
