import { setTimeout as sleep } from 'node:timers/promises';
import type { Attack } from '../attack.js';
import { bulk, LARGE_PER_BULK, LONG_STRING } from '../payloads.js';

const MAX_BULKS = 16;
const EXPIRES_MS = 1_500;
const MAX_REDRIVES = 20;

/** A thousand large jobs that expire together, and are then sent round again together. */
export const attack: Attack = {
  kind: 'redrive',
  summary: 'expiry and redrive of many large jobs',
  mayBeRefusedForLoad: true,
  async run(scene) {
    for (let n = 0; n < MAX_BULKS && !scene.isHalfOver; n += 1) {
      const startBefore = new Date(Date.now() + EXPIRES_MS).toISOString();
      const fields = `"task":"work","queue":"expiring","startBefore":"${startBefore}","payload":${LONG_STRING}`;
      const body = bulk(LARGE_PER_BULK, () => fields);
      await scene.call(scene.follower, 'POST', '/v1/jobs/bulk', body, 'large jobs that expire');
    }
    await sleep(EXPIRES_MS);
    await scene.inLanes(1, MAX_REDRIVES, async () => {
      await scene.call(scene.follower, 'POST', '/v1/jobs/redrive', { queue: 'expiring' }, 'redrive');
      await sleep(200);
    });
  },
};
