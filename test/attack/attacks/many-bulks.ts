import type { Attack } from '../attack.js';
import { bulk, LONG_STRING, SMALL_OBJECTS } from '../payloads.js';

const AT_ONCE = 100;
/** Four of the largest payloads are just under a mebibyte. */
const LARGE_JOBS = 4;
const SMALL_JOBS = 5_000;

/** A bulk below a mebibyte waits for no other, so a hundred are read and stored side by side. */
export const attack: Attack = {
  kind: 'many-bulks',
  summary: 'a hundred bulks at once of just under a mebibyte each: large payloads, small objects, many jobs',
  mayBeRefusedForLoad: true,
  async run(scene, random) {
    const bodies = [
      bulk(LARGE_JOBS, () => `"task":"work","queue":"bulks","delay":"1h","payload":${LONG_STRING}`),
      bulk(LARGE_JOBS, () => `"task":"work","queue":"bulks","delay":"1h","payload":${SMALL_OBJECTS}`),
      bulk(
        SMALL_JOBS,
        (n) => `"task":"work","queue":"bulks","delay":"1h","payload":{"n":${n}},"priority":${1 + (n % 9)}`,
      ),
      // Refused for the last of its jobs, when all others have been looked at.
      bulk(SMALL_JOBS, (n) => `"task":"work","queue":"bulks","priority":${n === SMALL_JOBS - 1 ? 10 : 1}`),
    ];
    // The first hundred leave at the same moment, and each that is answered is followed by another.
    await scene.inLanes(AT_ONCE, 3 * AT_ONCE, (n) =>
      scene.send(scene.someNode(random), {
        ...{ about: 'one of a hundred bulks', method: 'POST', path: '/v1/jobs/bulk' },
        body: bodies[n % bodies.length]!,
      }),
    );
  },
};
