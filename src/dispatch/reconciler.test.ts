import { expect, it } from 'vitest';
import { turnsOf } from '../../test/turns-of-the-loop.js';
import { uuidv7 } from '../core/uuid.js';
import type { FencedJob } from '../core/wire.js';
import type { LeaderState } from './leader-state.js';
import { Reconciler } from './reconciler.js';
import { RunningList } from './running-list.js';
import type { WorkerSession } from './worker-session.js';

it('a heartbeat without end is compared in short turns, and its answer is short', async () => {
  const state = { running: new Map(), turns: new Set(), clock: { now: () => 0 } } as unknown as LeaderState;
  const session = { id: 'w', running: new RunningList() } as unknown as WorkerSession;
  const listed = Array.from({ length: 400_000 }, () => ({ jobId: uuidv7(Date.now()), fence: 1 }));
  const reconciling = new Reconciler(state);
  let stop: FencedJob[] = [];
  const compare = async () => {
    await reconciling.refused(session, listed);
    stop = await reconciling.stops(session, listed);
  };
  expect((await turnsOf(compare)).count).toBeGreaterThan(2);
  expect(stop).toEqual(listed.slice(0, 10_000));
});
