import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import type { Fault } from '../fault.js';

/** Opened at the same time, so that the server is full before the nodes have noticed anything. */
const AT_ONCE = 10;
/** Enough to fill any server of this harness. */
const MAX_TAKEN = 400;

/** Others take every free connection of the server, and the nodes' sessions end meanwhile. */
export const fault: Fault = {
  kind: 'connections-exhausted',
  scenario: 'connections-exhausted',
  lane: 'database',
  async inject(scene, random) {
    const taken: pg.Client[] = [];
    /** Takes what is to be had; true when the server has refused one. */
    const fill = async (): Promise<boolean> => {
      while (taken.length < MAX_TAKEN) {
        const opened = await Promise.allSettled(
          Array.from({ length: AT_ONCE }, () => scene.rig.postgres.connect()),
        );
        for (const each of opened) if (each.status === 'fulfilled') taken.push(each.value);
        if (opened.some((each) => each.status === 'rejected')) return true;
      }
      return false;
    };
    let refused = false;
    try {
      await fill();
      await scene.database.terminate('punctual%');
      // What was given back is snatched again before the nodes get it.
      refused = await fill();
      await sleep(random.between(500, 2_500));
    } finally {
      await Promise.all(taken.map((client) => client.end().catch(() => undefined)));
    }
    return { targets: ['postgres'], effective: refused, detail: `${taken.length} connections taken` };
  },
};
