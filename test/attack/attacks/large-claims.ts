import type { Attack } from '../attack.js';
import { bulk, LARGE_PER_BULK, LONG_STRING, SMALL_OBJECTS } from '../payloads.js';
import { WorkerByHand } from '../worker-by-hand.js';

const MAX_BULKS = 16;
const MAX_CLAIMS = 40;

/** A worker with thousands of slots that takes large jobs and never says that they have arrived. */
export const attack: Attack = {
  kind: 'large-claims',
  summary: 'claims of a thousand large jobs that are never acknowledged',
  mayBeRefusedForLoad: true,
  async run(scene) {
    const payloads = [LONG_STRING, SMALL_OBJECTS];
    for (let n = 0; n < MAX_BULKS && !scene.isHalfOver; n += 1) {
      const payload = payloads[n % payloads.length]!;
      const body = bulk(LARGE_PER_BULK, () => `"task":"work","queue":"claimed","payload":${payload}`);
      await scene.call(scene.follower, 'POST', '/v1/jobs/bulk', body, 'large jobs to claim');
    }
    const worker = await WorkerByHand.register(scene, scene.leader, { queues: ['claimed'] });
    if (!worker) return;
    await scene.inLanes(3, MAX_CLAIMS, async (n) => {
      await worker.claim(1_000, '1s');
      // A heartbeat that lists nothing makes everything be offered again.
      if (n % 3 === 2) await worker.heartbeat([]);
    });
    await worker.leave();
  },
};
