import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Fault } from '../fault.js';

const HOUR_MS = 3_600_000;

/** The wall clock of a node or worker jumps by up to an hour, and back. */
export const fault: Fault = {
  kind: 'clock-skew',
  scenario: 'clock-skew',
  lane: 'reports',
  async inject(scene, random) {
    const slot = random.pick([...scene.rig.nodes, ...scene.rig.workers]);
    const file = scene.rig.clockFile(slot.name);
    // A process that is just being started does not listen yet, and the signal would end it.
    const listens = await slot.member.ready.then(
      () => true,
      () => false,
    );
    if (!listens) return { targets: [], effective: false, detail: `${slot.member.name} was not there` };
    const wrongByMs = random.between(-HOUR_MS, HOUR_MS);
    const jump = async (ms: number) => {
      rmSync(`${file}.seen`, { force: true });
      writeFileSync(file, String(ms));
      slot.member.signal('SIGUSR2');
      return scene.until(() => existsSync(`${file}.seen`) && readFileSync(`${file}.seen`).length > 0, 3_000);
    };
    const jumped = await jump(wrongByMs);
    const seenMs = jumped ? Number(readFileSync(`${file}.seen`, 'utf8')) - Date.now() : 0;
    await sleep(random.between(500, 2_500));
    await jump(random.next() < 0.5 ? 0 : random.between(-HOUR_MS, HOUR_MS));
    const detail = `the clock of ${slot.member.name} was wrong by ${seenMs} ms`;
    return { targets: [], effective: Math.abs(seenMs - wrongByMs) < 5_000, detail };
  },
};
