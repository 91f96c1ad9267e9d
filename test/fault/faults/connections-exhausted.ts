import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import type { Fault } from '../fault.js';

/** Enough to fill any server of this harness. */
const MAX_TAKEN = 400;

/** Others take every free connection of the server, and the nodes' sessions end meanwhile. */
export const fault: Fault = {
  kind: 'connections-exhausted',
  scenario: 'connections-exhausted',
  lane: 'database',
  async inject(scene, random) {
    const taken: pg.Client[] = [];
    let refusals = 0;
    const fill = async () => {
      while (taken.length < MAX_TAKEN) taken.push(await scene.rig.postgres.connect());
    };
    try {
      await fill().catch(() => undefined);
      await scene.database.terminate('punctual%');
      // What was given back is snatched again before the nodes get it.
      await fill().catch(() => {
        refusals += 1;
      });
      await sleep(random.between(500, 2_500));
    } finally {
      await Promise.all(taken.map((client) => client.end().catch(() => undefined)));
    }
    const detail = `${taken.length} connections taken`;
    return { targets: ['postgres'], effective: refusals > 0, detail };
  },
};
