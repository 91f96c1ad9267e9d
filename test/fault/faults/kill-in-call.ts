import type { Fault } from '../fault.js';

/** A worker dies while the receiver works on its calls. */
export const fault: Fault = {
  kind: 'kill-in-call',
  scenario: 'http-mixed',
  // Of the receiver, because two faults cannot both tell it what to do with its calls.
  lane: 'receiver',
  async inject(scene) {
    const sink = scene.rig.sink!;
    await sink.become('hold');
    let caller: string | undefined;
    await scene.until(async () => {
      const { held } = await sink.state();
      caller = held.find((name) =>
        scene.rig.workers.some(({ member }) => member.name === name && member.isAlive),
      );
      return caller !== undefined;
    }, 5_000);
    const worker = scene.rig.workers.find(({ member }) => member.name === caller);
    await worker?.member.kill();
    const { held } = await sink.become(null);
    await worker?.start();
    if (!worker)
      return { targets: [], effective: false, detail: `nobody called; ${held.length} calls were held` };
    return { targets: [caller!], effective: true, detail: `${caller} died in a call` };
  },
};
