import type { Fault } from '../fault.js';

/** A handler holds its worker's thread for longer than the worker timeout. */
export const fault: Fault = {
  kind: 'blocked-loop',
  scenario: 'blocked-loop',
  lane: 'workers',
  async inject(scene) {
    const workMs = Math.round(scene.settings.workerTimeoutMs * 1.3);
    const n = await scene.order({ workMs, blocking: true, timeoutMs: 60_000 });
    const seen = { start: 0, end: 0, worker: '' };
    await scene.until(() => {
      for (const effect of scene.effects.look()) {
        if (effect.n === n) Object.assign(seen, { [effect.kind]: effect.at, worker: effect.worker });
      }
      return seen.end > 0;
    }, workMs * 4);
    const heldMs = seen.end - seen.start;
    // A busy handler is no dead worker, so this is no fault that excuses a second start: no target is named.
    return {
      targets: [],
      effective: heldMs >= workMs,
      detail: `${seen.worker} was held for ${Math.round(heldMs)} ms`,
    };
  },
};
