import type { Attack } from '../attack.js';
import { BULK_BYTES, bulk, LARGE_PER_BULK, LONG_STRING } from '../payloads.js';

const MAX_BULKS = 12;
const SMALL_JOBS = 10_000;

/** Bulks as large as they may be: the largest payloads, the most jobs, and one field that fills it all. */
export const attack: Attack = {
  kind: 'large-bulks',
  summary: 'bulks of the largest size, with the largest payloads or the most jobs',
  mayBeRefusedForLoad: true,
  async run(scene, random) {
    const large = bulk(LARGE_PER_BULK, () => `"task":"work","queue":"large","payload":${LONG_STRING}`);
    const many = bulk(SMALL_JOBS, (n) => `"task":"work","queue":"many","priority":1,"key":"k${n}"`);
    const tooLong = bulk(1, () => `"task":"work","payload":"${'x'.repeat(BULK_BYTES)}"`);
    const bodies = [
      ['a bulk of the largest payloads', large],
      ['a bulk of the most jobs', many],
      ['a bulk with one payload that is too large', tooLong],
    ] as const;
    await scene.inLanes(3, MAX_BULKS, async (n) => {
      const [about, body] = bodies[n % bodies.length]!;
      await scene.send(scene.someNode(random), { about, method: 'POST', path: '/v1/jobs/bulk', body });
    });
  },
};
