import type { Effect, History, LeaderGone } from './history.js';

/** Finds the first start under a later term than the one whose leader is gone. */
export function firstStartAfter(history: History): (gone: LeaderGone) => Effect | undefined {
  const epochs = new Map(
    history.audit.flatMap(({ kind, job, fence, epoch }) =>
      kind === 'claimed' ? [[`${job} ${fence}`, epoch] as const] : [],
    ),
  );
  const inTime = history.effects.filter(({ kind }) => kind === 'start').sort((a, b) => a.at - b.at);
  return (gone) =>
    inTime.find(({ job, fence, at }) => at >= gone.at && (epochs.get(`${job} ${fence}`) ?? 0) > gone.epoch);
}
