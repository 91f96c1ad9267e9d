import type { Fault } from '../fault.js';

/** A worker dies when its report is on the way, which sometimes arrives and sometimes does not. */
export const fault: Fault = {
  kind: 'kill-before-report',
  scenario: 'kill-points',
  lane: 'workers',
  async inject(scene, random) {
    const worker = scene.someWorker(random);
    const { member } = worker;
    const fate = random.pick(['lose', 'lose-answer'] as const);
    let reported = false;
    for (const link of worker.links) {
      link.fate = () => {
        reported = true;
        void member.kill();
        return fate;
      };
    }
    await scene.until(() => reported, 10_000);
    worker.heal();
    if (!reported) return { targets: [], effective: false, detail: `${member.name} reported nothing` };
    await member.ended;
    await worker.start();
    return { targets: [member.name], effective: true, detail: `${member.name} died with a report under way` };
  },
};
