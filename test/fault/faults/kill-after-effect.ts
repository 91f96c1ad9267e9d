import { existsSync, rmSync, writeFileSync } from 'node:fs';
import type { Fault } from '../fault.js';

/** A worker dies when a handler has done its work and nobody knows yet. */
export const fault: Fault = {
  kind: 'kill-after-effect',
  scenario: 'kill-points',
  lane: 'workers',
  async inject(scene, random) {
    const worker = scene.someWorker(random);
    const { member } = worker;
    member.expectEnd();
    writeFileSync(worker.killFile, '');
    const died = await scene.until(() => !member.isAlive, 10_000);
    // The handler takes the file away before it kills its process: an observer of the reason.
    const effective = died && !existsSync(worker.killFile);
    if (died) await worker.start();
    else {
      rmSync(worker.killFile, { force: true });
      member.expectEnd(false);
    }
    return { targets: [member.name], effective, detail: `${member.name} died after an effect` };
  },
};
