import { saveProgress } from '../store/claims.js';
import type { LeaderState } from './leader-state.js';
import type { Running } from './running.js';

/** Writes the newest progress of those attempts whose progress is known in memory only. */
export async function saveNewestProgress(state: LeaderState, attempts: Iterable<Running>): Promise<void> {
  const changed = Array.from(attempts).filter((running) => !running.progressSaved);
  if (changed.length === 0) return;
  const saved = changed.map((running) => ({ running, progress: running.progress }));
  const reports = changed.map(({ id, fence, progress }) => ({
    id,
    fence,
    progress: JSON.stringify(progress),
  }));
  await state.write(() => saveProgress(state.hot, state.term, reports));
  // Only now, and not what was reported meanwhile: a save that fails is made again.
  for (const { running, progress } of saved) if (running.progress === progress) running.progressSaved = true;
}
