import type { Fault } from '../fault.js';
import type { Effect } from '../history.js';

/** A worker dies while it runs programs, which must end with it. */
export const fault: Fault = {
  kind: 'kill-in-program',
  scenario: 'exec-mixed',
  lane: 'workers',
  async inject(scene) {
    const runner = () => {
      scene.effects.look();
      const busy = workersOf(scene.effects.all);
      return scene.rig.workers.find(({ member }) => member.isAlive && busy.has(member.name));
    };
    await scene.until(() => runner() !== undefined, 5_000);
    const worker = runner();
    if (!worker) return { targets: [], effective: false, detail: 'no program ran' };
    const victim = worker.member.name;
    await worker.member.kill();
    await worker.start();
    return { targets: [victim], effective: true, detail: `${victim} died while it ran programs` };
  },
};

/** The workers whose programs have begun and not ended. */
function workersOf(effects: readonly Effect[]): ReadonlySet<string> {
  const running = new Map<string, string>();
  for (const { kind, job, fence, worker, program } of effects) {
    if (!program) continue;
    if (kind === 'start') running.set(`${job}/${fence}`, worker);
    else running.delete(`${job}/${fence}`);
  }
  return new Set(running.values());
}
