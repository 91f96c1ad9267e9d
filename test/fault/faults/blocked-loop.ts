import type { Fault } from '../fault.js';
import type { Effect } from '../history.js';

/** A handler holds its worker's thread for longer than the worker timeout. */
export const fault: Fault = {
  kind: 'blocked-loop',
  scenario: 'blocked-loop',
  lane: 'workers',
  async inject(scene) {
    const workMs = Math.round(scene.settings.workerTimeoutMs * 1.3);
    const { orders } = await scene.load.order([{ workMs, blocking: true, timeoutMs: 60_000 }]);
    const { n } = orders[0]!;
    await scene.until(() => {
      scene.effects.look();
      return scene.effects.of(n).some((effect) => !isStart(effect));
    }, workMs * 4);
    const seen = scene.effects.of(n);
    const [start, end] = [seen.find(isStart), seen.find((effect) => !isStart(effect))];
    const heldMs = start && end ? end.at - start.at : 0;
    const detail = `${start?.worker ?? 'nobody'} was held for ${Math.round(heldMs)} ms`;
    // A busy handler is no dead worker, so this is no fault that excuses a second start: no target is named.
    return { targets: [], effective: heldMs >= workMs, detail, ...(start && { held: start.worker }) };
  },
};

function isStart(effect: Effect): boolean {
  return effect.kind === 'start';
}
