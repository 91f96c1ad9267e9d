import type { Attack } from '../attack.js';
import { bulk } from '../payloads.js';
import { WorkerByHand } from '../worker-by-hand.js';

const MAX_BULKS = 16;
const PER_BULK = 1_000;
const LABELS = 8;
/** Together just under the 4,096 bytes that a set may have. */
const LARGE_LABELS = 32;
const LARGE_VALUE = 118;

/** Every job requires something else, and workers come that have all or nothing of it. */
export const attack: Attack = {
  kind: 'many-labels',
  summary: 'thousands of distinct `requires`, small and large, and registrations among them',
  mayBeRefusedForLoad: true,
  async run(scene, random) {
    const mark = random.between(0, 1_000_000);
    await scene.inLanes(3, MAX_BULKS, async (n) => {
      const isLarge = n % 4 === 3;
      const requires = (job: number) =>
        Array.from({ length: isLarge ? LARGE_LABELS : LABELS }, (_, label) => {
          const value = `${mark}-${n}-${job}`;
          return `"l${label}":"${isLarge ? value.padEnd(LARGE_VALUE, 'x') : value}"`;
        }).join(',');
      const count = isLarge ? PER_BULK / 2 : PER_BULK;
      const body = bulk(count, (job) => `"task":"work","queue":"labels","requires":{${requires(job)}}`);
      const shot = { about: 'a bulk of distinct needs', method: 'POST', path: '/v1/jobs/bulk', body };
      await scene.send(scene.someNode(random), shot);
      const labels = { l0: `${mark}-${n}-1` };
      await WorkerByHand.register(scene, scene.leader, { queues: ['labels'], slots: 1, labels });
    });
  },
};
