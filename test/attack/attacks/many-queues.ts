import type { Attack } from '../attack.js';
import { bulk } from '../payloads.js';

const MAX_BULKS = 12;
const PER_BULK = 2_500;

/** Every job in a queue of its own. */
export const attack: Attack = {
  kind: 'many-queues',
  summary: 'thousands of new queues, and lists of them',
  mayBeRefusedForLoad: true,
  async run(scene, random) {
    const mark = random.between(0, 1_000_000);
    await scene.inLanes(3, MAX_BULKS, async (n) => {
      const body = bulk(PER_BULK, (job) => `"task":"work","queue":"q${mark}-${n}-${job}"`);
      const shot = { about: 'a bulk in new queues', method: 'POST', path: '/v1/jobs/bulk', body };
      await scene.send(scene.someNode(random), shot);
      await scene.call(scene.someNode(random), 'GET', '/v1/queues', undefined, 'a list of queues');
    });
  },
};
