import { setTimeout as sleep } from 'node:timers/promises';
import type { Fault } from '../fault.js';

/** A worker cannot reach any node, sometimes for longer than its timeout; it goes on working meanwhile. */
export const fault: Fault = {
  kind: 'worker-cut',
  scenario: 'partition',
  lane: 'workers',
  async inject(scene, random) {
    const worker = scene.someWorker(random);
    const ms = Math.round(scene.settings.workerTimeoutMs * (0.3 + random.next()));
    for (const link of worker.links) link.cut();
    await sleep(ms);
    const refused = worker.links.reduce((sum, link) => sum + link.refused, 0);
    worker.heal();
    const detail = `${worker.member.name} was refused ${refused} times in ${ms} ms`;
    return { targets: [worker.member.name], effective: refused > 0, detail };
  },
};
